package convert

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// The missing value of xarray: in v2 the fill value of the array, unless it is
// null; in v3 the attribute _FillValue, where floats are base64 of a
// little-endian float64. A conversion of an array with dimension names, as all
// of xarray's have, converts it to the other form.

const fillAttribute = "_FillValue"

// convertFillAttribute changes converted metadata c of m accordingly.
func convertFillAttribute(c, m *zarr.Meta) error {
	if m.DimensionNames == nil || c.Version == m.Version {
		return nil
	}
	switch c.Type.Kind() {
	case dtype.Bool, dtype.Int, dtype.Uint, dtype.Float:
	default:
		return nil
	}
	raw, has := c.Attributes.Get(fillAttribute)
	if c.Version == zarr.V3 {
		if has || m.NullFill {
			return nil
		}
		return c.Attributes.Set(fillAttribute, fillAttributeV3(c.Type, c.Fill))
	}
	if elem, ok := parseFillAttribute(c.Type, raw); has && ok {
		if bytes.Equal(elem, m.Fill) {
			c.Attributes.Delete(fillAttribute)
			return nil
		}
		plain, err := c.Type.PrintFillV2(elem)
		if err != nil {
			return err
		}
		if err := c.Attributes.Set(fillAttribute, plain); err != nil {
			return err
		}
	}
	// null is read as zero everywhere, and marks nothing as missing.
	c.NullFill = bytes.Equal(m.Fill, c.Type.Zero())
	return nil
}

// fillAttributeV3 is an element as xarray stores it among the attributes in v3.
func fillAttributeV3(t dtype.Type, elem []byte) json.RawMessage {
	text, err := t.AppendJSON(nil, elem)
	if err != nil || t.Kind() != dtype.Float {
		return text
	}
	f, err := strconv.ParseFloat(string(bytes.Trim(text, `"`)), 64)
	if err != nil {
		return text
	}
	b := binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))
	return json.RawMessage(strconv.Quote(base64.StdEncoding.EncodeToString(b)))
}

// parseFillAttribute is the reverse; plain numbers are understood too.
func parseFillAttribute(t dtype.Type, raw json.RawMessage) ([]byte, bool) {
	var text string
	if t.Kind() == dtype.Float && json.Unmarshal(raw, &text) == nil {
		if b, err := base64.StdEncoding.DecodeString(text); err == nil && len(b) == 8 {
			raw = floatJSON(math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
	}
	if raw == nil {
		return nil, false
	}
	elem, null, err := t.ParseFillV2(raw)
	return elem, err == nil && !null
}

// floatJSON is a float as fill values are written.
func floatJSON(f float64) json.RawMessage {
	switch {
	case math.IsNaN(f):
		return json.RawMessage(`"NaN"`)
	case math.IsInf(f, 1):
		return json.RawMessage(`"Infinity"`)
	case math.IsInf(f, -1):
		return json.RawMessage(`"-Infinity"`)
	}
	return json.RawMessage(strconv.FormatFloat(f, 'g', -1, 64))
}
