package meta

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
)

// The names of the v1 metadata documents.
const (
	DocArrayV1 = "meta"
	DocAttrsV1 = "attrs"
)

// The members of meta in the order in which new ones are printed.
var arrayV1 = []string{"chunks", "compression", "compression_opts", "dtype", "fill_value", "order", "shape", "zarr_format"}

// ParseV1 parses meta and attrs, the documents of a v1 array. attrs may be nil,
// though the specification wants it always. The slices are the caller's again
// afterwards. v1 has no groups. Errors are [FieldError]. (Zarr v1, Metadata.)
func ParseV1(meta, attrs []byte, reg *codecs.Registry) (*Meta, error) {
	p := &parser{doc: DocArrayV1, reg: reg}
	m := &Meta{Version: V1, Array: true}
	d, obj, err := p.read(meta)
	if err != nil {
		return nil, unreadable(m, err)
	}
	m.keep(obj, arrayV1...)
	failed := cmp.Or(p.version(obj, 1), p.membersV1(m, obj))
	if err := p.attributed(m, d, DocAttrsV1, attrs); failed != nil || err != nil {
		return nil, unreadable(m, cmp.Or(failed, err))
	}
	return m, nil
}

// membersV1 parses the members of meta: first the members that define the keys of chunks.
func (p *parser) membersV1(m *Meta, obj jsontext.Object) error {
	var err error
	if m.Shape, err = p.shape(obj); err != nil {
		return err
	}
	m.Keys = V2Keys('.', len(m.Shape))
	if err := p.chunksV2(m, obj); err != nil {
		return err
	}
	if err := p.typeV2(m, obj, dtype.Type{}); err != nil {
		return err
	}
	compressor, err := p.compressionV1(obj)
	if err != nil {
		return err
	}
	if err := cmp.Or(p.renameV1(p.chainV2(m, obj, nil, compressor)), p.fillV2(m, obj, m.Type.ParseFillV1)); err != nil {
		return err
	}
	return p.renameV1(p.check(m, "chunks"))
}

// renameV1 makes an error about the compressor name the members of v1.
func (p *parser) renameV1(err error) error {
	var c *codecs.ConfigError
	if !errors.As(err, &c) || c.List != "compressor" {
		return err
	}
	at := *c
	if at.List = "compression"; at.Field != "" {
		at.List = "compression_opts"
	}
	return &FieldError{Doc: p.doc, Err: &at}
}

// compressionV1 returns the compressor as v2 would have it. In v1 a compressor
// is a name, and its options a number or an object.
func (p *parser) compressionV1(obj jsontext.Object) (json.RawMessage, error) {
	raw, err := p.need(obj, "compression")
	if err != nil {
		return nil, err
	}
	opts, err := p.need(obj, "compression_opts")
	if err != nil {
		return nil, err
	}
	name, ok := jsontext.String(raw)
	if !ok && string(raw) != "null" {
		return nil, p.fail("compression", errors.New("not a string"))
	}
	if name == "none" || !ok {
		return json.RawMessage("null"), nil
	}
	list := []jsontext.Member{{Name: "id", Value: dtype.AppendString(nil, name)}}
	switch config, isObject := jsontext.Members(opts); {
	case isObject:
		for _, m := range config {
			if m.Name == "id" {
				return nil, p.fail("compression_opts.id", errors.New("unknown member"))
			}
		}
		list = append(list, config...)
	case string(opts) == "null":
	default:
		if _, err := jsontext.Int(opts); err != nil {
			return nil, p.fail("compression_opts", errors.New("neither a level, an object nor null"))
		}
		list = append(list, jsontext.Member{Name: "level", Value: opts})
	}
	return jsontext.Join(list), nil
}

// memberV1 prints a member of meta; ok is false if it is left out.
func (m *Meta) memberV1(name string) (raw json.RawMessage, ok bool, err error) {
	switch name {
	case "zarr_format":
		return json.RawMessage("1"), true, nil
	case "fill_value":
		if raw = json.RawMessage("null"); !m.NullFill {
			raw, err = m.Type.PrintFillV1(m.Fill)
		}
		return raw, true, err
	case "compression", "compression_opts":
		v, err := m.Codecs.V2()
		if err != nil {
			return nil, false, err
		}
		return printCompressionV1(name, v)
	case "chunks":
		if m.Keys.enc != keysV2 || m.Keys.sep != '.' || m.Type.Variable() {
			return nil, false, fmt.Errorf("chunk keys or a data type that v1 does not have: %w", ErrNoForm)
		}
	}
	return m.memberV2(name)
}

func printCompressionV1(name string, v codecs.V2) (raw json.RawMessage, ok bool, err error) {
	if f := jsontext.OrNull(v.Filters); string(f) != "null" {
		if list, _ := jsontext.Items(f); len(list) > 0 {
			return nil, false, fmt.Errorf("filters: %w", ErrNoForm)
		}
	}
	config, ok := jsontext.Members(jsontext.OrNull(v.Compressor))
	if !ok {
		if name == "compression" {
			return json.RawMessage(`"none"`), true, nil
		}
		return json.RawMessage("null"), true, nil
	}
	var id json.RawMessage
	var opts []jsontext.Member
	for _, m := range config {
		if m.Name == "id" {
			id = m.Value
		} else {
			opts = append(opts, m)
		}
	}
	switch {
	case name == "compression":
		return id, true, nil
	case len(opts) == 0:
		return json.RawMessage("null"), true, nil
	case len(opts) == 1 && opts[0].Name == "level":
		return opts[0].Value, true, nil
	}
	return jsontext.Join(opts), true, nil
}
