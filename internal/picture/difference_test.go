package picture

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// A change of one value anywhere is in the window, however small the window is.
func TestDifferenceShowsEachChange(t *testing.T) {
	shape, chunks := []int64{3, 70, 90}, []int64{1, 20, 25}
	older := array(t, shape, chunks, `{}`)
	for _, at := range [][]int64{{1, 0, 0}, {1, 69, 89}, {1, 33, 58}, {1, 20, 24}, {2, 5, 5}} {
		newer := array(t, shape, chunks, `{}`)
		sel := zarr.Sel(zarr.At(at[0]), zarr.At(at[1]), zarr.At(at[2]))
		was := []int32{0}
		must.Do(t, zarr.ReadInto(t.Context(), newer, sel, was))
		must.Do(t, zarr.Write(t.Context(), newer, sel, []int32{was[0] - 7}))
		for _, r := range []Request{{}, {Width: 7, Height: 5}, {Width: 7, Height: 5, Transposed: true, Up: true}, {Width: 1, Height: 1, Chunks: 1}} {
			r.Select = selection(t, newer, "1,3:,2:")
			pair := Pair{Older: older, Newer: newer, Parts: newer.Chunks(t.Context(), zarr.Sel())}
			w, more, err := pair.Read(t.Context(), r)
			if err != nil || more {
				t.Fatal(more, err)
			}
			seen := at[0] == 1 && at[1] >= 3 && at[2] >= 2
			found := false
			for i, v := range w.Values {
				if v == 0 {
					continue
				}
				y, x := w.Y.Index(i/w.X.Len), w.X.Index(i%w.X.Len)
				if r.Transposed {
					y, x = x, y
				}
				skip := max(w.Y.Skip, w.X.Skip)
				if found = true; v != -7 || y > at[1] || x > at[2] || at[1]-y >= skip || at[2]-x >= skip {
					t.Errorf("%v in %+v: %v at %d, %d", at, r, v, y, x)
				}
			}
			if found != seen {
				t.Errorf("%v in %+v: shown %v, in the selection %v", at, r, found, seen)
			}
		}
	}
}

// No more parts are read than allowed, and the answer says so.
func TestDifferenceInSteps(t *testing.T) {
	a := array(t, []int64{8, 8}, []int64{2, 2}, `{}`)
	for most, want := range map[int64]int64{0: 8, 3: 3, 8: 8} {
		w, more, err := Pair{Older: a, Newer: a, Parts: a.Chunks(t.Context(), zarr.Sel()), Most: most}.Read(t.Context(), Request{Select: selection(t, a, "2:6,:")})
		if err != nil || w.Chunks != want || more != (want < 8) {
			t.Error(most, w.Chunks, more, err)
		}
	}
}

// Values that become missing, or are no longer missing, differ without bound; neighbours
// among large integers differ too.
func TestDifferenceOfSpecialValues(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	check := func(older, newer *zarr.Array, want string) {
		t.Helper()
		w, _, err := Pair{Older: older, Newer: newer}.Read(t.Context(), Request{})
		if err != nil || fmt.Sprint(w.Values) != want {
			t.Error(w, err, want)
		}
	}
	check(of(t, nan, nan, 1, inf, 2), of(t, nan, 1, nan, inf, 5), "[NaN +Inf -Inf 0 3]")
	check(of[int64](t, 1<<60, 1<<60), of[int64](t, 1<<60+1, 1<<60), "[1 0]")
	check(of[uint8](t, 200, 3), of[uint8](t, 100, 3), "[-100 0]")
}

// of makes an array of one row.
func of[T float64 | int64 | uint8](t *testing.T, v ...T) *zarr.Array {
	t.Helper()
	n := int64(len(v))
	a, err := zarr.Create(t.Context(), kv.NewMem(), "t", zarr.Spec{Shape: []int64{n}, Chunks: []int64{n}, DataType: fmt.Sprintf("%T", v[0])}, nil)
	if err == nil {
		err = zarr.Write(t.Context(), a, zarr.Sel(), v)
	}
	must.Do(t, err)
	return a
}

// What cannot be subtracted is refused.
func TestDifferenceRefuses(t *testing.T) {
	a, wider := array(t, []int64{4, 4}, []int64{2, 2}, `{}`), array(t, []int64{4, 5}, []int64{2, 2}, `{}`)
	failed := errors.New("failed")
	var bad iter.Seq2[zarr.Chunk, error] = func(yield func(zarr.Chunk, error) bool) { yield(zarr.Chunk{}, failed) }
	for _, c := range []struct {
		pair Pair
		sel  string
		want error
	}{
		{Pair{Older: a, Newer: wider}, "", zarr.ErrSelection},
		{Pair{Older: array(t, []int64{4}, []int64{2}, `{}`), Newer: a}, "", zarr.ErrSelection},
		{Pair{Older: a, Newer: array(t, []int64{2, 4, 4}, []int64{1, 2, 2}, `{}`)}, "", zarr.ErrSelection},
		{Pair{Older: a, Newer: a}, "::2,:", zarr.ErrSelection},
		{Pair{Older: a, Newer: a, Parts: bad}, "", failed},
	} {
		if _, _, err := c.pair.Read(t.Context(), Request{Select: selection(t, c.pair.Newer, c.sel)}); !errors.Is(err, c.want) {
			t.Error(c.sel, err)
		}
	}
}
