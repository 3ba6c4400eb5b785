package zarr

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

type station struct {
	Name  string `zarr:"name"`
	At    [2]float64
	Since time.Time
	Note  int16 `zarr:"-"`
	_     int
}

// convert writes and reads values of a Go type, whole and in part.
func convert[T any](t *testing.T, v Version, typ dtype.Type, values []T, codecs ...string) {
	t.Helper()
	ctx := context.Background()
	spec := Spec{Version: v, Shape: []int64{int64(len(values))}, Chunks: []int64{2}, Type: typ}
	for _, c := range codecs {
		spec.Codecs = []byte(c)
	}
	a := must(Create(ctx, kv.NewMem(), "a", spec, nil))
	if err := Write(ctx, a, Sel(), values); err != nil {
		t.Errorf("%v: %v", typ, err)
		return
	}
	got, _, err := Read[T](ctx, a, Sel())
	if err != nil || !reflect.DeepEqual(got, values) {
		t.Errorf("%v: %v (%v), want %v", typ, got, err, values)
	}
	part := make([]T, 1)
	if err := ReadInto(ctx, a, Sel(Slice(1, 2, 1)), part); err != nil || !reflect.DeepEqual(part, values[1:2]) {
		t.Errorf("%v: %v (%v), want %v", typ, part, err, values[1:2])
	}
	if err := ReadInto(ctx, a, Sel(), make([]T, len(values)+1)); !errors.Is(err, ErrSelection) {
		t.Errorf("%v: too much memory: %v", typ, err)
	}
	must(0, Fill(ctx, a, Sel(), values[0]))
	if got := mustRead(Read[T](ctx, a, Sel(At(-1)))); !reflect.DeepEqual(got, values[:1]) {
		t.Errorf("%v: %v after writing one value, want %v", typ, got, values[:1])
	}
}

func typed(t *testing.T, v Version, spelled string) dtype.Type {
	t.Helper()
	if v == V2 {
		return must(dtype.ParseV2([]byte(spelled), dtype.Type{}))
	}
	return must(dtype.ParseV3([]byte(spelled)))
}

func TestConverted(t *testing.T) {
	utc := func(y, mo, d, h, mi, s, ns int) time.Time {
		return time.Date(y, time.Month(mo), d, h, mi, s, ns, time.UTC)
	}
	floats := []float32{0.5, -2, 1}
	for _, name := range []string{"float16", "bfloat16", "float8_e4m3", "float6_e2m3fn", "float4_e2m1fn"} {
		convert(t, V3, typed(t, V3, `"`+name+`"`), floats)
	}
	convert(t, V2, typed(t, V2, `">f2"`), []float64{1.5, math.Inf(1), -3})
	convert(t, V3, typed(t, V3, `"float32"`), []float64{1.5, math.Inf(1), -3})
	convert(t, V3, typed(t, V3, `"complex_float16"`), []complex64{1 + 2i, -1i, 3})
	convert(t, V3, typed(t, V3, `"int4"`), []int8{-8, 7, 0})
	convert(t, V3, typed(t, V3, `"uint2"`), []uint8{3, 1, 0})
	convert(t, V2, typed(t, V2, `">U3"`), []string{"a", "日本語", ""})
	convert(t, V2, typed(t, V2, `"|S3"`), []string{"a", "abc", ""})
	convert(t, V2, typed(t, V2, `"|S3"`), [][]byte{[]byte("a"), []byte("abc"), {}})
	convert(t, V3, typed(t, V3, `"r16"`), [][2]byte{{1, 2}, {3, 4}, {5, 6}})
	convert(t, V3, typed(t, V3, `"r16"`), [][]byte{{1, 2}, {3, 4}, {5, 6}})
	convert(t, V2, typed(t, V2, `"<M8[10s]"`), []time.Time{utc(1969, 12, 31, 23, 59, 50, 0), {}, utc(2024, 2, 29, 12, 0, 10, 0)})
	convert(t, V2, typed(t, V2, `"<M8[M]"`), []time.Time{utc(1969, 11, 1, 0, 0, 0, 0), {}, utc(2024, 2, 1, 0, 0, 0, 0)})
	convert(t, V2, typed(t, V2, `"<M8[Y]"`), []time.Time{utc(-5, 1, 1, 0, 0, 0, 0), {}, utc(2024, 1, 1, 0, 0, 0, 0)})
	convert(t, V2, typed(t, V2, `">M8[W]"`), []time.Time{utc(1969, 12, 25, 0, 0, 0, 0), utc(1970, 1, 1, 0, 0, 0, 0)})
	convert(t, V2, typed(t, V2, `"<M8[ns]"`), []time.Time{utc(1969, 12, 31, 23, 59, 59, 999999999), utc(2024, 2, 29, 12, 0, 0, 1)})
	least, greatest := time.Unix(0, -math.MaxInt64).UTC(), time.Unix(0, math.MaxInt64).UTC()
	convert(t, V2, typed(t, V2, `"<M8[ns]"`), []time.Time{least, greatest})
	convert(t, V2, typed(t, V2, `"<M8[as]"`), []time.Time{utc(1969, 12, 31, 23, 59, 51, 0), utc(1970, 1, 1, 0, 0, 9, 0)})
	convert(t, V2, typed(t, V2, `"<M8[fs]"`), []time.Time{utc(1969, 12, 31, 23, 59, 59, 999999999), utc(1970, 1, 1, 2, 0, 0, 1)})
	convert(t, V2, typed(t, V2, `"<m8[7ms]"`), []time.Duration{-7 * time.Millisecond, 21 * time.Millisecond, math.MinInt64})
	convert(t, V2, typed(t, V2, `"<m8[h]"`), []time.Duration{-time.Hour, 48 * time.Hour})
	convert(t, V2, typed(t, V2, `"<m8[ps]"`), []time.Duration{-time.Nanosecond, time.Hour})
	convert(t, V2, typed(t, V2, `"<m8[ps]"`), []int64{-1, 5})

	stations := []station{{Name: "a", At: [2]float64{1, 2}, Since: utc(2000, 1, 2, 3, 4, 5, 0)}, {Name: "bé"}}
	convert(t, V2, typed(t, V2, `[["name","<U4"],["At",">f8",[2]],["Since","<M8[s]"]]`), stations)
	type flat struct {
		X float32
		N struct{ A, B uint8 }
		R [3]byte
	}
	convert(t, V3, must(TypeOf[flat]()), []flat{{X: 1.5, N: struct{ A, B uint8 }{1, 2}, R: [3]byte{7, 8, 9}}, {X: -1}})
	convert(t, V2, typed(t, V2, `[["m","<i2",[2,3]]]`), []struct {
		M [2][3]int16 `zarr:"m"`
	}{{M: [2][3]int16{{1, 2, 3}, {4, 5, 6}}}, {}})
	convert(t, V2, must(TypeOf[[]int16]()), [][]int16{{1, -2, 3}, {}, {4}}, `{"filters":[{"id":"vlen-array","dtype":"<i2"}],"compressor":null}`)
	convert(t, V2, must(TypeOf[[]uint32]()), [][]uint32{{}, {1 << 31}}, `{"filters":[{"id":"vlen-array","dtype":">u4"}],"compressor":null}`)
}

// TestConvertedParts: a Go struct may leave fields out, and can then only be
// read.
func TestConvertedParts(t *testing.T) {
	ctx := context.Background()
	a := must(Create(ctx, kv.NewMem(), "a", Spec{Shape: []int64{2}, Type: typed(t, V2, `[["a","<i4"],["b","<f8"],["c","<i2"]]`), Version: V2}, nil))
	type all struct {
		A int32   `zarr:"a"`
		B float64 `zarr:"b"`
		C int16   `zarr:"c"`
	}
	type some struct {
		C int16 `zarr:"c"`
		A int32 `zarr:"a"`
	}
	must(0, Write(ctx, a, Sel(), []all{{1, 2.5, 3}, {4, 5, 6}}))
	if got := mustRead(Read[some](ctx, a, Sel())); got[0] != (some{3, 1}) || got[1] != (some{6, 4}) {
		t.Errorf("%v", got)
	}
	if err := Write(ctx, a, Sel(), []some{{}, {}}); !errors.Is(err, ErrType) {
		t.Errorf("half a struct was written: %v", err)
	}
}

func TestConvertedErrors(t *testing.T) {
	ctx := context.Background()
	array := func(dataType string) *Array {
		return must(Create(ctx, kv.NewMem(), "a", Spec{Version: V2, Shape: []int64{1}, DataType: dataType}, nil))
	}
	generic := must(Create(ctx, kv.NewMem(), "a", Spec{Shape: []int64{1}, Type: must(dtype.NewDatetime("generic", 1))}, nil))
	read := func(_ any, _ []int64, err error) error { return err }
	for name, c := range map[string]struct{ err, want error }{
		"narrowing":        {read(Read[float32](ctx, array("<f8"), Sel())), ErrType},
		"field missing":    {read(Read[struct{ X int8 }](ctx, array(`[["y","|i1"]]`), Sel())), ErrType},
		"field type":       {read(Read[struct{ X int8 }](ctx, array(`[["X","|u1"]]`), Sel())), ErrType},
		"no struct":        {read(Read[struct{ X int8 }](ctx, array("|i1"), Sel())), ErrType},
		"array length":     {read(Read[[3]byte](ctx, array("|V4"), Sel())), ErrType},
		"generic":          {read(Read[time.Time](ctx, generic, Sel())), ErrType},
		"months":           {read(Read[time.Duration](ctx, array("<m8[M]"), Sel())), ErrType},
		"counts":           {read(Read[time.Duration](ctx, array("<i8"), Sel())), ErrType},
		"text":             {Write(ctx, array("<U2"), Sel(), []string{"abc"}), ErrValue},
		"UTF-8":            {Write(ctx, array("<U2"), Sel(), []string{"\xff"}), ErrValue},
		"bytes":            {Write(ctx, array("|S2"), Sel(), []string{"abc"}), ErrValue},
		"raw":              {Write(ctx, array("|V2"), Sel(), [][]byte{{1}}), ErrValue},
		"float16":          {Write(ctx, array("<f2"), Sel(), []float64{1e6}), ErrValue},
		"below ns":         {Write(ctx, array("<M8[ns]"), Sel(), []time.Time{time.Unix(0, math.MinInt64)}), ErrValue},
		"above ns":         {Write(ctx, array("<M8[ns]"), Sel(), []time.Time{time.Unix(0, math.MaxInt64).Add(1)}), ErrValue},
		"year":             {Write(ctx, array("<M8[ns]"), Sel(), []time.Time{time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)}), ErrValue},
		"duration":         {Write(ctx, array("<m8[as]"), Sel(), []time.Duration{time.Hour}), ErrValue},
		"how many":         {Write(ctx, array("<U2"), Sel(), []string{"a", "b"}), ErrSelection},
		"a type of no use": {read(Read[chan int](ctx, array("|i1"), Sel())), ErrType},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
	if _, err := TypeOf[map[string]int](); !errors.Is(err, ErrType) {
		t.Error(err)
	}
	if _, err := TypeOf[struct{ S string }](); !errors.Is(err, ErrType) {
		t.Error("a struct of strings has no fixed size")
	}
	type loop struct{ Next []loop }
	if _, err := TypeOf[loop](); !errors.Is(err, ErrType) {
		t.Error(err)
	}
	if _, err := TypeOf[[][]int8](); !errors.Is(err, ErrType) {
		t.Error(err)
	}
	if err := ReadInto[float64](ctx, array("<f2"), Sel(), nil); !errors.Is(err, ErrSelection) {
		t.Error(err)
	}
	small := array("<f2")
	small.opts.MaxResultBytes = 7
	if _, _, err := Read[float64](ctx, small, Sel()); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

// TestTimes: counts survive the way through time.Time and back wherever they
// can be said.
func TestTimes(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		unit := []string{"Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"}[r.IntN(10)]
		scale := int64(1)
		if r.IntN(2) == 0 {
			scale = 1 + r.Int64N(1000)
		}
		count := int64(r.Uint64()) >> r.IntN(64)
		when, ok := timeAt(count, unit, scale)
		if !ok || when.IsZero() {
			continue
		}
		if got, ok := countOf(when, unit, scale); !ok || got != count {
			t.Fatalf("seed %d: %d × %d %s is %v, which is %d", seed, count, scale, unit, when, got)
		}
	}
}

// TestCreateOrder: v2 wants a byte order of every scalar, and keeps the one that
// was asked for.
func TestCreateOrder(t *testing.T) {
	for spelled, want := range map[string]string{
		`[["a",">f8"],["b","<i2"]]`: `[["a",">f8"],["b","<i2"]]`,
		`">M8[s]"`:                  `">M8[s]"`,
		`[["a",">f8",[2]]]`:         `[["a",">f8",[2]]]`,
	} {
		a := must(Create(context.Background(), kv.NewMem(), "a", Spec{Version: V2, Shape: []int64{1}, Type: typed(t, V2, spelled)}, nil))
		if got := must(a.Type().PrintV2()); string(got) != want {
			t.Errorf("%s became %s", spelled, got)
		}
	}
	type record struct {
		A float64
		B int8
	}
	a := must(Create(context.Background(), kv.NewMem(), "a", Spec{Version: V2, Shape: []int64{1}, Type: must(TypeOf[record]())}, nil))
	if got := must(a.Type().PrintV2()); string(got) != `[["A","<f8"],["B","|i1"]]` {
		t.Errorf("%s", got)
	}
}
