package zarr

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ErrSelection means that a selection does not fit the array it is applied
// to, or is not well formed in itself.
var ErrSelection = errors.New("zarr: bad selection")

// None is an omitted bound in [Slice]: Slice(None, None, -1) is a whole
// dimension backwards.
const None int64 = math.MinInt64

// Index selects along one dimension, or is [Ellipsis] or [NewAxis]. Made by
// [At], [Slice], [All], [List], [Ellipsis] and [NewAxis]; the zero Index is All.
type Index struct {
	kind         indexKind
	lo, hi, step int64
	list         []int64
}

type indexKind uint8

const (
	indexAll indexKind = iota
	indexSlice
	indexAt
	indexList
	indexEllipsis
	indexNewAxis
)

// At selects element i and drops the dimension from the result. A negative i
// counts from the end.
func At(i int64) Index { return Index{kind: indexAt, lo: i} }

// Slice selects the elements lo, lo+step, … before hi, as numpy's lo:hi:step
// does: bounds are in elements, negative ones count from the end, bounds outside
// the dimension are cut, [None] is an omitted one, and a negative step walks
// backwards. A step of 0 is refused when the selection is used.
func Slice(lo, hi, step int64) Index {
	if lo == None && hi == None && step == 1 {
		return All()
	}
	return Index{kind: indexSlice, lo: lo, hi: hi, step: step}
}

// All selects a whole dimension.
func All() Index { return Index{} }

// List selects elements by number, in the given order, repetitions included.
// Negative numbers count from the end. The slice must not be changed while
// the selection is in use. Several lists need [Orthogonal].
func List(i ...int64) Index {
	if i == nil {
		i = []int64{}
	}
	return Index{kind: indexList, list: i}
}

// Ellipsis is replaced by an [All] for each dimension that no other index of the
// selection covers.
func Ellipsis() Index { return Index{kind: indexEllipsis} }

// NewAxis puts a dimension of length 1 into the result.
func NewAxis() Index { return Index{kind: indexNewAxis} }

// Selection selects elements of an array to read or write, and defines the shape
// of the result. It is a value, independent of an array. The zero Selection is
// the whole array.
type Selection struct {
	mode   selectionMode
	index  []Index
	points [][]int64
}

type selectionMode uint8

const (
	selBasic selectionMode = iota
	selOrthogonal
	selPoints
)

// Sel is numpy's basic selection: one index per dimension, missing ones at
// the end are [All]. One [List] is allowed; its result is the same in every
// mode.
func Sel(idx ...Index) Selection { return Selection{mode: selBasic, index: idx} }

// Orthogonal is the outer product of the indices (numpy.ix_): the result has a
// dimension per slice and list, and none per [At].
func Orthogonal(idx ...Index) Selection { return Selection{mode: selOrthogonal, index: idx} }

// Points selects single elements: coords holds the coordinates dimension by
// dimension, all slices equally long, or of length 1 to repeat that coordinate.
// The result has one dimension, an entry per point in the given order. The
// slices must not be changed while the selection is in use.
func Points(coords ...[]int64) Selection { return Selection{mode: selPoints, points: coords} }

// Resolve returns the shape of the result for an array of the given shape, or an
// error that is [ErrSelection].
func (s Selection) Resolve(shape []int64) ([]int64, error) {
	var r region
	if err := r.resolve(s, shape); err != nil {
		return nil, err
	}
	return r.shape, nil
}

// String prints the selection as [ParseSelection] reads it; orthogonal and point
// selections are marked by a word before.
func (s Selection) String() string {
	var b strings.Builder
	switch s.mode {
	case selOrthogonal:
		b.WriteString("orthogonal ")
	case selPoints:
		n := 0
		for _, c := range s.points {
			n = max(n, len(c))
		}
		return fmt.Sprintf("%d points", n)
	}
	for i, x := range s.index {
		if i > 0 {
			b.WriteByte(',')
		}
		x.print(&b)
	}
	return b.String()
}

func (x Index) print(b *strings.Builder) {
	switch x.kind {
	case indexAll:
		b.WriteByte(':')
	case indexAt:
		b.WriteString(strconv.FormatInt(x.lo, 10))
	case indexSlice:
		if x.lo != None {
			b.WriteString(strconv.FormatInt(x.lo, 10))
		}
		b.WriteByte(':')
		if x.hi != None {
			b.WriteString(strconv.FormatInt(x.hi, 10))
		}
		if x.step != 1 {
			b.WriteByte(':')
			b.WriteString(strconv.FormatInt(x.step, 10))
		}
	case indexList:
		fmt.Fprintf(b, "%d indices", len(x.list))
	case indexEllipsis:
		b.WriteString("...")
	case indexNewAxis:
		b.WriteString("newaxis")
	}
}

// region is a selection applied to a shape: the wanted elements along each
// dimension of the array. Its slices are reused by resolve.
type region struct {
	dims  []span
	shape []int64 // of the result
	total int64   // elements of the result
	// points, if not nil, are the coordinates per dimension, checked and not
	// negative; dims is not used then.
	points [][]int64
}

// span is the wanted elements along one dimension: the n elements start,
// start+step, … (step > 0), put into the result in that order or, with flip,
// backwards. list, if not nil, replaces start and step.
type span struct {
	start, step, n int64
	flip           bool
	list           []int64
	axis           int // dimension of the result, -1 if dropped
}

// elements is the number of elements of an array of the given shape; ok is
// false if it does not fit.
func elements(shape []int64) (n int64, ok bool) {
	n, ok = 1, true
	for _, l := range shape {
		if l == 0 {
			return 0, true
		}
		if n > math.MaxInt64/l {
			n, ok = 1, false // go on: a later 0 makes it fit
			continue
		}
		n *= l
	}
	return n, ok
}

// resolve applies s to an array of the given shape.
func (r *region) resolve(s Selection, shape []int64) error {
	r.dims, r.shape, r.points, r.total = r.dims[:0], r.shape[:0], nil, 0
	if s.mode == selPoints {
		return r.resolvePoints(s, shape)
	}
	used, ellipsis, lists := 0, false, 0
	for _, x := range s.index {
		switch x.kind {
		case indexEllipsis:
			if ellipsis {
				return fmt.Errorf("%w: %v: more than one ellipsis", ErrSelection, s)
			}
			ellipsis = true
		case indexNewAxis:
		case indexList:
			lists++
			used++
		default:
			used++
		}
	}
	if used > len(shape) {
		return fmt.Errorf("%w: %v: %d indices for %d dimensions", ErrSelection, s, used, len(shape))
	}
	if lists > 1 && s.mode == selBasic {
		return fmt.Errorf("%w: %v: more than one list: say Orthogonal or Points", ErrSelection, s)
	}
	rest := len(shape) - used
	for _, x := range s.index {
		switch x.kind {
		case indexEllipsis:
			r.all(shape, rest)
			rest = 0
		case indexNewAxis:
			r.shape = append(r.shape, 1)
		default:
			if err := r.index(s, x, shape); err != nil {
				return err
			}
		}
	}
	r.all(shape, rest)
	var ok bool
	if r.total, ok = elements(r.shape); !ok {
		return fmt.Errorf("%w: %v of shape %v has more than 2^63 elements", ErrTooLarge, s, shape)
	}
	return nil
}

// all appends n whole dimensions.
func (r *region) all(shape []int64, n int) {
	for ; n > 0; n-- {
		d := len(r.dims)
		r.dims = append(r.dims, span{step: 1, n: shape[d], axis: len(r.shape)})
		r.shape = append(r.shape, shape[d])
	}
}

// index appends the selection of x along the next dimension.
func (r *region) index(s Selection, x Index, shape []int64) error {
	d := len(r.dims)
	n := shape[d]
	sp := span{step: 1, axis: len(r.shape)}
	switch x.kind {
	case indexAll:
		sp.n = n
	case indexAt:
		i, ok := wrap(x.lo, n)
		if !ok {
			return outside(d, x.lo, n)
		}
		sp.start, sp.n, sp.axis = i, 1, -1
	case indexSlice:
		if x.step == 0 {
			return fmt.Errorf("%w: %v: step 0", ErrSelection, s)
		}
		sp.start, sp.step, sp.n, sp.flip = slice(x.lo, x.hi, x.step, n)
	case indexList:
		list, err := wrapAll(d, x.list, n)
		if err != nil {
			return err
		}
		sp.list, sp.n = list, int64(len(list))
	}
	r.dims = append(r.dims, sp)
	if sp.axis >= 0 {
		r.shape = append(r.shape, sp.n)
	}
	return nil
}

func (r *region) resolvePoints(s Selection, shape []int64) error {
	if len(s.points) != len(shape) {
		return fmt.Errorf("%w: points have %d coordinates, the array %d dimensions", ErrSelection, len(s.points), len(shape))
	}
	// A point of a rank-0 array has no coordinates to count it by: there is one.
	n := 1
	for _, c := range s.points {
		if len(c) != 1 {
			n = len(c)
		}
	}
	r.points = make([][]int64, len(shape))
	for d, c := range s.points {
		if len(c) != n && len(c) != 1 {
			return fmt.Errorf("%w: points have %d coordinates along dimension %d, %d along another", ErrSelection, len(c), d, n)
		}
		list, err := wrapAll(d, c, shape[d])
		if err != nil {
			return err
		}
		if len(list) != n {
			same := list[0]
			list = make([]int64, n)
			for i := range list {
				list[i] = same
			}
		}
		r.points[d] = list
	}
	r.shape = append(r.shape, int64(n))
	r.total = int64(n)
	return nil
}

// slice resolves numpy's lo:hi:step for a dimension of n elements into an
// ascending run; flip means that the result runs backwards.
func slice(lo, hi, step, n int64) (start, by, count int64, flip bool) {
	if step > 0 {
		if lo == None {
			lo = 0
		}
		if hi == None {
			hi = n
		}
		lo, hi = clamp(lo, n, 0, n), clamp(hi, n, 0, n)
		if lo >= hi {
			return 0, 1, 0, false
		}
		count = (hi-lo-1)/step + 1
		if count == 1 {
			step = 1
		}
		return lo, step, count, false
	}
	if lo == None {
		lo = n - 1
	} else {
		lo = clamp(lo, n, -1, n-1)
	}
	if hi == None {
		hi = -1
	} else {
		hi = clamp(hi, n, -1, n-1)
	}
	if lo <= hi {
		return 0, 1, 0, false
	}
	by = -max(step, -math.MaxInt64) // the smallest int64 has no opposite
	count = (lo-hi-1)/by + 1
	if count == 1 {
		return lo, 1, 1, false
	}
	return lo - (count-1)*by, by, count, true
}

// clamp counts a negative i from the end and cuts it to lo..hi.
func clamp(i, n, lo, hi int64) int64 {
	if i < 0 {
		i += n
	}
	return min(max(i, lo), hi)
}

func wrap(i, n int64) (int64, bool) {
	if i < 0 {
		i += n
	}
	return i, i >= 0 && i < n
}

// wrapAll checks a list of elements; it is copied only if one is negative.
func wrapAll(d int, list []int64, n int64) ([]int64, error) {
	out := list
	for k, i := range list {
		j, ok := wrap(i, n)
		if !ok {
			return nil, outside(d, i, n)
		}
		if j == i {
			continue
		}
		if &out[0] == &list[0] {
			out = append([]int64(nil), list...)
		}
		out[k] = j
	}
	return out, nil
}

func outside(d int, i, n int64) error {
	return fmt.Errorf("%w: index %d of dimension %d, which has length %d", ErrSelection, i, d, n)
}
