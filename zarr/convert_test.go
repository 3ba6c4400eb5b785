package zarr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

type celsius float32
type label string

// roundTrip writes and reads values of a Go type, whole and in part.
func roundTrip[T comparable](t *testing.T, dataType string, want []T) {
	t.Helper()
	ctx := context.Background()
	for _, v := range []Version{V2, V3} {
		a := must.Have(Create(ctx, kv.NewMem(), "a", Spec{Version: v, Shape: []int64{int64(len(want))}, Chunks: []int64{2}, DataType: dataType}, nil))
		must.Have(0, Write(ctx, a, Sel(), want))
		if got := mustRead(Read[T](ctx, a, Sel())); !slices.Equal(got, want) {
			t.Errorf("%s v%d: %v, want %v", dataType, v, got, want)
		}
		dst := make([]T, 2)
		must.Have(0, ReadInto(ctx, a, Sel(Slice(1, 3, 1)), dst))
		if !slices.Equal(dst, want[1:3]) {
			t.Errorf("%s v%d: %v, want %v", dataType, v, dst, want[1:3])
		}
		must.Have(0, Fill(ctx, a, Sel(Slice(1, 3, 1)), want[0]))
		if got := mustRead(Read[T](ctx, a, Sel(At(2)))); !slices.Equal(got, want[:1]) {
			t.Errorf("%s v%d: %v after writing one value, want %v", dataType, v, got, want[:1])
		}
	}
}

func testRoundTrips(t *testing.T) {
	roundTrip(t, "bool", []bool{true, false, true})
	roundTrip(t, "int8", []int8{-1, 2, math.MinInt8})
	roundTrip(t, "int16", []int16{-1, 2, math.MinInt16})
	roundTrip(t, "int32", []int32{-1, 2, math.MinInt32})
	roundTrip(t, "int64", []int64{-1, 2, math.MinInt64})
	roundTrip(t, "uint8", []uint8{1, 2, math.MaxUint8})
	roundTrip(t, "uint16", []uint16{1, 2, math.MaxUint16})
	roundTrip(t, "uint32", []uint32{1, 2, math.MaxUint32})
	roundTrip(t, "uint64", []uint64{1, 2, math.MaxUint64})
	roundTrip(t, "float32", []float32{1.5, -2, math.MaxFloat32})
	roundTrip(t, "float32", []celsius{1.5, -2, 3})
	roundTrip(t, "float64", []float64{1.5, -2, math.Inf(1)})
	roundTrip(t, "complex64", []complex64{1 + 2i, -1i, 3})
	roundTrip(t, "complex128", []complex128{1 + 2i, -1i, 3})
	roundTrip(t, "string", []string{"", "zwölf", "x"})
	roundTrip(t, "string", []label{"", "zwölf", "x"})
	roundTrip(t, ">f4", []float32{1.5, -2, math.MaxFloat32})
	roundTrip(t, "<M8[ns]", []int64{math.MinInt64, 0, 7})
}

func TestTyped(t *testing.T) { testRoundTrips(t) }

// TestTypedSwapped runs the same as a machine of the other byte order would
// take it: what is stored then is swapped, and what comes back is not.
func TestTypedSwapped(t *testing.T) {
	must.Set(t, &littleEndian, !littleEndian)
	testRoundTrips(t)
	ctx := context.Background()
	for _, c := range []struct {
		write func(a *Array) error
		typ   string
		want  []byte
	}{
		{func(a *Array) error { return Write(ctx, a, Sel(), []uint16{0x0102}) }, "uint16", []byte{1, 2}},
		{func(a *Array) error { return Write(ctx, a, Sel(), []uint32{0x01020304}) }, "uint32", []byte{1, 2, 3, 4}},
		{func(a *Array) error { return Write(ctx, a, Sel(), []uint64{0x0102030405060708}) }, "uint64", []byte{1, 2, 3, 4, 5, 6, 7, 8}},
		{func(a *Array) error { return Write(ctx, a, Sel(), []complex64{complex(1, 2)}) }, "complex64", []byte{0x3f, 0x80, 0, 0, 0x40, 0, 0, 0}},
	} {
		a := must.Have(Create(ctx, kv.NewMem(), "a", Spec{Shape: []int64{1}, DataType: c.typ}, nil))
		must.Have(0, c.write(a))
		got := make([]byte, len(c.want))
		must.Have(0, a.ReadBytes(ctx, Sel(), got))
		if !bytes.Equal(got, c.want) {
			t.Errorf("%s: %x, want %x", c.typ, got, c.want)
		}
	}
}

func TestTypedBytes(t *testing.T) {
	ctx := context.Background()
	a := must.Have(Create(ctx, kv.NewMem(), "a", Spec{Shape: []int64{3}, DataType: "bytes"}, nil))
	want := [][]byte{{0, 255}, {}, []byte("abc")}
	must.Have(0, Write(ctx, a, Sel(), want))
	got := mustRead(Read[[]byte](ctx, a, Sel()))
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("%q", got)
	}
	got[0][0] = 9 // the caller's
	if again := mustRead(Read[[]byte](ctx, a, Sel(At(0)))); again[0][0] != 0 {
		t.Error("the array changed")
	}
	if got := mustRead(Read[[]byte](ctx, a, Sel(Slice(0, 0, 1)))); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestTypeErrors(t *testing.T) {
	ctx := context.Background()
	array := func(dataType string) *Array {
		return must.Have(Create(ctx, kv.NewMem(), "a", Spec{Shape: []int64{2}, DataType: dataType}, nil))
	}
	check := func(err error, text string) {
		t.Helper()
		if !errors.Is(err, ErrType) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	_, _, err := Read[float32](ctx, array("float64"), Sel())
	check(err, "float32 for elements of type float64")
	_, _, err = Read[int](ctx, array("int64"), Sel())
	check(err, "int is the type of no element, the array's is int64")
	_, _, err = Read[string](ctx, array("bytes"), Sel())
	check(err, "string for elements of type bytes")
	_, _, err = Read[uint16](ctx, array("r16"), Sel())
	check(err, "uint16 for elements of type r16")
	_, _, err = Read[float32](ctx, array("uint32"), Sel())
	check(err, "float32")
	if err := Write(ctx, array("int4"), Sel(), []int8{8}); !errors.Is(err, ErrValue) {
		t.Error(err)
	}
	check(ReadInto(ctx, array("int32"), Sel(), make([]uint32, 2)), "uint32")
	check(array("string").ReadBytes(ctx, Sel(), nil), "no fixed size")
	check(array("string").WriteBytes(ctx, Sel(), nil), "no fixed size")
	_, err = array("int8").ReadVar(ctx, Sel())
	check(err, "fixed size")
	check(array("int8").WriteVar(ctx, Sel(), dtype.Variable{}), "fixed size")
	if got := mustRead(Read[int8](ctx, array("int4"), Sel())); len(got) != 2 {
		t.Errorf("int4 as int8: %v", got)
	}
	if err := ReadInto(ctx, array("string"), Sel(), make([]string, 3)); !errors.Is(err, ErrSelection) {
		t.Error(err)
	}
	if err := Write(ctx, array("string"), Sel(), []string{"a", "\xff"}); err == nil {
		t.Error("text that is not UTF-8 was written")
	}
}

// TestTypedBool: a damaged chunk must not make a Go bool that is neither true
// nor false.
func TestTypedBool(t *testing.T) {
	ctx := context.Background()
	store := kv.NewMem()
	a := must.Have(Create(ctx, store, "a", Spec{Shape: []int64{3}, DataType: "bool", Codecs: []byte(`["bytes"]`)}, nil))
	must.Have(0, store.Set(ctx, a.ChunkKey([]int64{0}), []byte{0, 1, 7}))
	got, _, err := Read[bool](ctx, a, Sel())
	if err != nil {
		return // refused is right too
	}
	if mem := memory(got); !bytes.Equal(mem, []byte{0, 1, 1}) {
		t.Errorf("%x", mem)
	}
}

// A slice of one element is not taken for a scalar.
func TestWriteTakesNoElementForAll(t *testing.T) {
	ctx := context.Background()
	for _, spec := range []Spec{{DataType: "int32"}, {DataType: "string"}, {DataType: "float16"}} {
		spec.Shape = []int64{5}
		a := must.Have(Create(ctx, kv.NewMem(), "a", spec, nil))
		var short, fill error
		var got any
		switch spec.DataType {
		case "int32":
			short, fill = Write(ctx, a, Sel(), []int32{7}), Fill(ctx, a, Sel(Slice(1, None, 2)), int32(7))
			got = mustRead(Read[int32](ctx, a, Sel()))
		case "string":
			short, fill = Write(ctx, a, Sel(), []string{"7"}), Fill(ctx, a, Sel(Slice(1, None, 2)), "7")
			got = mustRead(Read[string](ctx, a, Sel()))
		case "float16":
			short, fill = Write(ctx, a, Sel(), []float32{7}), Fill(ctx, a, Sel(Slice(1, None, 2)), float32(7))
			got = mustRead(Read[float32](ctx, a, Sel()))
		}
		if !errors.Is(short, ErrSelection) || fill != nil {
			t.Errorf("%s: %v, %v", spec.DataType, short, fill)
		}
		if text := fmt.Sprint(got); text != "[0 7 0 7 0]" && text != "[ 7  7 ]" {
			t.Errorf("%s: %s", spec.DataType, text)
		}
	}
}
