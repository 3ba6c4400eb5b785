package cf

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// Decoded elements are what xarray shows of the array; testdata/decode.py made the cases.
func TestDecodeAsXarray(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/decode.json"))(t)
	var golden struct {
		Cases []struct {
			Docs   map[string]json.RawMessage
			Stored string
			Type   string
			Values []any
			Error  string
		}
	}
	must.Do(t, json.Unmarshal(text, &golden))
	compared := 0
	for i, c := range golden.Cases {
		if c.Error != "" {
			continue // xarray cannot open it
		}
		var m *zarr.Meta
		var err error
		if doc := c.Docs["zarr.json"]; doc != nil {
			m, err = meta.ParseV3(doc, builtin.Registry())
		} else {
			m, err = meta.ParseV2Array(c.Docs[".zarray"], c.Docs[".zattrs"], builtin.Registry())
		}
		must.Do(t, err)
		stored := must.Get(hex.DecodeString(c.Stored))(t)
		d, err := NewDecoder(m)
		if err != nil {
			t.Errorf("case %d, %s: %v", i, m.Attributes.Text(), err)
			continue
		}
		out, err := d.Append(nil, stored)
		if err != nil {
			t.Errorf("case %d, %s: %v", i, m.Attributes.Text(), err)
			continue
		}
		var got, want []string
		for _, v := range c.Values {
			want = append(want, withoutZeros(fmt.Sprint(v)))
		}
		for size := d.Type().Size(); len(out) > 0; out = out[size:] {
			got = append(got, asPython(t, d, out[:size]))
		}
		compared++
		if fmt.Sprint(got) != fmt.Sprint(want) || !strings.HasPrefix(c.Type, "datetime64") && c.Type != "object" && !sameType(d.Type(), c.Type) {
			t.Errorf("case %d, format %v, %v %s, fill %x (null %v): %v %v, want %s %v", i, m.Version, m.Type, m.Attributes.Text(), m.Fill, m.NullFill, d.Type(), got, c.Type, want)
		}
	}
	if compared < 800 {
		t.Errorf("%d cases", compared)
	}
}

// withoutZeros cuts zeros behind the fraction of a time.
func withoutZeros(text string) string {
	if !strings.Contains(text, ":") {
		return text
	}
	whole, fraction, _ := strings.Cut(text, ".")
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		whole += "." + fraction
	}
	return whole
}

func sameType(t dtype.Type, numpy string) bool {
	if t.Kind() == dtype.Timedelta {
		return strings.HasPrefix(numpy, "timedelta64") // xarray takes a finer unit where values need it
	}
	return t.String() == numpy
}

// asPython prints a decoded element as decode.py does.
func asPython(t *testing.T, d *Decoder, elem []byte) string {
	t.Helper()
	typ := d.Type()
	var word [8]byte
	copy(word[:], elem)
	bits := binary.LittleEndian.Uint64(word[:])
	switch typ.Kind() {
	case dtype.Datetime:
		if int64(bits) == NaT {
			return "<nil>"
		}
		text := must.Get(d.AppendText(nil, elem))(t)
		return withoutZeros(string(text))
	case dtype.Timedelta:
		if int64(bits) == NaT {
			return "<nil>"
		}
		return fmt.Sprint(float64(int64(bits) * d.res)) // as JSON numbers are read
	case dtype.Float:
		switch f := typ.FloatValue(bits); {
		case math.IsNaN(f):
			return "nan"
		case f == math.Trunc(f):
			return strconv.FormatFloat(f, 'f', 1, 64)
		default:
			return strconv.FormatFloat(f, 'g', -1, 64)
		}
	case dtype.Int, dtype.Uint:
		text, err := typ.AppendJSON(nil, elem)
		if f, err2 := strconv.ParseFloat(string(text), 64); err == nil && err2 == nil {
			return fmt.Sprint(f) // as JSON numbers are read
		}
		t.Fatal(err)
	case dtype.Bool:
		return fmt.Sprint(bits == 1)
	}
	text := must.Get(typ.AppendJSON(nil, elem))(t)
	return string(text)
}

// A scaled float keeps its type, and is computed in it, if all missing values that are named are NaN, as
// xarray writes them; otherwise it is a float64. The values are those of xarray 2026.9.
func TestScaledFloats(t *testing.T) {
	const nan, number = `"_FillValue":"AAAAAAAA+H8=",`, `"_FillValue":"AAAAAAA4j8A=",`
	stored := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, math.Float32bits(45.1)), math.Float32bits(-3.7))
	for _, c := range []struct {
		attributes string
		bits       int
		values     [2]float64
	}{
		{nan + `"scale_factor":1.0,"add_offset":0.0`, 32, [2]float64{45.099998474121094, -3.700000047683716}},
		{nan + `"scale_factor":0.1,"add_offset":273.15`, 32, [2]float64{277.6600036621094, 272.7799987792969}},
		{nan + `"scale_factor":0.1`, 32, [2]float64{4.509999752044678, -0.3700000047683716}},
		{`"scale_factor":1.0,"add_offset":0.0`, 64, [2]float64{45.099998474121094, -3.700000047683716}},
		{`"scale_factor":0.1,"add_offset":273.15`, 64, [2]float64{277.6599998474121, 272.7799999952316}},
		{number + `"scale_factor":0.1,"add_offset":273.15`, 64, [2]float64{277.6599998474121, 272.7799999952316}},
		{`"missing_value":1e300,"scale_factor":0.1`, 64, [2]float64{4.50999984741211, -0.3700000047683716}},
	} {
		m := must.Get(meta.ParseV3([]byte(`{"zarr_format":3,"node_type":"array","shape":[2],"data_type":"float32","fill_value":0,
			"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},"chunk_key_encoding":{"name":"default"},
			"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"attributes":{`+c.attributes+`}}`), builtin.Registry()))(t)
		d := must.Get(NewDecoder(m))(t)
		if d.Type().Kind() != dtype.Float || d.Type().Bits() != c.bits {
			t.Errorf("%s: %v, want %d bits", c.attributes, d.Type(), c.bits)
			continue
		}
		out := must.Get(d.Append(nil, stored))(t)
		for i, want := range c.values {
			var word [8]byte
			copy(word[:], out[i*c.bits/8:(i+1)*c.bits/8])
			if got := d.Type().FloatValue(binary.LittleEndian.Uint64(word[:])); got != want {
				t.Errorf("%s: element %d is %v, want %v", c.attributes, i, got, want)
			}
		}
	}
}
