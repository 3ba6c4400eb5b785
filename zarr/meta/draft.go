package meta

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
)

// ParseDraft3Group parses the metadata of a group of the early v3 draft. The
// slice is the caller's again afterwards. Errors are [FieldError].
func ParseDraft3Group(doc []byte) (*Meta, error) {
	p := &parser{doc: DocGroupDraft}
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
	name := DocGroupDraft
	if m.Array {
		name = DocArrayDraft
	}
	d := m.src.doc(name)
	if d == nil || !m.Equal(m.src.model) {
		return fmt.Errorf("new metadata in the early v3 draft: %w", ErrNoForm)
	}
	out[name] = slices.Clone(d.text)
	return nil
}

// The members of array.json that the model knows. Which of the two spellings a
// document uses depends on its writer.
var arrayDraft = []string{"shape", "data_type", "chunk_grid", "chunk_memory_layout", "memory_layout", "compressor",
	"codecs", "fill_value", "attributes"}

// ParseDraft3Array parses the metadata of an array of the early v3 draft, which
// leaves much open: read is the form that zarr-python 2 wrote as an experiment
// (data types as in v2, one compressor by URI), and the same with
// "memory_layout" and a list of codecs. The slice is the caller's again
// afterwards. Errors are [FieldError].
func ParseDraft3Array(doc []byte, reg *codecs.Registry) (*Meta, error) {
	p := &parser{doc: DocArrayDraft, reg: reg}
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
	if raw, ok := obj.Lookup("compressor"); ok && string(raw) != "null" {
		if compressor, err = p.codecDraft(raw, "compressor"); err != nil {
			return nil, err
		}
	}
	order, ok := obj.Lookup("chunk_memory_layout")
	if !ok {
		if order, ok = obj.Lookup("memory_layout"); !ok {
			return nil, p.fail("chunk_memory_layout", errMissing)
		}
	}
	if err := p.chainV2(m, jsontext.Object{{Name: "order", Value: order}}, filters, compressor); err != nil {
		return nil, err
	}
	if _, ok := obj.Lookup("fill_value"); !ok {
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
func (p *parser) extensions(obj jsontext.Object) error {
	raw, ok := obj.Lookup("extensions")
	if !ok {
		return nil
	}
	list, ok := jsontext.Items(raw)
	if !ok {
		return p.fail("extensions", errors.New("not a list"))
	}
	for i, raw := range list {
		if !ignorable(raw) {
			return p.fail(fmt.Sprintf("extensions[%d]", i), fmt.Errorf("unknown extension %s", jsontext.Show(raw)))
		}
	}
	return nil
}

func (p *parser) gridDraft(m *Meta, obj jsontext.Object) error {
	grid, err := p.object(obj, "chunk_grid")
	if err != nil {
		return err
	}
	if kind, _ := jsontext.String(grid.Get("type")); kind != "regular" {
		return p.fail("chunk_grid.type", errors.New(`not "regular"`))
	}
	if m.Grid, err = p.regular(grid.Get("chunk_shape"), "chunk_grid.chunk_shape", m.Shape); err != nil {
		return err
	}
	m.Keys = V2Keys('.', len(m.Shape))
	if raw, ok := grid.Lookup("separator"); ok {
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
func (p *parser) typeDraft(m *Meta, obj jsontext.Object, objType dtype.Type) error {
	raw, err := p.need(obj, "data_type")
	if err != nil {
		return err
	}
	if ext, ok := jsontext.Members(raw); ok {
		raw = ext.Get("type")
	}
	switch name, _ := jsontext.String(raw); name {
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
// or the filters that zarr-python kept among the attributes.
func (p *parser) filtersDraft(m *Meta, obj jsontext.Object) (filters json.RawMessage, objType dtype.Type, err error) {
	if raw, ok := obj.Lookup("codecs"); ok {
		list, ok := jsontext.Items(raw)
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
	list, ok := jsontext.Items(raw)
	return ok && !slices.ContainsFunc(list, func(f json.RawMessage) bool {
		obj, _ := jsontext.Members(f)
		_, ok := jsontext.String(obj.Get("id"))
		return !ok
	})
}

// codecDraft turns {"codec": ".../codec/zlib/1.0", "configuration": {…}} into
// {"id": "zlib", …}.
func (p *parser) codecDraft(raw json.RawMessage, field string) (json.RawMessage, error) {
	obj, ok := jsontext.Members(raw)
	if !ok {
		return nil, p.fail(field, errors.New("not an object"))
	}
	uri, _ := jsontext.String(obj.Get("codec"))
	parts := strings.Split(uri, "/")
	if len(parts) < 3 {
		return nil, p.fail(field+".codec", fmt.Errorf("%s is not the URI of a codec", jsontext.Show(obj.Get("codec"))))
	}
	list := []jsontext.Member{{Name: "id", Value: dtype.AppendString(nil, parts[len(parts)-2])}}
	if raw, ok := obj.Lookup("configuration"); ok {
		config, ok := jsontext.Members(raw)
		if !ok || slices.ContainsFunc(config, func(m jsontext.Member) bool { return m.Name == "id" }) {
			return nil, p.fail(field+".configuration", errors.New("not an object, or with an id"))
		}
		list = append(list, config...)
	}
	return jsontext.Join(list), nil
}
