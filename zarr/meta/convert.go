package meta

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// ToV3 returns metadata of Zarr v3 under which the same chunks, under the same
// keys, hold the same elements. A fill value of null becomes the zero that it
// is read as, dimension names move from xarray's attribute to their own member,
// a bare NaN among the attributes becomes a string, and members that v1 and v2
// do not know are dropped. Consolidated metadata is left out.
//
// Errors match [ErrNoForm], [dtype.ErrNoForm] or [codecs.ErrNoForm] where v3
// cannot say it: structs with fields of both byte orders, subarrays, Python
// objects other than text and bytes, filters without a v3 name or of elements in
// another byte order.
func (m *Meta) ToV3(reg *codecs.Registry) (*Meta, error) {
	if m.Version == V3 {
		return m.Clone(), nil
	}
	c := &Meta{Version: V3, Array: m.Array, Attributes: m.Attributes.strict()}
	if !m.Array {
		return c, nil
	}
	if m.Keys.enc != keysV2 {
		return nil, fmt.Errorf("chunk keys of the early v3 draft: %w", ErrNoForm)
	}
	c.Shape, c.Grid, c.Keys, c.Fill = slices.Clone(m.Shape), m.Grid, m.Keys, slices.Clone(m.Fill)
	c.DimensionNames = slices.Clone(m.DimensionNames)
	if dimensionsOf(c.Attributes, len(c.Shape)) != nil {
		c.Attributes.Delete(dimensionsKey)
	}
	c.Type = TypeV3(m.Type)
	if err := checkFilters(m, V3); err != nil {
		return nil, err
	}
	list, err := m.Codecs.PrintV3()
	if err != nil {
		return nil, err
	}
	if c.Codecs, err = reg.ParseV3(list); err != nil {
		return nil, err
	}
	return c.confirm()
}

// TypeV3 returns a type without its byte order, under the name that most readers of v3
// have for it: raw_bytes, not r24.
func TypeV3(t dtype.Type) dtype.Type {
	t = t.WithOrder(dtype.None)
	if t.Kind() != dtype.Raw {
		return t
	}
	named, err := dtype.ParseV3(fmt.Appendf(nil, `{"name":"raw_bytes","configuration":{"length_bytes":%d}}`, t.Size()))
	if err != nil {
		return t
	}
	return named
}

// ToV2 returns metadata of Zarr v2 under which the same chunks, under the same
// keys, hold the same elements. Members that need not be understood are
// dropped. Consolidated metadata is left out.
//
// Errors match [ErrNoForm], [dtype.ErrNoForm] or [codecs.ErrNoForm] where v2
// cannot say it: chunk keys of the default encoding, rectilinear grids, shards
// and other codecs without a v2 id, types that numpy does not have, NaNs other
// than the usual one as fill value, names for some dimensions only.
func (m *Meta) ToV2(reg *codecs.Registry) (*Meta, error) {
	if m.Version == V2 {
		return m.Clone(), nil
	}
	c := &Meta{Version: V2, Array: m.Array, Attributes: m.Attributes}
	if !m.Array {
		return c, nil
	}
	c.Shape, c.Grid, c.Keys = slices.Clone(m.Shape), m.Grid, m.Keys
	c.Fill, c.NullFill = slices.Clone(m.Fill), m.NullFill
	c.DimensionNames = slices.Clone(m.DimensionNames)
	if err := checkFilters(m, V2); err != nil {
		return nil, err
	}
	v, err := m.Codecs.V2()
	if err != nil {
		return nil, err
	}
	v.Rank, v.Type = len(m.Shape), m.Type
	if m.Version == V3 {
		order := m.Codecs.Endian()
		if order == dtype.None {
			order = dtype.Little
		}
		v.Type = m.Type.WithOrder(order)
	}
	c.Type = v.Type
	if c.Codecs, err = reg.ParseV2(v); err != nil {
		return nil, err
	}
	if c.Attributes, err = c.attributesV2(); err != nil {
		return nil, err
	}
	return c.confirm()
}

// checkFilters refuses filters that work on the bytes of elements if the other
// format hands them bytes in another order: in v3 a filter sees values, and a
// later codec sets their byte order; in v2 it sees the stored byte order.
func checkFilters(m *Meta, to Version) error {
	v, err := m.Codecs.V2()
	if err != nil || len(v.Filters) == 0 {
		return err
	}
	var filters []map[string]any
	if err := json.Unmarshal(v.Filters, &filters); err != nil {
		return fmt.Errorf("filters: %w", err)
	}
	other := ">"
	if to == V2 && m.Codecs.Endian() == dtype.Big {
		other = "<"
	}
	for i, f := range filters {
		for member, value := range f {
			if text, ok := value.(string); ok && strings.HasPrefix(text, other) {
				return fmt.Errorf("filters[%d].%s: %v of elements in another byte order: %w", i, member, f["id"], codecs.ErrNoForm)
			}
		}
	}
	return nil
}

// confirm returns c if it is sound and can be printed.
func (c *Meta) confirm() (*Meta, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if _, err := c.Print(); err != nil {
		return nil, err
	}
	return c, nil
}
