package modeltest

import (
	"maps"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/zarr"
)

// array is the model of an array. An array never changes: a write returns a new array, which
// shares the unchanged chunks.
type array struct {
	kind  *kind
	fill  int32
	shape []int64
	// chunks hold all elements of a chunk, also those outside of the shape. A
	// chunk of the fill value alone is not there.
	chunks map[coords][]int32

	once sync.Once
	flat []int32
}

// coords are those of a chunk or element; arrays have two dimensions at most.
type coords [2]int64

func newArray(k *kind, shape []int64, fill int32) *array {
	return &array{kind: k, fill: fill, shape: shape, chunks: map[coords][]int32{}}
}

// with returns a copy that may be changed until it is used.
func (a *array) with() *array {
	return &array{kind: a.kind, fill: a.fill, shape: slices.Clone(a.shape), chunks: maps.Clone(a.chunks)}
}

func product(shape []int64) int64 {
	n := int64(1)
	for _, l := range shape {
		n *= l
	}
	return n
}

// each calls fn for all coordinates of a box of the given shape, in C order.
func each(shape []int64, fn func(c coords)) {
	last := int64(1)
	if len(shape) > 1 {
		last = shape[1]
	}
	for i := range shape[0] {
		for j := range last {
			fn(coords{i, j})
		}
	}
}

// locate returns the chunk of an element and the element's place in it.
func (a *array) locate(at coords) (chunk coords, place int64) {
	for d, n := range a.kind.chunk {
		chunk[d] = at[d] / n
		place = place*n + at[d]%n
	}
	return chunk, place
}

// values returns all elements in C order. Safe for concurrent use.
func (a *array) values() []int32 {
	a.once.Do(func() {
		a.flat = make([]int32, 0, product(a.shape))
		each(a.shape, func(at coords) {
			v := a.fill
			chunk, place := a.locate(at)
			if c := a.chunks[chunk]; c != nil {
				v = c[place]
			}
			a.flat = append(a.flat, v)
		})
	})
	return a.flat
}

// element returns one of them.
func (a *array) element(at coords) int32 {
	flat := at[0]
	if len(a.shape) > 1 {
		flat = flat*a.shape[1] + at[1]
	}
	return a.values()[flat]
}

// selection picks elements of each dimension: every step-th from lo to hi.
type selection struct{ lo, hi, step []int64 }

func (s selection) shape() []int64 {
	var n []int64
	for d := range s.lo {
		n = append(n, (s.hi[d]-s.lo[d]+s.step[d]-1)/s.step[d])
	}
	return n
}

// zarr spells it for the product.
func (s selection) zarr() zarr.Selection {
	var index []zarr.Index
	for d := range s.lo {
		index = append(index, zarr.Slice(s.lo[d], s.hi[d], s.step[d]))
	}
	return zarr.Sel(index...)
}

func (s selection) String() string { return s.zarr().String() }

// at returns the element that stands at c of what is selected.
func (s selection) at(c coords) coords {
	for d := range s.lo {
		c[d] = s.lo[d] + c[d]*s.step[d]
	}
	return c
}

func (a *array) selected(s selection) (values []int32) {
	each(s.shape(), func(c coords) { values = append(values, a.element(s.at(c))) })
	return values
}

// write returns the array with values in the selected elements.
func (a *array) write(s selection, values []int32) *array {
	b := a.with()
	own := map[coords]bool{}
	n := 0
	each(s.shape(), func(c coords) {
		chunk, place := b.locate(s.at(c))
		if !own[chunk] {
			own[chunk] = true
			b.chunks[chunk] = b.chunkToWrite(chunk, s)
		}
		b.chunks[chunk][place] = values[n]
		n++
	})
	for chunk := range own {
		b.tidy(chunk)
	}
	return b
}

// chunkToWrite returns a copy of a chunk. If a selection without steps covers what
// is visible of it, the rest becomes the fill value.
func (a *array) chunkToWrite(chunk coords, s selection) []int32 {
	old := a.chunks[chunk]
	covered := true
	for d, n := range a.kind.chunk {
		start, end := chunk[d]*n, min(chunk[d]*n+n, a.shape[d])
		covered = covered && s.step[d] == 1 && s.lo[d] <= start && s.hi[d] >= end
	}
	if old != nil && !covered {
		return slices.Clone(old)
	}
	return slices.Repeat([]int32{a.fill}, int(product(a.kind.chunk)))
}

// tidy drops a chunk of the fill value alone.
func (a *array) tidy(chunk coords) {
	if !slices.ContainsFunc(a.chunks[chunk], func(v int32) bool { return v != a.fill }) {
		delete(a.chunks, chunk)
	}
}

// resize returns the array in another shape. Chunks outside of it go, and elements
// that are cut off a chunk which stays hold the fill value.
func (a *array) resize(shape []int64) *array {
	b := a.with()
	b.shape = shape
	for chunk, values := range a.chunks {
		if b.outside(chunk) {
			if !a.outside(chunk) {
				delete(b.chunks, chunk)
			}
			continue
		}
		values = slices.Clone(values)
		place := 0
		each(a.kind.chunk, func(c coords) {
			was, is := true, true
			for d, n := range a.kind.chunk {
				at := chunk[d]*n + c[d]
				was, is = was && at < a.shape[d], is && at < shape[d]
			}
			if was && !is {
				values[place] = a.fill
			}
			place++
		})
		b.chunks[chunk] = values
		b.tidy(chunk)
	}
	return b
}

// deleteChunks returns the array without the chunks whose number along an axis is
// from or more.
func (a *array) deleteChunks(axis int, from int64) *array {
	b := a.with()
	maps.DeleteFunc(b.chunks, func(c coords, _ []int32) bool { return c[axis] >= from })
	return b
}

// outside reports whether no element of a chunk is in the shape.
func (a *array) outside(chunk coords) bool {
	for d, n := range a.kind.chunk {
		if chunk[d]*n >= a.shape[d] {
			return true
		}
	}
	return false
}

// hides reports whether a chunk holds elements outside of the shape that are not
// the fill value.
func (a *array) hides() bool {
	for chunk, values := range a.chunks {
		place, hidden := 0, false
		each(a.kind.chunk, func(c coords) {
			for d, n := range a.kind.chunk {
				if chunk[d]*n+c[d] >= a.shape[d] && values[place] != a.fill {
					hidden = true
				}
			}
			place++
		})
		if hidden {
			return true
		}
	}
	return false
}

// same reports whether two arrays have the same shape and chunks.
func (a *array) same(b *array) bool {
	return a == b || a.kind == b.kind && a.fill == b.fill && slices.Equal(a.shape, b.shape) &&
		maps.EqualFunc(a.chunks, b.chunks, slices.Equal[[]int32])
}
