package compare

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

func TestDifferenceOf(t *testing.T) {
	int64s := func(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
	float32s := func(f float64) []byte {
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(f)))
	}
	for _, c := range []struct {
		what    string
		t       dtype.Type
		was, is []byte
		by      float64
		how     Differs
	}{
		{"bool", dtype.NewBool(), []byte{0}, []byte{1}, 1, NumberDifference},
		{"int8", dtype.NewInt(8), []byte{0xff}, []byte{2}, 3, NumberDifference},
		{"uint16", dtype.NewUint(16), []byte{0, 1}, []byte{1, 0}, -255, NumberDifference},
		{"ends of int64", dtype.NewInt(64), int64s(math.MinInt64), int64s(math.MaxInt64), math.MaxUint64, NumberDifference},
		{"float", dtype.NewFloat(32), float32s(1), float32s(1.5), 0.5, NumberDifference},
		{"number and NaN", dtype.NewFloat(32), float32s(1), float32s(math.NaN()), 0, SomeDifference},
		{"two NaNs", dtype.NewFloat(32), float32s(math.NaN()), []byte{1, 0, 0xc0, 0x7f}, 0, NoDifference},
	} {
		if by, how := DifferenceOf(c.t)(c.was, c.is); by != c.by || how != c.how {
			t.Errorf("%s: %v, %v, want %v, %v", c.what, by, how, c.by, c.how)
		}
	}
}

func TestAddValueChange(t *testing.T) {
	sum := ValueChange{}
	for _, v := range []ValueChange{
		{},
		{Start: []int64{2, 0}, Shape: []int64{1, 2}, Count: 2, Numbers: 1, Min: 4, Max: 4, Mean: 4},
		{Start: []int64{0, 1}, Shape: []int64{1, 3}, Count: 3, Numbers: 3, Min: -2, Max: 2, Mean: 0},
		{Start: []int64{1, 1}, Shape: []int64{1, 1}, Count: 1},
	} {
		sum.Add(v)
	}
	if !slices.Equal(sum.Start, []int64{0, 0}) || !slices.Equal(sum.Shape, []int64{3, 4}) || sum.Count != 6 || sum.Numbers != 4 || sum.Min != -2 || sum.Max != 4 || sum.Mean != 1 {
		t.Errorf("the sum is %+v", sum)
	}
}

// The box of a tally is the smallest one around the elements that were added.
func TestTally(t *testing.T) {
	sum := tally{start: []int64{10, 20}, shape: []int64{3, 4}}
	sum.add(6, 1, true) // (1, 2)
	sum.add(9, 3, true) // (2, 1)
	sum.add(5, 0, false)
	got := sum.result()
	if !slices.Equal(got.Start, []int64{11, 21}) || !slices.Equal(got.Shape, []int64{2, 2}) || got.Count != 3 || got.Numbers != 2 || got.Mean != 2 || got.Max != 3 {
		t.Errorf("%+v", got)
	}
}
