package hdf5

import (
	"context"
	"slices"

	"github.com/zarrdb/zarrdb/formats"
)

// index finds the chunks of a dataset. Safe for concurrent use.
type index interface {
	// find returns the chunk at coordinates inside the largest shape, noChunk if it is
	// not stored.
	find(ctx context.Context, at []int64) (chunk, error)
	// each calls fn with all chunks, in any order; at is valid until it returns.
	each(ctx context.Context, fn func(at []int64, c chunk) error) error
}

// grid is the chunks of a dataset.
type grid struct {
	f        *file
	addr     int64   // of the index
	chunk    []int64 // shape of a chunk
	bytes    int64   // of a chunk without filters
	counts   []int64 // of chunks along each dimension
	max      []int64 // of chunks in the largest shape; unlimited where it has no bound
	filtered bool
}

// openIndex returns the index of a layout.
func (g *grid) openIndex(ctx context.Context, l *layout) (index, error) {
	if g.addr == undefined {
		return &oneIndex{g, noChunk}, nil
	}
	switch l.index {
	case indexTree1:
		return newTree1Index(g), nil
	case indexSingle:
		if n, ok := product(g.counts...); !ok || n > 1 {
			return nil, formats.Invalid("hdf5: one chunk of a dataset of %v chunks", g.counts)
		}
		c := chunk{addr: g.addr, size: g.bytes}
		if l.single.size > 0 {
			c.size, c.mask = l.single.size, l.single.mask
		}
		return &oneIndex{g, c}, nil
	case indexImplicit:
		return &implicitIndex{g}, nil
	case indexFixed:
		return openFixed(ctx, g)
	case indexExtensible:
		return openExtensible(ctx, g)
	}
	return openTree2Index(ctx, g)
}

// inside reports whether there are chunks at some coordinates.
func (g *grid) inside(at []int64) bool {
	for d, n := range at {
		if n < 0 || n >= g.counts[d] {
			return false
		}
	}
	return true
}

// number numbers chunks in C order over the largest shape. first is a dimension that is
// turned to the front, as extensible arrays do with the unlimited one.
func (g *grid) number(at []int64, first int) int64 {
	n := at[first]
	for d, m := range g.max {
		if d != first {
			n = n*m + at[d]
		}
	}
	return n
}

// coordinates is the inverse of number.
func (g *grid) coordinates(n uint64, first int, at []int64) {
	for d := len(g.max) - 1; d >= 0; d-- {
		if d != first {
			at[d] = int64(n % uint64(max(1, g.max[d])))
			n /= uint64(max(1, g.max[d]))
		}
	}
	at[first] = int64(min(n, 1<<62))
}

// fits reports whether the largest shape has no more chunks than n.
func (g *grid) fits(first int, n uint64) error {
	sizes := slices.Clone(g.max)
	sizes[first] = g.counts[first]
	if m, ok := product(sizes...); !ok || uint64(m) > n {
		return formats.Invalid("hdf5: an index of %d chunks of a dataset of %v chunks", n, sizes)
	}
	return nil
}

// oneIndex is of a dataset of at most one chunk.
type oneIndex struct {
	g *grid
	c chunk
}

func (x *oneIndex) find(context.Context, []int64) (chunk, error) { return x.c, nil }

func (x *oneIndex) each(_ context.Context, fn func([]int64, chunk) error) error {
	if at := make([]int64, len(x.g.counts)); x.c.addr != undefined && x.g.inside(at) {
		return fn(at, x.c)
	}
	return nil
}

// implicitIndex is of chunks that lie one behind the other.
type implicitIndex struct{ g *grid }

func (x *implicitIndex) find(_ context.Context, at []int64) (chunk, error) {
	n := x.g.number(at, 0)
	if n < 0 || n > (1<<62)/max(1, x.g.bytes) {
		return noChunk, formats.Invalid("hdf5: chunk %v of an implicit index", at)
	}
	return chunk{addr: x.g.addr + n*x.g.bytes, size: x.g.bytes}, nil
}

func (x *implicitIndex) each(ctx context.Context, fn func([]int64, chunk) error) error {
	// All chunks are in the file: no more than its bytes.
	last := make([]int64, len(x.g.counts))
	for d, n := range x.g.counts {
		last[d] = n - 1
	}
	if x.g.inside(last) {
		c, err := x.find(ctx, last)
		if err == nil {
			err = x.g.f.inside("a chunk", c.addr, c.size)
		}
		if err != nil {
			return err
		}
	}
	for at := range formats.Coords(x.g.counts) {
		c, err := x.find(ctx, at)
		if err == nil {
			err = fn(at, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// element reads an element of a fixed or extensible array, of some bytes: an address, and
// with filters the length and the mask of the chunk.
func (g *grid) element(d *dec, size int) chunk {
	c := chunk{addr: d.address(), size: g.bytes}
	if g.filtered {
		c.size = int64(min(d.uint(size-g.f.addrSize-4), 1<<62))
		c.mask = d.u32()
	}
	if c.addr == undefined {
		return noChunk
	}
	return c
}

// elementSize checks the size of elements.
func (g *grid) elementSize(d *dec, client byte, size int) {
	ok := size == g.f.addrSize
	if g.filtered {
		n := size - g.f.addrSize - 4
		ok = n >= 1 && n <= 8
	}
	if d.err == nil && (client > 1 || (client == 1) != g.filtered || !ok) {
		d.fail("has elements of %d bytes of type %d", size, client)
	}
}
