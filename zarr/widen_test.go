package zarr

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// Integers are read as every wider number that holds all of them, and as no other.
func TestReadWidens(t *testing.T) {
	ctx := context.Background()
	array := func(dataType string, write func(a *Array) error) *Array {
		a := must.Have(Create(ctx, kv.NewMem(), "a", Spec{Shape: []int64{2}, DataType: dataType}, nil))
		must.Have(0, write(a))
		return a
	}
	i8 := array("int8", func(a *Array) error { return Write(ctx, a, Sel(), []int8{-128, 127}) })
	i32 := array("int32", func(a *Array) error { return Write(ctx, a, Sel(), []int32{math.MinInt32, math.MaxInt32}) })
	u16 := array("uint16", func(a *Array) error { return Write(ctx, a, Sel(), []uint16{0, math.MaxUint16}) })
	u64 := array("uint64", func(a *Array) error { return Write(ctx, a, Sel(), []uint64{1, math.MaxUint64}) })
	wide(t, i8, []int16{-128, 127})
	wide(t, i8, []int32{-128, 127})
	wide(t, i8, []int64{-128, 127})
	wide(t, i8, []float32{-128, 127})
	wide(t, i32, []int64{math.MinInt32, math.MaxInt32})
	wide(t, i32, []float64{math.MinInt32, math.MaxInt32})
	wide(t, u16, []int32{0, math.MaxUint16})
	wide(t, u16, []uint32{0, math.MaxUint16})
	wide(t, u16, []uint64{0, math.MaxUint16})
	wide(t, u16, []float32{0, math.MaxUint16})
	narrow[uint16](t, i8)
	narrow[int8](t, i32)
	narrow[float32](t, i32)
	narrow[int16](t, u16)
	narrow[int64](t, u64)
	narrow[float64](t, u64)
	if err := Write(ctx, i8, Sel(), []int64{1, 2}); !errors.Is(err, ErrType) {
		t.Errorf("wider numbers were written: %v", err)
	}
}

func wide[T comparable](t *testing.T, a *Array, want []T) {
	t.Helper()
	got, shape, err := Read[T](context.Background(), a, Sel())
	if err != nil || !slices.Equal(got, want) || !slices.Equal(shape, []int64{2}) {
		t.Errorf("%v as %T: %v of shape %v, %v, want %v", a.Type(), want, got, shape, err, want)
	}
}

func narrow[T any](t *testing.T, a *Array) {
	t.Helper()
	if v, _, err := Read[T](context.Background(), a, Sel()); !errors.Is(err, ErrType) {
		t.Errorf("%v was read as %T: %v", a.Type(), v, err)
	}
}
