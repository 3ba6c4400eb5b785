package meta

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
)

// DocV3 is the name of the one metadata document of a v3 node.
const DocV3 = "zarr.json"

// The members of v3 documents in the order in which new ones are printed.
var (
	arrayV3 = []string{"zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding",
		"fill_value", "codecs", "attributes", "dimension_names"}
	groupV3 = []string{"zarr_format", "node_type", "attributes", "consolidated_metadata"}
)

// ParseV3 parses zarr.json, the metadata document of a v3 array or group. The
// slice is the caller's again afterwards. The codecs are looked up in reg and
// bound once, so that their errors show here. Errors are [FieldError]. (Zarr v3
// core, Metadata.)
func ParseV3(doc []byte, reg *codecs.Registry) (*Meta, error) { return parseV3(doc, reg, true) }

// ParseV3Node is [ParseV3] without the nodes that the document of a group carries, of
// which there may be very many: Consolidated is nil, and Print keeps their text.
func ParseV3Node(doc []byte, reg *codecs.Registry) (*Meta, error) { return parseV3(doc, reg, false) }

func parseV3(doc []byte, reg *codecs.Registry, nodes bool) (*Meta, error) {
	p := &parser{doc: DocV3, reg: reg}
	d, obj, err := p.read(doc)
	if err != nil {
		return nil, unreadable(&Meta{Version: V3, Array: true}, err)
	}
	m, failed := p.nodeV3(obj)
	if m == nil {
		return nil, failed
	}
	if err := p.consolidatedV3(m, obj, nodes); err != nil {
		return nil, err
	}
	p.parsed(m, d)
	if failed != nil {
		return nil, failed
	}
	return m, nil
}

// nodeV3 parses everything but consolidated metadata. Of an array that cannot be opened
// it returns the error and the rest of the metadata. A document without node_type
// "group" counts as an array.
func (p *parser) nodeV3(obj jsontext.Object) (*Meta, error) {
	failed := p.version(obj, 3)
	m := &Meta{Version: V3, Array: true}
	known := arrayV3
	raw, err := p.need(obj, "node_type")
	switch kind, _ := jsontext.String(raw); {
	case kind == "group":
		m.Array = false
		known = groupV3
	case kind != "array" && err == nil:
		err = p.fail("node_type", fmt.Errorf(`%s is neither "array" nor "group"`, jsontext.Show(raw)))
	}
	failed = cmp.Or(failed, err)
	m.Attributes, err = p.attributes(obj)
	failed = cmp.Or(failed, err)
	m.extra, err = p.extraV3(obj, known)
	failed = cmp.Or(failed, err)
	switch {
	case m.Array:
		if failed = cmp.Or(failed, p.arrayV3(m, obj)); failed != nil {
			return m, unreadable(m, failed)
		}
	case failed != nil:
		return nil, failed
	}
	return m, nil
}

// extraV3 collects the members that are not known, which must say that they
// need not be understood. Storage transformers are among them: none is known.
func (p *parser) extraV3(obj jsontext.Object, known []string) (extra map[string]json.RawMessage, failed error) {
	for _, x := range obj {
		name, raw := x.Name, x.Value
		if slices.Contains(known, name) {
			continue
		}
		if name == "storage_transformers" && slices.Contains(known, "shape") {
			failed = cmp.Or(failed, p.transformers(raw))
		} else if !ignorable(raw) {
			failed = cmp.Or(failed, p.fail(jsontext.FieldName(name), errors.New(`unknown member that does not say "must_understand": false`)))
		}
		if extra == nil {
			extra = make(map[string]json.RawMessage)
		}
		extra[name] = raw
	}
	return extra, failed
}

// ignorable reports whether raw says that it need not be understood.
func ignorable(raw json.RawMessage) bool {
	obj, _ := jsontext.Members(raw)
	return string(obj.Get("must_understand")) == "false"
}

func (p *parser) transformers(raw json.RawMessage) error {
	list, ok := jsontext.Items(raw)
	if !ok {
		return p.fail("storage_transformers", errors.New("not a list"))
	}
	for i, raw := range list {
		field := fmt.Sprintf("storage_transformers[%d]", i)
		if !ignorable(raw) {
			return p.fail(field, fmt.Errorf("unknown storage transformer %s", jsontext.Show(raw)))
		}
		obj, _ := jsontext.Members(raw)
		if _, ok := jsontext.String(obj.Get("name")); !ok {
			return p.fail(field+".name", errors.New("not a string"))
		}
		if config, ok := obj.Lookup("configuration"); ok {
			if _, ok := jsontext.Members(config); !ok {
				return p.fail(field+".configuration", errors.New("not an object"))
			}
		}
	}
	return nil
}

// arrayV3 parses the members of an array. After a wrong member it goes on with the
// members that do not depend on it, and returns the first error.
func (p *parser) arrayV3(m *Meta, obj jsontext.Object) error {
	var failed error
	if m.Shape, failed = p.shape(obj); failed != nil {
		return failed
	}
	raw, err := p.need(obj, "data_type")
	if err == nil {
		if m.Type, err = dtype.ParseV3(raw); err != nil {
			err = p.fail("data_type", err)
		}
	}
	typed := err == nil
	failed = cmp.Or(err, p.gridV3(m, obj), p.keysV3(m, obj))
	raw, err = p.need(obj, "codecs")
	if err == nil && isFirstV3(raw) {
		raw = codecsFirstV3(raw, len(m.Shape))
	}
	if err == nil {
		if m.Codecs, err = p.reg.ParseV3(raw); err != nil {
			err = p.fail("codecs", err)
		}
	}
	failed = cmp.Or(failed, err)
	if typed {
		failed = cmp.Or(failed, p.fillV3(m, obj))
	}
	if failed = cmp.Or(failed, p.namesV3(m, obj)); failed != nil {
		return failed
	}
	return p.check(m, "chunk_grid.configuration")
}

// fillV3 parses the fill value.
func (p *parser) fillV3(m *Meta, obj jsontext.Object) error {
	raw, err := p.need(obj, "fill_value")
	if err != nil {
		return err
	}
	if err := p.room(m.Type); err != nil {
		return err
	}
	if m.Fill, err = m.Type.ReadFillV3(raw); err != nil {
		return p.fail("fill_value", err)
	}
	if m.Type.IsBase64(raw) && m.Codecs.Endian() == dtype.Big {
		m.Type.Swap(m.Fill)
	}
	return nil
}

// extension reads the name and the configuration of a chunk grid or a chunk
// key encoding, which must be understood: an object, or a name alone. (Zarr v3
// core, Extension definition.)
func (p *parser) extension(obj jsontext.Object, field string) (name string, config jsontext.Object, err error) {
	raw, err := p.need(obj, field)
	if err != nil {
		return "", nil, err
	}
	if name, ok := jsontext.String(raw); ok {
		return name, jsontext.Object{}, nil
	}
	ext, ok := jsontext.Members(raw)
	if !ok {
		return "", nil, p.fail(field, errors.New("neither an object nor a name"))
	}
	if _, ok := ext.Lookup("name"); !ok {
		return "", nil, p.fail(field+".name", errMissing)
	}
	if name, ok = jsontext.String(ext.Get("name")); !ok {
		return "", nil, p.fail(field+".name", errors.New("not a string"))
	}
	config = jsontext.Object{}
	for _, x := range ext {
		member, raw := x.Name, x.Value
		switch member {
		case "name":
		case "configuration":
			if config, ok = jsontext.Members(raw); !ok {
				return "", nil, p.fail(field+".configuration", errors.New("not an object"))
			}
		case "must_understand":
			if string(raw) != "true" {
				return "", nil, p.fail(field+".must_understand", errors.New("can only be true here"))
			}
		default:
			return "", nil, p.fail(field+"."+jsontext.FieldName(member), errors.New("unknown member"))
		}
	}
	return name, config, nil
}

// only refuses members of a configuration that are not listed.
func (p *parser) only(config jsontext.Object, field string, known ...string) error {
	for _, x := range config {
		if !slices.Contains(known, x.Name) {
			return p.fail(field+".configuration."+jsontext.FieldName(x.Name), errors.New("unknown member"))
		}
	}
	return nil
}

func (p *parser) gridV3(m *Meta, obj jsontext.Object) error {
	const field = "chunk_grid"
	name, config, err := p.extension(obj, field)
	if err != nil {
		return err
	}
	switch name {
	case "regular":
		if err := p.only(config, field, "chunk_shape"); err != nil {
			return err
		}
		m.Grid, err = p.regular(config.Get("chunk_shape"), field+".configuration.chunk_shape", m.Shape)
		return err
	case "rectilinear":
		if err := p.only(config, field, "kind", "chunk_shapes"); err != nil {
			return err
		}
		if _, ok := config.Lookup("kind"); !ok {
			return p.fail(field+".configuration.kind", errMissing)
		}
		if kind, _ := jsontext.String(config.Get("kind")); kind != "inline" {
			return p.fail(field+".configuration.kind", errors.New(`not "inline"`))
		}
		m.Grid, err = p.rectilinear(config.Get("chunk_shapes"), field+".configuration.chunk_shapes", len(m.Shape))
		return err
	}
	return p.fail(field+".name", fmt.Errorf("unknown chunk grid %q", jsontext.Clip(name)))
}

// rectilinear reads chunk lengths per dimension: one number, or a list of
// numbers and [length, count] pairs.
func (p *parser) rectilinear(raw json.RawMessage, field string, rank int) (Grid, error) {
	if raw == nil {
		return nil, p.fail(field, errMissing)
	}
	list, ok := jsontext.Items(raw)
	if !ok {
		return nil, p.fail(field, errors.New("not a list"))
	}
	if len(list) != rank {
		return nil, p.fail(field, fmt.Errorf("%d entries for %d dimensions", len(list), rank))
	}
	dims := make([]Edges, rank)
	for d, raw := range list {
		at := fmt.Sprintf("%s[%d]", field, d)
		runs, ok := jsontext.Items(raw)
		if !ok {
			n, err := jsontext.Int(raw)
			if err == nil {
				err = CheckLength(n)
			}
			if err != nil {
				return nil, p.fail(at, err)
			}
			dims[d].Step = n
			continue
		}
		for i, raw := range runs {
			pair, ok := jsontext.Items(raw)
			if !ok {
				pair = []json.RawMessage{raw, json.RawMessage("1")}
			}
			if len(pair) != 2 {
				return nil, p.fail(fmt.Sprintf("%s[%d]", at, i), errors.New("not a length and a count"))
			}
			length, err := jsontext.Int(pair[0])
			count, err2 := jsontext.Int(pair[1])
			if err := cmp.Or(err, err2); err != nil {
				return nil, p.fail(fmt.Sprintf("%s[%d]", at, i), err)
			}
			dims[d].Runs = append(dims[d].Runs, [2]int64{length, count})
		}
	}
	g, err := RectilinearGrid(dims)
	if err != nil {
		return nil, p.fail(field, err)
	}
	return g, nil
}

func (p *parser) keysV3(m *Meta, obj jsontext.Object) error {
	const field = "chunk_key_encoding"
	name, config, err := p.extension(obj, field)
	if err != nil {
		return err
	}
	var enc keyEncoding
	var sep byte
	switch name {
	case "default":
		enc, sep = keysDefault, '/'
	case "v2":
		enc, sep = keysV2, '.'
	default:
		return p.fail(field+".name", fmt.Errorf("unknown chunk key encoding %q", jsontext.Clip(name)))
	}
	if err := p.only(config, field, "separator"); err != nil {
		return err
	}
	if raw, ok := config.Lookup("separator"); ok {
		if sep, err = p.separator(raw, field+".configuration.separator"); err != nil {
			return err
		}
	}
	m.Keys = newKeys(enc, sep, len(m.Shape))
	return nil
}

func (p *parser) separator(raw json.RawMessage, field string) (byte, error) {
	if s, _ := jsontext.String(raw); s == "/" || s == "." {
		return s[0], nil
	}
	return 0, p.fail(field, fmt.Errorf(`%s is neither "/" nor "."`, jsontext.Show(raw)))
}

func (p *parser) namesV3(m *Meta, obj jsontext.Object) error {
	const field = "dimension_names"
	raw, ok := obj.Lookup(field)
	if !ok || string(raw) == "null" { // some writers use null for none
		return nil
	}
	list, ok := jsontext.Items(raw)
	if !ok {
		return p.fail(field, errors.New("not a list"))
	}
	if len(list) != len(m.Shape) {
		return p.fail(field, fmt.Errorf("%d names for %d dimensions", len(list), len(m.Shape)))
	}
	m.DimensionNames = make([]*string, len(list))
	for d, raw := range list {
		if string(raw) == "null" {
			continue
		}
		name, ok := jsontext.String(raw)
		if !ok {
			return p.fail(fmt.Sprintf("%s[%d]", field, d), errors.New("neither a string nor null"))
		}
		m.DimensionNames[d] = &name
	}
	return nil
}

// memberV3 prints a member of zarr.json; ok is false if it is left out.
func (m *Meta) memberV3(name string) (raw json.RawMessage, ok bool, err error) {
	switch name {
	case "zarr_format":
		raw = json.RawMessage("3")
	case "node_type":
		raw = json.RawMessage(`"group"`)
		if m.Array {
			raw = json.RawMessage(`"array"`)
		}
	case "shape":
		raw = append(jsontext.AppendInts([]byte{'['}, m.Shape), ']')
	case "data_type":
		raw, err = m.Type.PrintV3()
	case "chunk_grid":
		raw = appendGrid(nil, m.Grid)
	case "chunk_key_encoding":
		var enc string
		switch m.Keys.enc {
		case keysDefault:
			enc = "default"
		case keysV2:
			enc = "v2"
		default:
			return nil, false, fmt.Errorf("chunk keys of the early draft: %w", ErrNoForm)
		}
		raw = fmt.Appendf(nil, `{"name":"%s","configuration":{"separator":"%c"}}`, enc, m.Keys.sep)
	case "fill_value":
		if m.NullFill {
			return nil, false, fmt.Errorf("null: %w", ErrNoForm)
		}
		raw, err = m.Type.PrintFillV3(m.Fill)
	case "codecs":
		raw, err = m.Codecs.PrintV3()
	case "attributes":
		raw = m.Attributes.Text()
	case "dimension_names":
		return appendNames(nil, m.DimensionNames), m.DimensionNames != nil, nil
	case "consolidated_metadata":
		switch {
		case m.inline != nil:
			raw = m.inline
		case m.Consolidated == nil:
			return nil, false, nil
		default:
			raw, err = m.printInline()
		}
	}
	return raw, true, err
}

func appendNames(dst []byte, names []*string) []byte {
	dst = append(dst, '[')
	for d, n := range names {
		if d > 0 {
			dst = append(dst, ',')
		}
		if n == nil {
			dst = append(dst, "null"...)
		} else {
			dst = dtype.AppendString(dst, *n)
		}
	}
	return append(dst, ']')
}
