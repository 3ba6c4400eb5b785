package picture

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/cf"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// array makes an array of int32 in memory whose elements are their place in C order.
func array(t *testing.T, shape, chunks []int64, attrs string) *zarr.Array {
	t.Helper()
	at := must.Get(zarr.ParseAttributes([]byte(attrs)))(t)
	names := []string{"time", "lat", "lon"}[3-len(shape):]
	a := must.Get(zarr.Create(t.Context(), kv.NewMem(), "t", zarr.Spec{Shape: shape, Chunks: chunks, DataType: "int32", DimensionNames: names, Attributes: at}, nil))(t)
	n := int64(1)
	for _, l := range shape {
		n *= l
	}
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(i)
	}
	must.Do(t, zarr.Write(t.Context(), a, zarr.Sel(), v))
	return a
}

func selection(t *testing.T, a *zarr.Array, text string) zarr.Selection {
	t.Helper()
	if text == "" {
		return zarr.Selection{}
	}
	sel := must.Get(zarr.ParseSelection(text, a.DimensionNames()))(t)
	return sel
}

// Windows have the elements of numpy's a[sel][::n, ::m], turned as asked.
func TestRead(t *testing.T) {
	a := array(t, []int64{3, 4, 5}, []int64{1, 2, 2}, `{}`)
	for _, c := range []struct {
		sel  string
		r    Request
		want string // values by row
		y, x string // index of each row and column
	}{
		{"1", Request{Width: 5, Height: 4}, "[20 21 22 23 24] [25 26 27 28 29] [30 31 32 33 34] [35 36 37 38 39]", "[0 1 2 3]", "[0 1 2 3 4]"},
		{"1", Request{Width: 3, Height: 2}, "[20 22 24] [30 32 34]", "[0 2]", "[0 2 4]"},
		{"1", Request{Width: 3, Height: 2, Up: true}, "[30 32 34] [20 22 24]", "[2 0]", "[0 2 4]"},
		{"1", Request{Width: 2, Height: 3, Transposed: true}, "[20 30] [22 32] [24 34]", "[0 2 4]", "[0 2]"},
		{"", Request{Width: 1, Height: 1}, "[0]", "[0]", "[0]"},
		{":,:,1", Request{Width: 4, Height: 3}, "[1 6 11 16] [21 26 31 36] [41 46 51 56]", "[0 1 2]", "[0 1 2 3]"},
		{"2,::-1,4:0:-2", Request{}, "[59 57] [54 52] [49 47] [44 42]", "[3 2 1 0]", "[4 2]"},
		{"2,::-1,::-1", Request{Height: 2, Width: 2}, "[59 56] [49 46]", "[3 1]", "[4 1]"},
		{"2,1:2,::-1", Request{Up: true}, "[49 48 47 46 45]", "[1]", "[4 3 2 1 0]"},
		{"1:2,1:3,2:3", Request{}, "[27] [32]", "[1 2]", "[2]"},
		{"0,2", Request{Width: 2}, "[10 13]", "[0]", "[0 3]"},
		{"0,0,3", Request{}, "[3]", "[0]", "[0]"},
		{"newaxis,0,2", Request{}, "[10 11 12 13 14]", "[0]", "[0 1 2 3 4]"},
	} {
		c.r.Select = selection(t, a, c.sel)
		w, err := Read(t.Context(), a, c.r)
		if err != nil {
			t.Errorf("%s: %v", c.sel, err)
			continue
		}
		var rows []any
		for row := range slices.Chunk(w.Values, w.X.Len) {
			rows = append(rows, row)
		}
		text := fmt.Sprint(rows...)
		if text != c.want || indices(w.Y) != c.y || indices(w.X) != c.x {
			t.Errorf("%s %+v: %s at %s, %s, want %s at %s, %s", c.sel, c.r, text, indices(w.Y), indices(w.X), c.want, c.y, c.x)
		}
	}
	list := zarr.Orthogonal(zarr.At(0), zarr.List(3, 0, 2, 1), zarr.All())
	w, err := Read(t.Context(), a, Request{Select: list, Height: 2, Width: 1, Up: true})
	if err != nil || fmt.Sprint(w.Values) != "[10 15]" || indices(w.Y) != "[2 3]" {
		t.Errorf("%v at %v, %v", w.Values, indices(w.Y), err)
	}
}

func indices(l Line) string {
	out := make([]int64, l.Len)
	for k := range out {
		out[k] = l.Index(k)
	}
	return fmt.Sprint(out)
}

func TestReadRefuses(t *testing.T) {
	a := array(t, []int64{4, 5}, []int64{2, 2}, `{}`)
	if _, err := Read(t.Context(), a, Request{Select: selection(t, a, "0:0")}); !errors.Is(err, zarr.ErrSelection) {
		t.Errorf("nothing selected: %v", err)
	}
	if _, err := Read(t.Context(), a, Request{Select: zarr.Points([]int64{1}, []int64{1})}); !errors.Is(err, zarr.ErrSelection) {
		t.Errorf("points: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, a, Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	text := must.Get(zarr.Create(t.Context(), kv.NewMem(), "s", zarr.Spec{Shape: []int64{2}, DataType: "string"}, nil))(t)
	if _, err := Read(t.Context(), text, Request{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("text: %v", err)
	}
}

// A window of a plane of any size reads no more chunks than allowed.
func TestReadIsBounded(t *testing.T) {
	store, counts := kvtest.Count(kv.NewMem())
	for i, c := range []struct {
		shape, chunks []int64
		shards        []int64
		r             Request
		most          int64 // chunks read
		least         int   // rows and columns
	}{
		{[]int64{100_000, 100_000}, []int64{1000, 1000}, nil, Request{}, 1024, 30},
		{[]int64{100_000, 100_000}, []int64{1000, 1000}, nil, Request{Chunks: 64}, 64, 8},
		{[]int64{100_000, 100_000}, []int64{1000, 1000}, nil, Request{Chunks: -1, Width: 20, Height: 20}, 400, 20},
		{[]int64{100_000, 100_000}, []int64{100, 100}, []int64{1000, 1000}, Request{Chunks: 64}, 64, 8},
		{[]int64{10_000, 1024, 1024}, []int64{1, 1024, 1024}, nil, Request{}, 1, 1024},
		{[]int64{10_000, 1024, 1024}, []int64{1000, 16, 16}, nil, Request{Chunks: 16}, 16, 4},
		{[]int64{10_000, 1_000_000}, []int64{10_000, 1}, nil, Request{Chunks: 10}, 10, 10},
	} {
		spec := zarr.Spec{Shape: c.shape, Chunks: c.chunks, DataType: "float32", FillValue: json.RawMessage("1")}
		if c.shards != nil {
			spec.Shards = c.shards
		}
		a := must.Get(zarr.Create(t.Context(), store.(kv.Store), fmt.Sprint("a", i), spec, nil))(t)
		counts.Reset()
		w := must.Get(Read(t.Context(), a, c.r))(t)
		got := int64(0)
		for _, n := range counts.Reset() {
			got += int64(n)
		}
		if got > c.most || w.Chunks > c.most || min(w.X.Len, w.Y.Len) < c.least || w.Y.Len*w.X.Len > 1<<20 {
			t.Errorf("%v in %v: %d requests, %d chunks, %d × %d", c.shape, c.chunks, got, w.Chunks, w.Y.Len, w.X.Len)
		}
	}
}

// Colours are read with their pixels, in part and turned like values.
func TestReadColours(t *testing.T) {
	a := must.Get(zarr.Create(t.Context(), kv.NewMem(), "t", zarr.Spec{Shape: []int64{2, 3, 3}, Chunks: []int64{1, 2, 2}, DataType: "uint8"}, nil))(t)
	v := make([]uint8, 18)
	for i := range v {
		v[i] = uint8(i)
	}
	must.Do(t, zarr.Write(t.Context(), a, zarr.Sel(), v))
	w, err := Read(t.Context(), a, Request{Width: 2, Up: true})
	if err != nil || fmt.Sprint(w.Pixels) != "[9 10 11 255 15 16 17 255 0 1 2 255 6 7 8 255]" || fmt.Sprint(w.At) != "[1 0 0]" {
		t.Errorf("%+v, %v", w, err)
	}
	if got, want := w.Image(Map{}, Limits{}).NRGBAAt(1, 0), (color.NRGBA{15, 16, 17, 255}); got != want {
		t.Errorf("a pixel is %v, want %v", got, want)
	}
}

// Values are missing that the decoder says are missing, and no others.
func TestReadMissing(t *testing.T) {
	a := array(t, []int64{2, 3}, []int64{2, 3}, `{"_FillValue":2,"missing_value":4,"scale_factor":0.5,"add_offset":1}`)
	dec := must.Get(cf.NewDecoder(a.Meta()))(t)
	w, err := Read(t.Context(), a, Request{Decoder: dec})
	if err != nil || fmt.Sprint(w.Values) != "[1 1.5 NaN 2.5 NaN 3.5]" {
		t.Errorf("%v, %v", w.Values, err)
	}
	grey, _ := MapByName("grey")
	img := w.Image(grey, Limits{Lo: 1, Hi: 3.5})
	for i, want := range []color.NRGBA{{0, 0, 0, 255}, {51, 51, 51, 255}, {}, {153, 153, 153, 255}, {}, {255, 255, 255, 255}} {
		if got := img.NRGBAAt(i%3, i/3); got != want {
			t.Errorf("pixel %d is %v, want %v", i, got, want)
		}
	}
	if w, err = Read(t.Context(), a, Request{}); err != nil || fmt.Sprint(w.Values) != "[0 1 2 3 4 5]" {
		t.Errorf("stored: %v, %v", w.Values, err)
	}
}

// Every type of numbers has a value.
func TestReadTypes(t *testing.T) {
	for _, c := range []struct{ typ, value, want string }{
		{`bool`, `true`, "1"},
		{`int8`, `-3`, "-3"},
		{`int4`, `-3`, "-3"},
		{`uint64`, `18446744073709551615`, "1.8446744073709552e+19"},
		{`float16`, `1.5`, "1.5"},
		{`bfloat16`, `1.5`, "1.5"},
		{`float64`, `"NaN"`, "NaN"},
		{`float32`, `"-Infinity"`, "-Inf"},
		{`complex64`, `[3,-4]`, "5"},
		{`{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":1}}`, `7`, "7"},
		{`{"name":"numpy.timedelta64","configuration":{"unit":"s","scale_factor":1}}`, `-9223372036854775808`, "NaN"},
	} {
		a, err := zarr.Create(t.Context(), kv.NewMem(), "t", zarr.Spec{Shape: []int64{1}, DataType: c.typ, FillValue: json.RawMessage(c.value)}, nil)
		if err != nil {
			t.Errorf("%s: %v", c.typ, err)
			continue
		}
		w, err := Read(t.Context(), a, Request{})
		if err != nil || fmt.Sprint(w.Values) != "["+c.want+"]" {
			t.Errorf("%s: %v, %v", c.typ, w, err)
		}
	}
}

// Rows go up where their coordinate ascends, but depths and pressures go down, and latitudes of
// two axes count where there is no other coordinate.
func TestUp(t *testing.T) {
	store := kv.NewMem()
	a := must.Get(zarr.Create(t.Context(), store, "t", zarr.Spec{Shape: []int64{2, 2}, DataType: "int8", DimensionNames: []string{"lev", "lon"}}, nil))(t)
	beside := func(ctx context.Context, name string) (*zarr.Node, error) { return zarr.Open(ctx, store, name, nil) }
	for _, c := range []struct {
		levels []float32
		attrs  string
		want   bool
	}{
		{nil, "", false}, {[]float32{-10, 10}, `{}`, true}, {[]float32{10, -10}, `{}`, false}, {[]float32{1, 2, 3}, `{}`, false},
		{[]float32{0, 10}, `{"positive":"down"}`, false}, {[]float32{10, 0}, `{"positive":"Down"}`, true}, {[]float32{0, 10}, `{"positive":"up","units":"hPa"}`, true},
		{[]float32{1000, 10}, `{"units":"hPa"}`, true}, {[]float32{10, 1000}, `{"units":"Pa"}`, false}, {[]float32{0, 10}, `{"standard_name":"depth"}`, false},
	} {
		if c.levels != nil {
			attrs := must.Get(zarr.ParseAttributes([]byte(c.attrs)))(t)
			l := must.Get(zarr.Create(t.Context(), store, "lev", zarr.Spec{Shape: []int64{int64(len(c.levels))}, DataType: "float32", Attributes: attrs}, &zarr.OpenOptions{Overwrite: true}))(t)
			must.Do(t, zarr.Write(t.Context(), l, zarr.Sel(), c.levels))
		}
		if up := NewAxis(t.Context(), a, 0, beside).Up; up != c.want {
			t.Errorf("%v %s: %v", c.levels, c.attrs, up)
		}
	}
	for units, want := range map[string]bool{"degrees_north": true, "degree_N": true, "degrees_east": false, "m": false} {
		attrs := must.Get(zarr.ParseAttributes([]byte(`{"units":"` + units + `"}`)))(t)
		lat := must.Get(zarr.Create(t.Context(), store, "XLAT", zarr.Spec{Shape: []int64{1, 3, 2}, DataType: "float32", DimensionNames: []string{"Time", "y", "x"}, Attributes: attrs}, &zarr.OpenOptions{Overwrite: true}))(t)
		must.Do(t, zarr.Write(t.Context(), lat, zarr.Sel(), []float32{40, 41, 45, float32(math.NaN()), 50, 51}))
		v := must.Get(zarr.Create(t.Context(), store, "v", zarr.Spec{Shape: []int64{3, 2}, DataType: "int8", DimensionNames: []string{"y", "x"}}, &zarr.OpenOptions{Overwrite: true}))(t)
		if up := NewRows(t.Context(), v, 0, beside).Up; up != want {
			t.Errorf("latitudes in %s: %v", units, up)
		}
	}
}

// A row has the least and the greatest of elements that share a column, in their order, and all
// elements where there are columns for them.
func TestReadRow(t *testing.T) {
	a := array(t, []int64{100_003}, []int64{1000}, `{}`)
	must.Do(t, zarr.Write(t.Context(), a, zarr.Sel(zarr.At(54_321)), []int32{-7}))
	must.Do(t, zarr.Write(t.Context(), a, zarr.Sel(zarr.At(100_002)), []int32{1 << 20}))
	for _, c := range []struct {
		sel   string
		width int
		want  string // length, skip, least, greatest
	}{{"", 800, "1586 63 -7 1048576"}, {"54000:55000", 800, "1000 1 -7 54999"}, {"::-1", 100, "198 501 -7 1048576"}, {"7", 10, "1 1 7 7"}} {
		w := must.Get(ReadRow(t.Context(), a, Request{Select: selection(t, a, c.sel), Width: c.width}))(t)
		l, _ := Percentiles(w.Values, 0, 100)
		if got := fmt.Sprint(w.X.Len, w.X.Skip, l.Lo, l.Hi); got != strings.Replace(c.want, "1048576", "1.048576e+06", 1) || len(w.Values) != w.X.Len {
			t.Errorf("%s: %s, want %s", c.sel, got, c.want)
		}
		if last := w.X.Index(w.X.Len - 1); last < 0 || last > 100_002 {
			t.Errorf("%s: the last is %d", c.sel, last)
		}
	}
	w := must.Get(ReadRow(t.Context(), a, Request{Width: 800, Chunks: 10}))(t)
	if w.X.Every < 2 || w.Chunks > 11 {
		t.Errorf("%+v", w.X)
	}
	for _, sel := range []string{"", "::-1", "99::-1"} {
		w := must.Get(ReadRow(t.Context(), a, Request{Width: 800, Elements: 32, Select: selection(t, a, sel)}))(t)
		if n := int64(w.X.Len); n < 3 || n > 4 || w.Values[n-2] != float64(w.X.Index(int(n)-2)) {
			t.Errorf("%s: %v of %+v", sel, w.Values, w.X)
		}
	}
}

// Rows that are longer than any memory, and elements that are wide, are read in parts.
func TestReadWide(t *testing.T) {
	far := must.Get(zarr.Create(t.Context(), kv.NewMem(), "t", zarr.Spec{Shape: []int64{1 << 40}, Chunks: []int64{1 << 30}, DataType: "uint8"}, nil))(t)
	r := Request{Width: 10, Elements: 100}
	if w := must.Get(ReadRow(t.Context(), far, r))(t); w.X.Every < 1<<36 || w.X.Len > 20 {
		t.Errorf("%+v", w.X)
	}
	r.Chunks = -1
	if row := must.Get(NewRow(far, r))(t); row.Len() != 1<<40 {
		t.Error(row.Len())
	}
	wide := must.Get(dtype.NewStruct([]dtype.Field{{Name: "n", Type: dtype.NewInt(64)}, {Name: "s", Type: must.Get(dtype.NewFixedBytes(1 << 20))(t)}}))(t)
	a := must.Get(zarr.Create(t.Context(), kv.NewMem(), "t", zarr.Spec{Shape: []int64{1000, 1000}, Chunks: []int64{1, 1}, Type: wide}, nil))(t)
	if w := must.Get(Read(t.Context(), a, Request{}))(t); w.Y.Len*w.X.Len*wide.Size() > WideBytes {
		t.Errorf("%d of %d rows, columns", w.Y.Len, w.X.Len)
	}
	if row := must.Get(NewRow(a, r))(t); row.Piece(PieceElements) != 7 {
		t.Error(row.Piece(PieceElements))
	}
}

// Integers keep all digits, where some share a column too.
func TestRowOfIntegers(t *testing.T) {
	for _, typ := range []string{"int64", "uint64"} {
		a := must.Get(zarr.Create(t.Context(), kv.NewMem(), "t", zarr.Spec{Shape: []int64{8}, DataType: typ}, nil))(t)
		const n = 1<<60 + 1
		values := []int64{n, n + 1, n - 1, n, n + 9, n + 8, n + 5, n + 7}
		if typ == "int64" {
			must.Do(t, zarr.Write(t.Context(), a, zarr.Sel(), values))
		} else {
			must.Do(t, zarr.Write(t.Context(), a, zarr.Sel(), []uint64{n, n + 1, n - 1, n, n + 9, n + 8, n + 5, n + 7}))
		}
		w := must.Get(ReadRow(t.Context(), a, Request{Width: 1}))(t)
		var got []string
		for k := range w.Values {
			text, _ := w.IntegerAt(k)
			got = append(got, text)
		}
		lo, _ := w.Integer(w.Values[0], false)
		if want := "[1152921504606846976 1152921504606846986]"; fmt.Sprint(got) != want || lo != "1152921504606846976" {
			t.Errorf("%s: %v %s, want %s", typ, got, lo, want)
		}
	}
}

// Limits are those of the whole array, within the range that it calls valid.
func TestRange(t *testing.T) {
	for attrs, want := range map[string]Limits{
		`{}`: {Lo: 1, Hi: 58}, `{"valid_range":[10,20]}`: {Lo: 10, Hi: 20}, `{"valid_min":30}`: {Lo: 31, Hi: 58}, `{"valid_max":40,"scale_factor":0.5}`: {Lo: 0.5, Hi: 19.5},
		`{"valid_range":[10,20],"scale_factor":-0.5}`: {Lo: -10, Hi: -5}, `{"valid_max":20,"scale_factor":-1}`: {Lo: -20, Hi: 0}, `{"valid_max":1e12,"scale_factor":0.5}`: {Lo: 0.5, Hi: 29},
		`{"valid_min":-1e12,"_FillValue":-5}`: {Lo: 1, Hi: 58}, `{"valid_max":40,"_FillValue":40,"scale_factor":100}`: {Lo: 100, Hi: 5800}, `{"valid_range":[10,20],"_Unsigned":"true"}`: {Lo: 10, Hi: 20},
	} {
		a := array(t, []int64{3, 4, 5}, []int64{1, 2, 2}, attrs)
		dec := must.Get(cf.NewDecoder(a.Meta()))(t)
		l, ok, err := Range(t.Context(), a, Request{Decoder: dec})
		if err != nil || !ok || l != want {
			t.Errorf("%s: %v %v %v, want %v", attrs, l, ok, err, want)
		}
	}
}

// Valid values are in units of stored ones, also where decoding does not change the type.
func TestValidRange(t *testing.T) {
	for _, c := range []struct {
		typ, attrs string
		want       Limits
	}{
		{"float64", `{"valid_range":[10,20],"scale_factor":0.5,"_FillValue":-1}`, Limits{Lo: 5, Hi: 10}},
		{"int8", `{"valid_range":[0,255],"_Unsigned":"true"}`, Limits{Lo: 0, Hi: 255}}, {"int8", `{"valid_range":[0,-1],"_Unsigned":"true"}`, Limits{Lo: 0, Hi: 255}},
		{"int16", `{"valid_range":[-1e9,1e9],"scale_factor":2}`, Limits{Lo: -65536, Hi: 65534}}, {"uint64", `{"valid_range":[-1,1e300],"scale_factor":1}`, Limits{Lo: 0, Hi: math.Ldexp(1, 64)}},
		{"int64", `{"valid_range":[-1e300,1e300],"scale_factor":1}`, Limits{Lo: -math.Ldexp(1, 63), Hi: math.Ldexp(1, 63)}},
		{"int32", `{"valid_range":[1,2],"units":"seconds since 2000-01-01"}`, Limits{Lo: 946684801e6, Hi: 946684802e6}},
	} {
		a := must.Get(zarr.Create(t.Context(), kv.NewMem(), "t", zarr.Spec{Shape: []int64{1}, DataType: c.typ, Attributes: must.Get(zarr.ParseAttributes([]byte(c.attrs)))(t)}, nil))(t)
		if lo, hi := validRange(a, must.Get(cf.NewDecoder(a.Meta()))(t)); (Limits{Lo: lo, Hi: hi}) != c.want {
			t.Errorf("%s %s: %v to %v, want %v", c.typ, c.attrs, lo, hi, c.want)
		}
	}
}

// Elements of several numbers have a part.
func TestParts(t *testing.T) {
	for part, want := range map[string]string{"": "[5]", "real": "[3]", "imag": "[-4]"} {
		a := must.Get(zarr.Create(t.Context(), kv.NewMem(), "t", zarr.Spec{Shape: []int64{1}, DataType: "complex64", FillValue: json.RawMessage("[3,-4]")}, nil))(t)
		if w, err := ReadRow(t.Context(), a, Request{Part: part, Width: 9}); err != nil || fmt.Sprint(w.Values) != want {
			t.Errorf("%s: %v %v", part, w, err)
		}
	}
}

// Colours are what an axis or an attribute calls so.
func TestHasColours(t *testing.T) {
	for _, c := range []struct {
		names []string
		n     int64
		attrs string
		want  bool
	}{
		{[]string{"y", "x", "c"}, 3, `{}`, true}, {[]string{"y", "x", "RGBA"}, 4, `{}`, true}, {[]string{"time", "lat", "lon"}, 4, `{}`, false},
		{nil, 3, `{}`, true}, {nil, 4, `{}`, false}, {nil, 4, `{"photometric":"rgb"}`, true}, {[]string{"y", "x", "c"}, 5, `{}`, false},
	} {
		a := must.Get(zarr.Create(t.Context(), kv.NewMem(), "t", zarr.Spec{Shape: []int64{2, 2, c.n}, DataType: "uint8", DimensionNames: c.names, Attributes: must.Get(zarr.ParseAttributes([]byte(c.attrs)))(t)}, nil))(t)
		if got := HasColours(a, false); got != c.want {
			t.Errorf("%v %d %s: %v", c.names, c.n, c.attrs, got)
		}
	}
}

func TestPercentilesAreThoseOfSorting(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		v := make([]float64, 1+r.IntN(60))
		for i := range v {
			v[i] = float64(r.IntN(1 + r.IntN(90)))
		}
		k := r.IntN(len(v))
		got := nth(slices.Clone(v), k)
		if sorted := slices.Sorted(slices.Values(v)); got != sorted[k] {
			t.Fatalf("%v: the %d. is %v, not %v", v, k, got, sorted[k])
		}
	}
}

func TestLimits(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	v := []float64{nan, inf, -inf}
	for i := range 101 {
		v = append(v, float64(i))
	}
	if l, ok := Percentiles(v, 2, 98); !ok || l != (Limits{Lo: 2, Hi: 98}) {
		t.Errorf("%v, %v", l, ok)
	}
	if l, ok := Percentiles([]float64{1, 1, 1, 1, 7}, 2, 50); !ok || l != (Limits{Lo: 1, Hi: 7}) {
		t.Errorf("mostly one value: %v, %v", l, ok)
	}
	if _, ok := Percentiles([]float64{nan, inf}, 2, 98); ok {
		t.Error("limits of nothing")
	}
	if h := Histogram(v, Limits{Lo: 0, Hi: 100}, 4); fmt.Sprint(h) != "[25 25 25 26]" {
		t.Errorf("histogram %v", h)
	}
	most := Limits{Lo: -math.MaxFloat64, Hi: math.MaxFloat64}
	for v, want := range map[float64]float64{-inf: 0, -math.MaxFloat64: 0, 0: 0.5, math.MaxFloat64: 1, inf: 1} {
		if got := most.place(v); got != want {
			t.Errorf("%g lies at %g, want %g", v, got, want)
		}
	}
}

// The lightness of sequential maps grows evenly.
func TestMaps(t *testing.T) {
	linear := func(c uint8) float64 {
		v := float64(c) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	lightness := func(c color.NRGBA) float64 { // of Oklab
		r, g, b := linear(c.R), linear(c.G), linear(c.B)
		l := math.Cbrt(0.4122214708*r + 0.5363325363*g + 0.0514459929*b)
		m := math.Cbrt(0.2119034982*r + 0.6806995451*g + 0.1073969566*b)
		s := math.Cbrt(0.0883024619*r + 0.2817188376*g + 0.6299787005*b)
		return 0.2104542553*l + 0.7936177850*m - 0.0040720468*s
	}
	for _, name := range Maps() {
		m, ok := MapByName(name)
		if !ok {
			t.Fatal(name)
		}
		if m.Diverging || m.Cyclic || name == "grey" {
			continue
		}
		const n = 10
		all := lightness(m.At(1)) - lightness(m.At(0))
		for i := range n {
			step := lightness(m.At(float64(i+1)/n)) - lightness(m.At(float64(i)/n))
			if step < 0.6*all/n || step > 1.5*all/n {
				t.Errorf("%s: lightness grows by %.3f between %d and %d tenths, of %.3f in all", name, step, i, i+1, all)
			}
		}
	}
	sea, _ := MapByName("sea")
	if m, ok := MapByName("sea_r"); !ok || m.At(0) != sea.At(1) || m.At(1) != sea.At(0) {
		t.Error("sea_r is not sea turned around")
	}
	if _, ok := MapByName("no"); ok {
		t.Error("a map without a name")
	}
}

// A scale of ratios has equal distances for them, and ticks at round values.
func TestLogarithmic(t *testing.T) {
	l := Limits{Lo: -3, Hi: 1000}.Logarithmic()
	for v, want := range map[float64]float64{-1: 0, 0: 0, 1: 0, 10: 1. / 3, 1000: 1, math.Inf(1): 1} {
		if got := l.place(v); math.Abs(got-want) > 1e-12 {
			t.Errorf("%g lies at %g, want %g", v, got, want)
		}
	}
	if got := l.at(l.place(37)); math.Abs(got-37) > 1e-9 {
		t.Error(got)
	}
	for l, want := range map[Limits]string{
		l:                                    "1 10 100 1000",
		{Lo: 3, Hi: 70, Log: true}:           "5 10 20 50",
		{Lo: 1e-300, Hi: 1e300, Log: true}:   "1e-300 1e-200 1e-100 1 1e+100 1e+200 1e+300",
		{Lo: 100, Hi: 104, Log: true}:        "100 101 102 103 104",
		{Lo: 5e-324, Hi: 1.7e308, Log: true}: "1e-300 1e-200 1e-100 1 1e+100 1e+200 1e+300",
		{Lo: 2, Hi: 2, Log: true}:            "2",
		{Lo: 1, Hi: math.Inf(1), Log: true}:  "",
		Limits{Lo: -2, Hi: -1}.Logarithmic(): "0.001 0.01 0.1 1",
		{Lo: 1.0001, Hi: 1.0003, Log: true}:  "1.0001 1.00015 1.0002 1.00025 1.0003",
		Limits{Hi: 5e-324}.Logarithmic():     "5e-324",
	} {
		var texts []string
		for _, tick := range l.Ticks(7, dtype.NewFloat(64), nil) {
			texts = append(texts, tick.Text)
		}
		if got := strings.Join(texts, " "); want != "" && got != want {
			t.Errorf("%v: %s, want %s", l, got, want)
		}
	}
	if l := (Limits{Hi: 1e-322}).Logarithmic(); fmt.Sprint(Histogram([]float64{0, 5e-324, 1e-322}, l, 2)) != "[1 1]" {
		t.Errorf("%v: %v", l, Histogram([]float64{0, 5e-324, 1e-322}, l, 2))
	}
}

// Classes have the colours and texts of their attributes, also where a converter wrote a text.
func TestClasses(t *testing.T) {
	for attrs, want := range map[string]string{
		`{"flag_values":[1,3],"flag_meanings":"open_sea land"}`:        "1 open sea, 3 land",
		`{"flag_values":"1, 3","flag_meanings":"sea land"}`:            "1 sea, 3 land",
		`{"flag_values":[1,3],"flag_meanings":"sea"}`:                  "",
		`{"flag_values":[1,3],"flag_meanings":"a b","scale_factor":2}`: "",
		`{"flag_values":[1],"flag_meanings":"a","flag_masks":[1]}`:     "",
		`{"flag_meanings":"a b"}`:                                      "",
	} {
		a := array(t, []int64{1, 4, 5}, []int64{1, 2, 2}, attrs)
		all := Classes(a, nil)
		var texts []string
		for _, c := range all {
			texts = append(texts, Number(c.Value, 0, 64)+" "+c.Text)
		}
		if got := strings.Join(texts, ", "); got != want {
			t.Errorf("%s: %s, want %s", attrs, got, want)
		}
		if all == nil {
			continue
		}
		shade := ClassShades(all)
		if got := []uint8{shade(1), shade(3), shade(2), shade(math.NaN())}; fmt.Sprint(got) != "[1 2 255 0]" {
			t.Error(got)
		}
		p := Plot{Array: a}
		f, err := p.Figure(t.Context())
		if err != nil || len(f.Map.Classes) != 2 || f.PNG(io.Discard, 300) != nil || !strings.Contains(f.Terminal(40, 10, TrueColours), "3 land") {
			t.Error(err)
		}
	}
	a := array(t, []int64{1, 4, 5}, []int64{1, 2, 2}, `{"flag_values":[1,-1],"flag_meanings":"a b","_Unsigned":"true"}`)
	dec, err := cf.NewDecoder(a.Meta())
	if err != nil {
		t.Fatal(err)
	}
	if all, over := Classes(a, dec), math.Ldexp(1, a.Type().Bits()); all[0].Value != 1 || all[1].Value != over-1 || Classes(a, nil)[1].Value != -1 {
		t.Error(all)
	}
}

// The ends of integers have all their digits, also those that no float64 has.
func TestWindowInteger(t *testing.T) {
	for _, c := range []struct {
		name, dataType string
		bits           []uint64
		want           string
	}{
		{"identifiers", "uint32", []uint64{70001, 4000000001}, "70001 4000000001"},
		{"beyond float64", "uint64", []uint64{1<<63 + 2, 1<<63 + 1, 1<<64 - 2, 1<<64 - 1}, "9223372036854775809 18446744073709551615"},
		{"two sides", "int64", []uint64{^uint64(1 << 62), 3, 1<<53 + 1}, "-4611686018427387905 9007199254740993"},
	} {
		n := int64(len(c.bits))
		a := must.Get(zarr.Create(t.Context(), kv.NewMem(), "t", zarr.Spec{Shape: []int64{n}, Chunks: []int64{n}, DataType: c.dataType}, nil))(t)
		var b []byte
		for i, word := range c.bits {
			b = binary.LittleEndian.AppendUint64(b, word)[:(i+1)*a.Type().Size()]
		}
		must.Do(t, a.WriteBytes(t.Context(), zarr.Sel(), b))
		w := must.Get(Read(t.Context(), a, Request{}))(t)
		all, _ := Percentiles(w.Values, 0, 100)
		lo, hi := (&Figure{Window: w}).Ends(all)
		if got := lo + " " + hi; got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Labels have the colours of their digits, all of them, and others a colour of their own; 0 has none.
func TestLabels(t *testing.T) {
	w := must.Get(Read(t.Context(), of(t, int64(0), 9007199254740992, 9007199254740993, 7, 8), Request{}))(t)
	got := w.Labels(map[string][4]uint8{"9007199254740993": {1, 2, 3, 255}, "7": {9, 9, 9, 0}})
	if fmt.Sprint(got[:4], got[8:16]) != "[0 0 0 0] [1 2 3 255 9 9 9 0]" || got[7] != 255 || fmt.Sprint(got[4:7]) == "[1 2 3]" || got[19] != 255 {
		t.Error(got)
	}
}
