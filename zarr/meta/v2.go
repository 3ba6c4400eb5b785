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

// The names of v2 metadata documents.
const (
	DocArrayV2 = ".zarray"
	DocGroupV2 = ".zgroup"
	DocAttrsV2 = ".zattrs"
)

// The members of .zarray in the order in which new ones are printed.
var arrayV2 = []string{"chunks", "compressor", "dimension_separator", "dtype", "fill_value", "filters", "order",
	"shape", "zarr_format"}

// fieldsV2 says which field of the model each member of a v1 or v2 document
// belongs to.
var fieldsV2 = map[string]string{
	"chunks": "chunk_grid", "compressor": "codecs", "dimension_separator": "chunk_key_encoding", "dtype": "data_type",
	"fill_value": "fill_value", "filters": "codecs", "order": "codecs", "shape": "shape", "zarr_format": "zarr_format",
	"compression": "codecs", "compression_opts": "codecs", // v1
}

// dimensionsKey is the attribute in which xarray keeps the names of dimensions
// in v2.
const dimensionsKey = "_ARRAY_DIMENSIONS"

// ParseV2Array parses .zarray and, if it is not nil, .zattrs, the documents of
// a v2 array. The slices are the caller's again afterwards. Members that the
// specification does not know are ignored and kept. Errors are [FieldError].
// (Zarr v2, Arrays.)
func ParseV2Array(zarray, zattrs []byte, reg *codecs.Registry) (*Meta, error) {
	p := &parser{doc: DocArrayV2, reg: reg}
	d, obj, err := p.read(zarray)
	if err != nil {
		return nil, unreadable(&Meta{Version: V2, Array: true}, err)
	}
	m, failed := p.arrayV2(obj)
	if err := p.attributed(m, d, DocAttrsV2, zattrs); failed != nil || err != nil {
		return nil, unreadable(m, cmp.Or(failed, err))
	}
	return m, nil
}

// ParseV2Group parses .zgroup and, if it is not nil, .zattrs, the documents of
// a v2 group. The slices are the caller's again afterwards. Errors are
// [FieldError]. (Zarr v2, Groups.)
func ParseV2Group(zgroup, zattrs []byte) (*Meta, error) {
	p := &parser{doc: DocGroupV2}
	d, obj, err := p.read(zgroup)
	if err != nil {
		return nil, err
	}
	m, err := p.groupV2(obj)
	if err != nil {
		return nil, err
	}
	if err := p.attributed(m, d, DocAttrsV2, zattrs); err != nil {
		return nil, err
	}
	return m, nil
}

func (p *parser) groupV2(obj jsontext.Object) (*Meta, error) {
	if err := p.version(obj, 2); err != nil {
		return nil, err
	}
	m := &Meta{Version: V2}
	m.keep(obj, "zarr_format")
	return m, nil
}

// keep remembers the members that are not known.
func (m *Meta) keep(obj jsontext.Object, known ...string) {
	for _, x := range obj {
		if !slices.Contains(known, x.Name) {
			if m.extra == nil {
				m.extra = make(map[string]json.RawMessage)
			}
			m.extra[x.Name] = x.Value
		}
	}
}

// arrayV2 parses .zarray. Of an array that cannot be opened it returns the error and the
// rest of the metadata.
func (p *parser) arrayV2(obj jsontext.Object) (*Meta, error) {
	m := &Meta{Version: V2, Array: true}
	m.keep(obj, arrayV2...)
	if err := cmp.Or(p.version(obj, 2), p.membersV2(m, obj)); err != nil {
		return m, unreadable(m, err)
	}
	return m, nil
}

// membersV2 parses the members of .zarray: first the members that define the keys of chunks.
func (p *parser) membersV2(m *Meta, obj jsontext.Object) error {
	var err error
	if m.Shape, err = p.shape(obj); err != nil {
		return err
	}
	if err := cmp.Or(p.chunksV2(m, obj), p.keysV2(m, obj)); err != nil {
		return err
	}
	filters, err := p.need(obj, "filters")
	if err != nil {
		return err
	}
	objType, err := p.filtersV2(filters)
	if err != nil {
		return err
	}
	compressor, err := p.need(obj, "compressor")
	if err != nil {
		return err
	}
	if err := p.typeV2(m, obj, objType); err != nil {
		// A filter that is not known may be the one that encodes objects.
		if other := p.chainV2(&Meta{Shape: m.Shape, Type: dtype.NewJSON()}, obj, filters, compressor); errors.Is(other, codecs.ErrUnknown) {
			err = other
		}
		return err
	}
	if err := cmp.Or(p.chainV2(m, obj, filters, compressor), p.fillV2(m, obj, m.Type.ParseFillV2)); err != nil {
		return err
	}
	return p.check(m, "chunks")
}

func (p *parser) chunksV2(m *Meta, obj jsontext.Object) error {
	raw, err := p.need(obj, "chunks")
	if err != nil {
		return err
	}
	m.Grid, err = p.regular(raw, "chunks", m.Shape)
	return err
}

func (p *parser) keysV2(m *Meta, obj jsontext.Object) error {
	const field = "dimension_separator"
	sep := byte('.')
	if raw, ok := obj.Lookup(field); ok {
		var err error
		if sep, err = p.separator(raw, field); err != nil {
			return err
		}
	}
	m.Keys = V2Keys(sep, len(m.Shape))
	return nil
}

// errPickle counts as an unknown codec.
var errPickle error = pickleError{}

type pickleError struct{}

func (pickleError) Error() string        { return "pickle is refused: unpickling runs code" }
func (pickleError) Is(target error) bool { return target == codecs.ErrUnknown }

// filtersV2 checks the form of the filters and returns the data type that an
// object array has by its first filter that encodes objects.
func (p *parser) filtersV2(raw json.RawMessage) (objType dtype.Type, err error) {
	if string(raw) == "null" {
		return dtype.Type{}, nil
	}
	list, ok := jsontext.Items(raw)
	if !ok {
		return dtype.Type{}, p.fail("filters", errors.New("neither a list nor null"))
	}
	for i, f := range list {
		obj, ok := jsontext.Members(f)
		if !ok {
			return dtype.Type{}, p.fail(fmt.Sprintf("filters[%d]", i), errors.New("not an object"))
		}
		if id, _ := jsontext.String(obj.Get("id")); id == "pickle" {
			return dtype.Type{}, p.fail(fmt.Sprintf("filters[%d].id", i), errPickle)
		}
		if t, ok := dtype.ObjectV2(f); ok && objType.Kind() == dtype.Invalid {
			objType = t
		}
	}
	return objType, nil
}

func (p *parser) typeV2(m *Meta, obj jsontext.Object, objType dtype.Type) error {
	raw, err := p.need(obj, "dtype")
	if err != nil {
		return err
	}
	if m.Type, err = dtype.ParseV2(raw, objType); err != nil {
		return p.fail("dtype", err)
	}
	return nil
}

func (p *parser) chainV2(m *Meta, obj jsontext.Object, filters, compressor json.RawMessage) error {
	raw, err := p.need(obj, "order")
	if err != nil {
		return err
	}
	order, _ := jsontext.String(raw)
	if order != "C" && order != "F" {
		return p.fail("order", fmt.Errorf(`%s is neither "C" nor "F"`, jsontext.Show(raw)))
	}
	m.Codecs, err = p.reg.ParseV2(codecs.V2{Type: m.Type, Order: order, Rank: len(m.Shape), Filters: filters, Compressor: compressor})
	if err != nil {
		return p.fail("codecs", err)
	}
	return nil
}

func (p *parser) fillV2(m *Meta, obj jsontext.Object, parse func(json.RawMessage) ([]byte, bool, error)) error {
	raw, err := p.need(obj, "fill_value")
	if err != nil {
		return err
	}
	if err := p.room(m.Type); err != nil {
		return err
	}
	if m.Fill, m.NullFill, err = parse(raw); err != nil {
		return p.fail("fill_value", err)
	}
	return nil
}

// setAttributesV2 sets the attributes of a v1 or v2 node and the dimension
// names in them.
func (m *Meta) setAttributesV2(a Attributes) {
	m.Attributes = a
	m.DimensionNames = dimensionsOf(a, len(m.Shape))
}

// dimensionsOf returns the dimension names that attributes give an array, nil
// if they give none: anything but a list of as many strings as there are
// dimensions belongs to someone else.
func dimensionsOf(a Attributes, rank int) []*string {
	raw, ok := a.Get(dimensionsKey)
	if !ok {
		return nil
	}
	list, ok := jsontext.Items(raw)
	if !ok || len(list) != rank || rank == 0 {
		return nil
	}
	names := make([]*string, rank)
	for d, raw := range list {
		name, ok := jsontext.String(raw)
		if !ok {
			return nil
		}
		names[d] = &name
	}
	return names
}

// attributesV2 returns the attributes as a v1 or v2 document must have them: with the dimension
// names where xarray looks for them, if the names were changed.
func (m *Meta) attributesV2() (Attributes, error) {
	var was []*string
	if m.src != nil {
		was = m.src.model.DimensionNames
	}
	a := m.Attributes
	said := dimensionsOf(a, len(m.Shape))
	switch {
	case slices.EqualFunc(m.DimensionNames, was, sameName), slices.EqualFunc(m.DimensionNames, said, sameName):
	case m.DimensionNames == nil:
		a.Delete(dimensionsKey)
	case slices.Contains(m.DimensionNames, nil):
		return a, fmt.Errorf("a dimension without a name beside others: %w", ErrNoForm)
	default:
		a.put(dimensionsKey, appendNames(nil, m.DimensionNames))
	}
	return a, nil
}

// memberV2 prints a member of .zarray; ok is false if it is left out.
func (m *Meta) memberV2(name string) (raw json.RawMessage, ok bool, err error) {
	switch name {
	case "zarr_format":
		raw = json.RawMessage("2")
	case "shape":
		raw = append(jsontext.AppendInts([]byte{'['}, m.Shape), ']')
	case "chunks":
		shape := m.Grid.Regular()
		if shape == nil {
			return nil, false, fmt.Errorf("a rectilinear grid: %w", ErrNoForm)
		}
		raw = append(jsontext.AppendInts([]byte{'['}, shape), ']')
	case "dtype":
		raw, err = m.Type.PrintV2()
	case "fill_value":
		if raw = json.RawMessage("null"); !m.NullFill {
			raw, err = m.Type.PrintFillV2(m.Fill)
		}
	case "dimension_separator":
		if m.Keys.enc != keysV2 {
			return nil, false, fmt.Errorf("chunk keys that v2 does not have: %w", ErrNoForm)
		}
		return json.RawMessage{'"', m.Keys.sep, '"'}, m.Keys.sep != '.', nil
	case "order", "filters", "compressor":
		v, err := m.Codecs.V2()
		if err != nil {
			return nil, false, err
		}
		switch name {
		case "order":
			raw = json.RawMessage(`"` + v.Order + `"`)
		case "filters":
			raw = jsontext.OrNull(v.Filters)
		default:
			raw = jsontext.OrNull(v.Compressor)
		}
	}
	return raw, true, err
}
