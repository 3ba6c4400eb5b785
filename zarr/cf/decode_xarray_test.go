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
