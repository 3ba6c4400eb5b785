package zarr

import (
	"context"
	"fmt"
	"iter"
	"slices"
)

// Axis is a dimension of the result of a selection.
type Axis struct {
	// Dim is the dimension of the array that it goes through, -1 for a [NewAxis].
	Dim int
	// Len is the number of elements of the result along it.
	Len int64

	span span
}

// Index returns where in Dim the i-th element along the axis lies, 0 for a new axis.
func (x Axis) Index(i int64) int64 {
	switch {
	case x.Dim < 0:
		return 0
	case x.span.list != nil:
		return x.span.list[i]
	case x.span.flip:
		i = x.Len - 1 - i
	}
	return x.span.start + i*x.span.step
}

// Step is the distance between neighbours along the axis, negative backwards, and 0
// if it differs from one to the next, as in a [List].
func (x Axis) Step() int64 {
	switch {
	case x.Dim < 0 || x.span.list != nil:
		return 0
	case x.span.flip:
		return -x.span.step
	}
	return x.span.step
}

// Part selects the elements lo to hi, less one, along the axis.
func (x Axis) Part(lo, hi int64) Index {
	if x.span.list != nil {
		return List(x.span.list[lo:hi]...)
	}
	if lo >= hi {
		return Slice(0, 0, 1)
	}
	first, last := x.Index(lo), x.Index(hi-1)
	if !x.span.flip {
		return Slice(first, last+1, x.span.step)
	}
	end := last - 1
	if end < 0 {
		end = None
	}
	return Slice(first, end, -x.span.step)
}

// Axes returns the dimensions of the result of a selection, and for each
// dimension of the array the index that selects the same. Put [Axis.Part] in the
// place of at[Dim], and [Orthogonal] of at is a part of the selection. Errors
// are [ErrSelection]; [Points] have no axes.
func (a *Array) Axes(sel Selection) (axes []Axis, at []Index, err error) {
	axes, at, err = a.axes(sel)
	return axes, at, a.fail("select", err)
}

func (a *Array) axes(sel Selection) (axes []Axis, at []Index, err error) {
	m := a.Meta()
	var r region
	if err := r.resolve(sel, m.Shape); err != nil {
		return nil, nil, err
	}
	if r.points != nil {
		return nil, nil, fmt.Errorf("%w: %v have no axes", ErrSelection, sel)
	}
	axes, at = make([]Axis, len(r.shape)), make([]Index, len(r.dims))
	for k, n := range r.shape {
		axes[k] = Axis{Dim: -1, Len: n}
	}
	for d, s := range r.dims {
		if s.axis < 0 {
			at[d] = At(s.start)
			continue
		}
		axes[s.axis] = Axis{Dim: d, Len: s.n, span: s}
		at[d] = axes[s.axis].Part(0, s.n)
	}
	return axes, at, nil
}

// Spans returns what a selection names along each dimension of the array, also along those that
// the result does not have. Errors are ErrSelection; Points have no spans.
func (a *Array) Spans(sel Selection) ([]Axis, error) {
	var r region
	err := r.resolve(sel, a.Meta().Shape)
	if err == nil && r.points != nil {
		err = fmt.Errorf("%w: %v is not a box", ErrSelection, sel)
	}
	spans := make([]Axis, len(r.dims))
	for d, s := range r.dims {
		spans[d] = Axis{Dim: d, Len: s.n, span: s}
		if s.axis < 0 {
			spans[d].Len = 1
		}
	}
	return spans, a.fail("select", err)
}

// Part is a part of a selection.
type Part struct {
	Selection Selection
	// Shape is the shape of the result of Selection. It may lack dimensions of
	// length 1.
	Shape []int64
}

// partBytes is the default size of a part.
const partBytes = 64 << 20

// longRows is the number of parts above which a row is cut, although chunks are
// then decoded more than once.
const longRows = 4

// variableSize is the assumed size of an element of variable length.
const variableSize = 256

// Parts yields a selection in parts of about so many bytes (0 for 64 MiB), at
// most four times that, in C order of the result: the parts in order select the
// elements of the selection. Parts end where chunks do, so that none is decoded
// twice, unless one row is larger. [Points] are cut between points. An error is
// [ErrSelection] and comes first.
func (a *Array) Parts(sel Selection, bytes int64) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		if bytes <= 0 {
			bytes = partBytes
		}
		size := int64(variableSize)
		if t := a.Type(); !t.Variable() {
			size = max(int64(t.Size()), 1)
		}
		c := cutter{a: a, fit: max(bytes/size, 1), yield: yield}
		if sel.mode == selPoints {
			c.points(sel)
			return
		}
		axes, at, err := a.axes(sel)
		if err != nil {
			yield(Part{}, a.fail("select", err))
			return
		}
		for _, x := range axes {
			if x.Len == 0 {
				return
			}
		}
		c.at = at
		c.box(slices.DeleteFunc(axes, func(x Axis) bool { return x.Dim < 0 }))
	}
}

// cutter cuts a selection. Its methods return false to stop.
type cutter struct {
	a     *Array
	fit   int64 // elements of a part
	at    []Index
	yield func(Part, error) bool
}

// box goes through the first of the axes in steps, or index by index where one index
// holds more than fits.
func (c *cutter) box(axes []Axis) bool {
	if len(axes) == 0 {
		return c.yield(Part{Orthogonal(slices.Clone(c.at)...), []int64{}}, nil)
	}
	x, rest := axes[0], axes[1:]
	below := make([]int64, len(rest))
	for i, y := range rest {
		below[i] = y.Len
		c.at[y.Dim] = y.Part(0, y.Len)
	}
	row, ok := elements(below)
	if (!ok || row > c.fit*longRows) && len(rest) > 0 {
		for i := range x.Len {
			if c.at[x.Dim] = At(x.Index(i)); !c.box(rest) {
				return false
			}
		}
		return true
	}
	rows, chunk := max(c.fit/row, 1), int64(0)
	if g := c.a.Meta().Grid.Regular(); g != nil && x.Step() == 1 {
		chunk = int64(g[x.Dim])
	}
	for lo := int64(0); lo < x.Len; {
		hi := min(lo+rows, x.Len)
		if chunk > 0 && hi < x.Len {
			if over := x.Index(hi) % chunk; over < hi-lo {
				hi -= over
			}
		}
		c.at[x.Dim] = x.Part(lo, hi)
		if !c.yield(Part{Orthogonal(slices.Clone(c.at)...), append([]int64{hi - lo}, below...)}, nil) {
			return false
		}
		lo = hi
	}
	return true
}

// points cuts a list of points.
func (c *cutter) points(sel Selection) {
	var r region
	if err := r.resolve(sel, c.a.Meta().Shape); err != nil {
		c.yield(Part{}, c.a.fail("select", err))
		return
	}
	if len(r.points) == 0 {
		c.yield(Part{sel, r.shape}, nil)
		return
	}
	for lo := int64(0); lo < r.total; lo += c.fit {
		hi := min(lo+c.fit, r.total)
		coords := make([][]int64, len(r.points))
		for d, list := range r.points {
			coords[d] = list[lo:hi]
		}
		if !c.yield(Part{Points(coords...), []int64{hi - lo}}, nil) {
			return
		}
	}
}

// CopyChunks copies elements to the same places of another array, whose shape and elements are
// alike: all elements of the chunks of that array that a selection touches, also the elements
// outside of the selection. each, such as the Run of a [Runner], calls fn for some chunks at a
// time.
func CopyChunks(ctx context.Context, from, to *Array, sel Selection, each func(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error) error {
	batch := make([]Chunk, 0, 256)
	flush := func() error {
		err := each(ctx, len(batch), func(ctx context.Context, i int) error { return copyChunk(ctx, from, to, batch[i]) })
		batch = batch[:0]
		return err
	}
	for chunk, err := range to.Chunks(ctx, sel) {
		if err != nil {
			return err
		}
		if batch = append(batch, chunk); len(batch) < cap(batch) {
			continue
		}
		if err := flush(); err != nil {
			return err
		}
	}
	return flush()
}

func copyChunk(ctx context.Context, from, to *Array, chunk Chunk) error {
	idx, size := make([]Index, len(chunk.Start)), int64(from.Type().Size())
	for d, lo := range chunk.Start {
		idx[d] = Slice(lo, lo+chunk.Shape[d], 1)
		size *= chunk.Shape[d]
	}
	sel := Sel(idx...)
	if from.Type().Variable() {
		v, err := from.ReadVar(ctx, sel)
		if err != nil {
			return err
		}
		return to.WriteVar(ctx, sel, v)
	}
	if int64(int(size)) != size {
		return fmt.Errorf("%w: a chunk of %d bytes", ErrTooLarge, size)
	}
	b := make([]byte, size)
	if err := from.ReadBytes(ctx, sel, b); err != nil {
		return err
	}
	return to.WriteBytes(ctx, sel, b)
}
