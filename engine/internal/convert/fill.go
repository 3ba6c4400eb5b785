package convert

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// xarray takes one value of an array for a missing one, besides the values in the attribute
// missing_value: in v2 the fill value, or where that is null the attribute _FillValue; in v3 the
// attribute _FillValue. A conversion keeps which elements xarray shows as missing, of arrays that
// xarray opens ([cf.HasNames]). F is the missing value:
//
//	from v2               to v3
//	fill F                fill F, attribute F
//	fill null             fill zero, the attribute as it was, in the form of v3
//
//	from v3               to v2
//	fill F, attribute F   fill F
//	fill NaN, attribute F fill F: missing chunks are missing elements either way
//	fill x, attribute F   fill null, attribute F
//	fill NaN or NaT       the same
//	fill x                fill null: x would be a missing value
//
// An attribute that is not one element, such as a list, becomes missing_value, which names
// the same elements in both.
//
// An array of an OME-Zarr image keeps its fill value: in v2 the image alone has the names of its
// dimensions ([haveNames]), so that no reader takes the fill value for a missing one.
//
// A missing chunk of a v2 array whose fill value is null holds no elements that all
// readers agree on, so an export writes these chunks ([Array.Missing]).

// convertFill changes converted metadata c of m accordingly.
func convertFill(c, m *zarr.Meta) error {
	if c.DimensionNames == nil && (!cf.HasNames(m) || c.Version == zarr.V2 && m.DimensionNames != nil) || m.Version == zarr.Draft3 || (c.Version == zarr.V3) == (m.Version == zarr.V3) {
		return nil
	}
	elem, has := m.Fill, true
	if !cf.HasNames(m) || !cf.FillIsMissing(m) { // of names that an image gives, xarray knew nothing
		elem, has = cf.MissingElement(m)
	}
	if !has {
		if err := cf.MoveFill(&c.Attributes); err != nil {
			return err
		}
	}
	if c.Version == zarr.V3 {
		if has {
			if text := cf.FillAttributeV3(c.Type, elem); text != nil {
				return c.Attributes.Set(cf.FillAttribute, text)
			}
		}
		c.Attributes.Delete(cf.FillAttribute) // xarray does not open an array with another one
		return nil
	}
	c.Attributes.Delete(cf.FillAttribute)
	switch {
	case has && (bytes.Equal(elem, m.Fill) || isNaN(m.Type, m.Fill)):
		c.Fill = elem
		return nil
	case isNaN(m.Type, m.Fill):
		return nil
	}
	c.NullFill = true
	_, scaled := m.Attributes.Get("scale_factor")
	_, moved := m.Attributes.Get("add_offset")
	if !has || isNaN(m.Type, elem) && !scaled && !moved { // NaN keeps the type of scaled floats
		return nil
	}
	text, err := fillAttributeV2(c.Type, elem)
	if err != nil {
		return err
	}
	return c.Attributes.Set(cf.FillAttribute, text)
}

// haveNames reports whether the dimensions of an array of v3 have the names of the axes of its image,
// and no missing value is stated.
func haveNames(m *zarr.Meta, axes []*string) bool {
	_, missing := m.Attributes.Get(cf.FillAttribute)
	return !missing && axes != nil && slices.EqualFunc(m.DimensionNames, axes, sameName)
}

func sameName(a, b *string) bool { return a != nil && b != nil && *a == *b }

// isNaN reports whether an element is NaN or NaT, which xarray shows as missing anyway.
func isNaN(t dtype.Type, elem []byte) bool {
	if t.Format() != "" {
		return false
	}
	var word [8]byte
	copy(word[:], elem)
	bits := binary.LittleEndian.Uint64(word[:])
	switch t.Kind() {
	case dtype.Float:
		f := t.FloatValue(bits)
		return f != f
	case dtype.Complex:
		half, part := t.Size()/2, dtype.NewFloat(t.Bits()/2)
		return isNaN(part, elem[:half]) || isNaN(part, elem[half:])
	case dtype.Datetime, dtype.Timedelta:
		return int64(bits) == cf.NaT
	}
	return false
}

// fillAttributeV2 is an element as an attribute in v2, floats with all digits.
func fillAttributeV2(t dtype.Type, elem []byte) (json.RawMessage, error) {
	if t.Kind() != dtype.Float || t.Format() != "" {
		return t.PrintFillV2(elem)
	}
	var word [8]byte
	copy(word[:], elem)
	switch f := t.FloatValue(binary.LittleEndian.Uint64(word[:])); {
	case math.IsInf(f, 0): // as Python writes it
		return json.RawMessage(map[bool]string{true: "Infinity", false: "-Infinity"}[f > 0]), nil
	default:
		return strconv.AppendFloat(nil, f, 'g', -1, 64), nil
	}
}
