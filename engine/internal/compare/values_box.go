package compare

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/zarrdb/zarrdb/zarr"
)

// errStopped ends a comparison whose caller has seen enough.
var errStopped = errors.New("engine: stopped")

// maxCompared bounds the bytes of either version that are compared at once.
// Larger chunks are halved.
const maxCompared = 64 << 20

// compare compares a box and yields its differences.
func (v *valueDiff) compare(ctx context.Context, start, shape []int64, yield func(ValueChange, error) bool) error {
	size, n := int64(max(v.new.Type().Size(), 16)), int64(1)
	long := -1
	for d, len := range shape {
		if long < 0 && len > 1 {
			long = d
		}
		// Saturating: a box may be as large as the array.
		if n > math.MaxInt64/max(len, 1)/size {
			n = math.MaxInt64 / size
		} else {
			n *= len
		}
	}
	if long >= 0 && n > maxCompared/size {
		half := shape[long] / 2
		for i := range 2 {
			s, l := slices.Clone(start), slices.Clone(shape)
			if l[long] = half; i == 1 {
				s[long], l[long] = start[long]+half, shape[long]-half
			}
			if err := v.compare(ctx, s, l, yield); err != nil {
				return err
			}
		}
		return nil
	}
	idx := make([]zarr.Index, len(shape))
	for d := range shape {
		idx[d] = zarr.Slice(start[d], start[d]+shape[d], 1)
	}
	sum := tally{ValueChange: ValueChange{Path: v.path}, start: start, shape: shape, each: v.each}
	if v.each != nil {
		sum.at = make([]int64, len(shape))
	}
	var err error
	if v.new.Type().Variable() {
		err = v.texts(ctx, zarr.Sel(idx...), int(n), &sum)
	} else {
		err = v.elements(ctx, zarr.Sel(idx...), int(n), &sum)
	}
	if err != nil || sum.Count == 0 {
		return err
	}
	if !yield(sum.result(), nil) {
		return errStopped
	}
	return nil
}

// elements compares elements of a fixed size.
func (v *valueDiff) elements(ctx context.Context, sel zarr.Selection, n int, sum *tally) error {
	size := v.new.Type().Size()
	for i, a := range []*zarr.Array{v.old, v.new} {
		v.bufs[i] = slices.Grow(v.bufs[i][:0], n*size)[:n*size]
		if err := a.ReadBytes(ctx, sel, v.bufs[i]); err != nil {
			return err
		}
	}
	was, is := v.bufs[0], v.bufs[1]
	if bytes.Equal(was, is) {
		return nil
	}
	for i := range n {
		a, b := was[i*size:(i+1)*size], is[i*size:(i+1)*size]
		if bytes.Equal(a, b) {
			continue
		}
		if by, how := v.difference(a, b); how != NoDifference {
			sum.add(i, by, how == NumberDifference)
		}
	}
	return nil
}

// texts compares elements of a variable size.
func (v *valueDiff) texts(ctx context.Context, sel zarr.Selection, n int, sum *tally) error {
	was, err := v.old.ReadVar(ctx, sel)
	if err != nil {
		return err
	}
	is, err := v.new.ReadVar(ctx, sel)
	if err != nil {
		return err
	}
	for i := range n {
		if !bytes.Equal(was.At(i), is.At(i)) {
			sum.add(i, 0, false)
		}
	}
	return nil
}

// tally collects the elements of a box that differ.
type tally struct {
	ValueChange
	start, shape []int64 // of the box
	lo, hi       []int64 // within the box; hi is the last
	each         func(at []int64)
	at           []int64 // what each is called with
}

// add notes that the i-th element of the box, in C order, differs; by is the
// difference if it is a number.
func (t *tally) add(i int, by float64, number bool) {
	if t.Count++; t.Count == 1 {
		t.lo, t.hi = slices.Clone(t.shape), make([]int64, len(t.shape))
	}
	rest := int64(i)
	for d := len(t.shape) - 1; d >= 0; d-- {
		at := rest % t.shape[d]
		rest /= t.shape[d]
		t.lo[d], t.hi[d] = min(t.lo[d], at), max(t.hi[d], at)
		if t.each != nil {
			t.at[d] = t.start[d] + at
		}
	}
	if t.each != nil {
		t.each(t.at)
	}
	if !number {
		return
	}
	if t.Numbers++; t.Numbers == 1 {
		t.Min, t.Max = by, by
	}
	t.Min, t.Max = min(t.Min, by), max(t.Max, by)
	t.Mean += (by - t.Mean) / float64(t.Numbers)
}

func (t *tally) result() ValueChange {
	c := t.ValueChange
	c.Start, c.Shape = make([]int64, len(t.shape)), make([]int64, len(t.shape))
	for d := range t.shape {
		c.Start[d], c.Shape[d] = t.start[d]+t.lo[d], t.hi[d]-t.lo[d]+1
	}
	return c
}
