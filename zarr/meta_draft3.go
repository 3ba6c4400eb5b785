package zarr

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// The names under which the documents of the early v3 draft are parsed and
// printed; their keys are those of a [DraftLayout].
const (
	docArrayDraft = "array.json"
	docGroupDraft = "group.json"
)

// draftEntry begins the format that a draft store names in its entry document.
const draftEntry = "https://purl.org/zarr/spec/protocol/core/3.0"

// IsDraft3Entry reports whether doc, found under the key zarr.json, is the entry
// document of a store in the early v3 draft, rather than the metadata of a v3
// node.
func IsDraft3Entry(doc []byte) bool {
	if len(doc) > 1<<16 || checkJSON(doc) != nil {
		return false
	}
	obj, _ := members(doc)
	format, _ := asString(obj.get("zarr_format"))
	suffix, ok := obj.lookup("metadata_key_suffix")
	return strings.HasPrefix(format, draftEntry) && (!ok || string(suffix) == `".json"`)
}

// DraftLayout is how the early v3 draft maps paths to keys.
//
//	DraftSuffix  meta/foo.g/bar.a/array.json      data/foo.g/bar.a/0.0
//	DraftRoot    meta/root/foo/bar.array.json     data/root/foo/bar/c0/0
//
// Groups may have no document: then they exist because something lies below
// them. Paths have no slashes around them; "" is the root.
type DraftLayout uint8

// The layouts: that of the draft's text, and that of the later drafts, which
// zarr-python 2 wrote as an experiment.
const (
	DraftSuffix DraftLayout = iota
	DraftRoot
)

// MetaPrefix is what the keys of all documents begin with.
func (l DraftLayout) MetaPrefix() string {
	if l == DraftRoot {
		return "meta/root"
	}
	return "meta/"
}

// ArrayKey returns the key of the metadata of the array at path.
func (l DraftLayout) ArrayKey(path string) string {
	switch {
	case l == DraftSuffix:
		return "meta/" + draftPath(path, "a") + docArrayDraft
	case path == "":
		return "meta/root.array.json"
	}
	return "meta/root/" + path + ".array.json"
}

// GroupKey returns the key of the metadata of the group at path.
func (l DraftLayout) GroupKey(path string) string {
	switch {
	case l == DraftSuffix:
		return "meta/" + draftPath(path, "g") + docGroupDraft
	case path == "":
		return "meta/root.group.json"
	}
	return "meta/root/" + path + ".group.json"
}

// GroupPrefix returns what the keys of the documents of all nodes below the
// group at path begin with.
func (l DraftLayout) GroupPrefix(path string) string {
	switch {
	case l == DraftSuffix:
		return "meta/" + draftPath(path, "g")
	case path == "":
		return "meta/root/"
	}
	return "meta/root/" + path + "/"
}

// ChunkPrefix returns what the keys of the chunks of the array at path begin
// with; what follows is spelled by the [ChunkKeys] of its metadata.
func (l DraftLayout) ChunkPrefix(path string) string {
	switch {
	case l == DraftSuffix:
		return "data/" + draftPath(path, "a")
	case path == "":
		return "data/root/"
	}
	return "data/root/" + path + "/"
}

// ParseKey returns the node whose document has the key; ok is false if it is
// not the key of a document.
func (l DraftLayout) ParseKey(key string) (path string, array, ok bool) {
	rest, ok := strings.CutPrefix(key, l.MetaPrefix())
	if !ok {
		return "", false, false
	}
	if l == DraftRoot {
		path, array = strings.CutSuffix(rest, ".array.json")
		if !array {
			if path, ok = strings.CutSuffix(rest, ".group.json"); !ok {
				return "", false, false
			}
		}
		name, below := strings.CutPrefix(path, "/")
		return name, array, path == "" || below && name != ""
	}
	names := strings.Split(rest, "/")
	switch names[len(names)-1] {
	case docArrayDraft:
		array = true
	case docGroupDraft:
	default:
		return "", false, false
	}
	names = names[:len(names)-1]
	for i, n := range names {
		suffix := ".g"
		if array && i == len(names)-1 {
			suffix = ".a"
		}
		if names[i], ok = strings.CutSuffix(n, suffix); !ok || names[i] == "" {
			return "", false, false
		}
	}
	return strings.Join(names, "/"), array, true
}

// draftPath marks every name of path as that of a group and the last as kind,
// each with a slash behind it.
func draftPath(path, kind string) string {
	if path == "" {
		return ""
	}
	return strings.ReplaceAll(path, "/", ".g/") + "." + kind + "/"
}

// ParseDraft3Group parses the metadata of a group of the early v3 draft. The
// slice is the caller's again afterwards. Errors are [FieldError].
func ParseDraft3Group(doc []byte) (*Meta, error) {
	p := &parser{doc: docGroupDraft}
	d, obj, err := p.read(doc)
	if err != nil {
		return nil, err
	}
	m := &Meta{Version: Draft3}
	m.keep(obj, "attributes")
	if m.Attributes, err = p.attributes(obj); err != nil {
		return nil, err
	}
	if err := p.extensions(obj); err != nil {
		return nil, err
	}
	return p.parsed(m, d), nil
}

// printDraft adds the document that m was parsed from to out.
func (m *Meta) printDraft(out map[string][]byte) error {
	name := docGroupDraft
	if m.Array {
		name = docArrayDraft
	}
	d := m.src.doc(name)
	if d == nil || !m.Equal(m.src.model) {
		return fmt.Errorf("new metadata in the early v3 draft: %w", ErrNoForm)
	}
	out[name] = slices.Clone(d.text)
	return nil
}

// The members of array.json that the model knows. Which of the two spellings a
// document uses depends on who wrote it.
var arrayDraft = []string{"shape", "data_type", "chunk_grid", "chunk_memory_layout", "memory_layout", "compressor",
	"codecs", "fill_value", "attributes"}

// ParseDraft3Array parses the metadata of an array of the early v3 draft, which
// leaves much open: read is what zarr-python 2 wrote as an experiment (data
// types as in v2, one compressor by URI), and the same with "memory_layout" and
// a list of codecs. The slice is the caller's again afterwards. Errors are
// [FieldError].
func ParseDraft3Array(doc []byte, reg *codecs.Registry) (*Meta, error) {
	p := &parser{doc: docArrayDraft, reg: reg}
	d, obj, err := p.read(doc)
	if err != nil {
		return nil, err
	}
	m := &Meta{Version: Draft3, Array: true}
	m.keep(obj, arrayDraft...)
	if m.Shape, err = p.shape(obj); err != nil {
		return nil, err
	}
	if m.Attributes, err = p.attributes(obj); err != nil {
		return nil, err
	}
	if err := p.extensions(obj); err != nil {
		return nil, err
	}
	if err := p.gridDraft(m, obj); err != nil {
		return nil, err
	}
	filters, objType, err := p.filtersDraft(m, obj)
	if err != nil {
		return nil, err
	}
	if err := p.typeDraft(m, obj, objType); err != nil {
		return nil, err
	}
	compressor := json.RawMessage("null")
	if raw, ok := obj.lookup("compressor"); ok && string(raw) != "null" {
		if compressor, err = p.codecDraft(raw, "compressor"); err != nil {
			return nil, err
		}
	}
	order, ok := obj.lookup("chunk_memory_layout")
	if !ok {
		if order, ok = obj.lookup("memory_layout"); !ok {
			return nil, p.fail("chunk_memory_layout", errMissing)
		}
	}
	if err := p.chainV2(m, object{{"order", order}}, filters, compressor); err != nil {
		return nil, err
	}
	if _, ok := obj.lookup("fill_value"); !ok {
		m.Fill, m.NullFill = m.Type.NullV2(), true
	} else if err := p.fillV2(m, obj, m.Type.ParseFillV2); err != nil {
		return nil, err
	}
	if err := p.check(m, "chunk_grid"); err != nil {
		return nil, err
	}
	return p.parsed(m, d), nil
}

// extensions refuses extensions that must be understood; none is known.
func (p *parser) extensions(obj object) error {
	raw, ok := obj.lookup("extensions")
	if !ok {
		return nil
	}
	list, ok := items(raw)
	if !ok {
		return p.fail("extensions", errors.New("not a list"))
	}
	for i, raw := range list {
		if !ignorable(raw) {
			return p.fail(fmt.Sprintf("extensions[%d]", i), fmt.Errorf("unknown extension %s", show(raw)))
		}
	}
	return nil
}

func (p *parser) gridDraft(m *Meta, obj object) error {
	raw, err := p.need(obj, "chunk_grid")
	if err != nil {
		return err
	}
	grid, ok := members(raw)
	if !ok {
		return p.fail("chunk_grid", errors.New("not an object"))
	}
	if kind, _ := asString(grid.get("type")); kind != "regular" {
		return p.fail("chunk_grid.type", errors.New(`not "regular"`))
	}
	if m.Grid, err = p.regular(grid.get("chunk_shape"), "chunk_grid.chunk_shape", m.Shape); err != nil {
		return err
	}
	m.Keys = V2Keys('.', len(m.Shape))
	if raw, ok := grid.lookup("separator"); ok {
		sep, err := p.separator(raw, "chunk_grid.separator")
		if err != nil {
			return err
		}
		m.Keys = newKeys(keysDraft, sep, len(m.Shape))
	}
	return nil
}

// typeDraft reads a data type: a v2 type string, without byte order where it
// has one byte, or an object of an extension that holds one.
func (p *parser) typeDraft(m *Meta, obj object, objType dtype.Type) error {
	raw, err := p.need(obj, "data_type")
	if err != nil {
		return err
	}
	if ext, ok := members(raw); ok {
		raw = ext.get("type")
	}
	switch name, _ := asString(raw); name {
	case "bool":
		raw = json.RawMessage(`"|b1"`)
	case "i1", "u1":
		raw = json.RawMessage(`"|` + name + `"`)
	}
	if m.Type, err = dtype.ParseV2(raw, objType); err != nil {
		return p.fail("data_type", err)
	}
	return nil
}

// filtersDraft returns the filters as v2 has them: the codecs of the document,
// or those that zarr-python kept among the attributes.
func (p *parser) filtersDraft(m *Meta, obj object) (filters json.RawMessage, objType dtype.Type, err error) {
	if raw, ok := obj.lookup("codecs"); ok {
		list, ok := items(raw)
		if !ok {
			return nil, objType, p.fail("codecs", errors.New("not a list"))
		}
		filters = json.RawMessage{'['}
		for i, raw := range list {
			f, err := p.codecDraft(raw, fmt.Sprintf("codecs[%d]", i))
			if err != nil {
				return nil, objType, err
			}
			if i > 0 {
				filters = append(filters, ',')
			}
			filters = append(filters, f...)
		}
		filters = append(filters, ']')
	} else if raw, ok := m.Attributes.Get("filters"); ok && isFilters(raw) {
		filters = raw
	} else {
		return json.RawMessage("null"), objType, nil
	}
	objType, err = p.filtersV2(filters)
	return filters, objType, err
}

// isFilters reports whether an attribute is a list of v2 filters.
func isFilters(raw json.RawMessage) bool {
	list, ok := items(raw)
	return ok && !slices.ContainsFunc(list, func(f json.RawMessage) bool {
		obj, _ := members(f)
		_, ok := asString(obj.get("id"))
		return !ok
	})
}

// codecDraft turns {"codec": ".../codec/zlib/1.0", "configuration": {…}} into
// {"id": "zlib", …}.
func (p *parser) codecDraft(raw json.RawMessage, field string) (json.RawMessage, error) {
	obj, ok := members(raw)
	if !ok {
		return nil, p.fail(field, errors.New("not an object"))
	}
	uri, _ := asString(obj.get("codec"))
	parts := strings.Split(uri, "/")
	if len(parts) < 3 {
		return nil, p.fail(field+".codec", fmt.Errorf("%s is not the URI of a codec", show(obj.get("codec"))))
	}
	list := []jsonMember{{"id", dtype.AppendString(nil, parts[len(parts)-2])}}
	if raw, ok := obj.lookup("configuration"); ok {
		config, ok := members(raw)
		if !ok || slices.ContainsFunc(config, func(m jsonMember) bool { return m.name == "id" }) {
			return nil, p.fail(field+".configuration", errors.New("not an object, or with an id"))
		}
		list = append(list, config...)
	}
	return joinMembers(list), nil
}
