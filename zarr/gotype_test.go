package zarr

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// convert writes and reads values of a Go type, whole and in part.
func convert[T any](t *testing.T, v Version, typ dtype.Type, values []T, codecs ...string) {
	t.Helper()
	ctx := context.Background()
	spec := Spec{Version: v, Shape: []int64{int64(len(values))}, Chunks: []int64{2}, Type: typ}
	for _, c := range codecs {
		spec.Codecs = []byte(c)
	}
	a := must.Have(Create(ctx, kv.NewMem(), "a", spec, nil))
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
	must.Have(0, Fill(ctx, a, Sel(), values[0]))
	if got := mustRead(Read[T](ctx, a, Sel(At(-1)))); !reflect.DeepEqual(got, values[:1]) {
		t.Errorf("%v: %v after writing one value, want %v", typ, got, values[:1])
	}
}

func typed(t *testing.T, v Version, spelled string) dtype.Type {
	t.Helper()
	if v == V2 {
		return must.Have(dtype.ParseV2([]byte(spelled), dtype.Type{}))
	}
	return must.Have(dtype.ParseV3([]byte(spelled)))
}

func TestConverted(t *testing.T) {
	floats := []float32{0.5, -2, 1}
	for _, name := range []string{"float16", "bfloat16", "float8_e4m3", "float6_e2m3fn", "float4_e2m1fn"} {
		convert(t, V3, typed(t, V3, `"`+name+`"`), floats)
	}
	convert(t, V2, typed(t, V2, `">f2"`), []float64{1.5, math.Inf(1), -3})
	convert(t, V3, typed(t, V3, `"float32"`), []float64{1.5, math.Inf(1), -3})
	convert(t, V3, typed(t, V3, `"int4"`), []int8{-8, 7, 0})
	convert(t, V3, typed(t, V3, `"uint2"`), []uint8{3, 1, 0})
	convert(t, V2, typed(t, V2, `">U3"`), []string{"a", "日本語", ""})
	convert(t, V2, typed(t, V2, `"|S3"`), []string{"a", "abc", ""})
	convert(t, V2, typed(t, V2, `"|S3"`), [][]byte{[]byte("a"), []byte("abc"), {}})
	convert(t, V3, typed(t, V3, `"r16"`), [][]byte{{1, 2}, {3, 4}, {5, 6}})
	convert(t, V2, typed(t, V2, `"<m8[ps]"`), []int64{-1, 5})
}

func TestConvertedErrors(t *testing.T) {
	ctx := context.Background()
	array := func(dataType string) *Array {
		return must.Have(Create(ctx, kv.NewMem(), "a", Spec{Version: V2, Shape: []int64{1}, DataType: dataType}, nil))
	}
	read := func(_ any, _ []int64, err error) error { return err }
	for name, c := range map[string]struct{ err, want error }{
		"narrowing":        {read(Read[float32](ctx, array("<f8"), Sel())), ErrType},
		"no struct":        {read(Read[struct{ X int8 }](ctx, array("|i1"), Sel())), ErrType},
		"times":            {read(Read[time.Time](ctx, array("<M8[ns]"), Sel())), ErrType},
		"durations":        {read(Read[time.Duration](ctx, array("<m8[ns]"), Sel())), ErrType},
		"counts":           {read(Read[time.Duration](ctx, array("<i8"), Sel())), ErrType},
		"text":             {Write(ctx, array("<U2"), Sel(), []string{"abc"}), ErrValue},
		"UTF-8":            {Write(ctx, array("<U2"), Sel(), []string{"\xff"}), ErrValue},
		"bytes":            {Write(ctx, array("|S2"), Sel(), []string{"abc"}), ErrValue},
		"raw":              {Write(ctx, array("|V2"), Sel(), [][]byte{{1}}), ErrValue},
		"float16":          {Write(ctx, array("<f2"), Sel(), []float64{1e6}), ErrValue},
		"how many":         {Write(ctx, array("<U2"), Sel(), []string{"a", "b"}), ErrSelection},
		"a type of no use": {read(Read[chan int](ctx, array("|i1"), Sel())), ErrType},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
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

// TestCreateOrder: v2 wants a byte order of every scalar, and keeps the one that
// was asked for.
func TestCreateOrder(t *testing.T) {
	for spelled, want := range map[string]string{
		`[["a",">f8"],["b","<i2"]]`: `[["a",">f8"],["b","<i2"]]`,
		`">M8[s]"`:                  `">M8[s]"`,
		`[["a",">f8",[2]]]`:         `[["a",">f8",[2]]]`,
	} {
		a := must.Have(Create(context.Background(), kv.NewMem(), "a", Spec{Version: V2, Shape: []int64{1}, Type: typed(t, V2, spelled)}, nil))
		if got := must.Have(a.Type().PrintV2()); string(got) != want {
			t.Errorf("%s became %s", spelled, got)
		}
	}
}
