package zarr

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

func TestWriteValue(t *testing.T) {
	ctx := context.Background()
	sel := Sel(Slice(1, 3, 1))
	for _, tc := range []struct{ typ, value, want string }{
		{"int16", "-3", "0 -3 -3"},
		{"float32", `"NaN"`, `0.0 "NaN" "NaN"`},
		{"float32", "NaN", `0.0 "NaN" "NaN"`},
		{"bool", "true", "false true true"},
		{"complex64", "[1, -2]", "[0.0,0.0] [1.0,-2.0] [1.0,-2.0]"},
		{"string", `"dew point"`, `"" "dew point" "dew point"`},
		{"bytes", `[1, 2]`, `"" "AQI=" "AQI="`},
	} {
		a := must.Have(Create(ctx, kv.NewMem(), "a", Spec{Shape: []int64{3}, Chunks: []int64{2}, DataType: tc.typ}, nil))
		if err := a.WriteValue(ctx, sel, json.RawMessage(tc.value)); err != nil {
			t.Errorf("%s: %v", tc.typ, err)
			continue
		}
		if got := valuesOf(t, a); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.typ, got, tc.want)
		}
		for _, bad := range []string{`{"no":1}`, `[[]]`, ``} {
			err := a.WriteValue(ctx, sel, json.RawMessage(bad))
			if !errors.Is(err, dtype.ErrValue) || !strings.Contains(err.Error(), "write a: value") {
				t.Errorf("%s: value %q: %v", tc.typ, bad, err)
			}
		}
		if got := valuesOf(t, a); got != tc.want {
			t.Errorf("%s: %s after values that were refused, want %s", tc.typ, got, tc.want)
		}
	}
}

// A number that the type of the array cannot hold is refused by name, and a fraction is rounded.
func TestWriteValueThatDoesNotFit(t *testing.T) {
	for _, c := range []struct{ typ, value, err string }{
		{"int8", "300", "300 is outside the range of int8"},
		{"int16", "1.5", "1.5 is not an integer"},
		{"float16", "1e6", "out of range in float16"},
		{"float16", "2049", "2049 is not a float16, the nearest is 2048"},
		{"float16", "-20490", "-20490 is not a float16, the nearest is -20496"},
		{"float32", "16777216", ""},
		{"float32", "16777217", "16777217 is not a float32, the nearest is 16777216"},
		{"float32", "16777217.0", ""},
		{"float64", "9007199254740993", "9007199254740993 is not a float64, the nearest is 9007199254740992"},
		{"float64", "18446744073709551616", ""},
	} {
		a := must.Have(Create(context.Background(), kv.NewMem(), "a", Spec{Shape: []int64{3}, Chunks: []int64{2}, DataType: c.typ}, nil))
		err := a.WriteValue(context.Background(), Sel(), json.RawMessage(c.value))
		_, err2 := a.Type().ParseJSON(nil, json.RawMessage(c.value))
		for _, err := range []error{err, err2} {
			if (err == nil) != (c.err == "") || err != nil && (!errors.Is(err, dtype.ErrValue) || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("%s as %s: %v, want %q", c.value, c.typ, err, c.err)
			}
		}
	}
}

// valuesOf returns the values of an array of one dimension as JSON.
func valuesOf(t *testing.T, a *Array) string {
	t.Helper()
	elems := make([][]byte, a.Shape()[0])
	if a.Type().Variable() {
		v := must.Have(a.ReadVar(context.Background(), Sel()))
		for i := range elems {
			elems[i] = v.At(i)
		}
	} else {
		size := a.Type().Size()
		data := make([]byte, size*len(elems))
		must.Do(t, a.ReadBytes(context.Background(), Sel(), data))
		for i := range elems {
			elems[i] = data[i*size : (i+1)*size]
		}
	}
	var out []string
	for _, elem := range elems {
		out = append(out, string(must.Have(a.Type().PrintFillV3(elem))))
	}
	return strings.Join(out, " ")
}
