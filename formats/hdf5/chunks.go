package hdf5

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/zarrdb/zarrdb/formats"
)

// table is all chunks of a dataset, by their number in C order.
type table struct{ rows []row }

type row struct {
	number uint64
	chunk
}

const (
	// maxRows bounds the chunks of a table. Larger indexes are read anew each time.
	maxRows = 2 << 20
	// tableBytes bounds the tables that are kept.
	tableBytes = 64 << 20
)

var errRows = errors.New("hdf5: too many chunks for a table")

// index opens the index of the chunks.
func (ds *dataset) index(ctx context.Context) (index, error) {
	return ds.open.Get(ctx, func() (index, error) { return ds.grid.openIndex(ctx, &ds.layout) })
}

// table returns the table of the chunks, or errRows.
func (ds *dataset) table(ctx context.Context) (*table, error) {
	return ds.f.tables.Get(ctx, ds.o.addr, func() (*table, error) {
		t := &table{}
		if _, ok := product(ds.grid.counts...); !ok {
			return nil, errRows // they cannot be numbered
		}
		err := ds.stream(ctx, func(at []int64, c chunk) error {
			if len(t.rows) == maxRows {
				return errRows
			}
			t.rows = append(t.rows, row{ds.grid.number1(at), c})
			return nil
		})
		if err != nil {
			return nil, err
		}
		return t, t.check()
	})
}

// number1 numbers the chunks of the shape in C order.
func (g *grid) number1(at []int64) uint64 { return inOrder(g.counts, at) }

// inOrder is the number of coordinates below counts in C order.
func inOrder(counts, at []int64) uint64 {
	n := uint64(0)
	for d, c := range counts {
		n = n*uint64(c) + uint64(at[d])
	}
	return n
}

// check sorts a table, and refuses chunks that overlap or are there twice.
func (t *table) check() error {
	byPlace := func(a, b row) int { return cmp.Compare(a.addr, b.addr) }
	if !slices.IsSortedFunc(t.rows, byPlace) {
		slices.SortFunc(t.rows, byPlace)
	}
	for i := 1; i < len(t.rows); i++ {
		if a, b := t.rows[i-1], t.rows[i]; a.size > b.addr-a.addr {
			return formats.Invalid("hdf5: the chunks at %d and %d overlap", a.addr, b.addr)
		}
	}
	byNumber := func(a, b row) int { return cmp.Compare(a.number, b.number) }
	if !slices.IsSortedFunc(t.rows, byNumber) {
		slices.SortFunc(t.rows, byNumber)
	}
	for i := 1; i < len(t.rows); i++ {
		if t.rows[i].number == t.rows[i-1].number {
			return formats.Invalid("hdf5: a chunk is in the index twice, at %d and %d", t.rows[i-1].addr, t.rows[i].addr)
		}
	}
	return nil
}

func (t *table) find(number uint64) chunk {
	i, ok := slices.BinarySearchFunc(t.rows, number, func(r row, n uint64) int { return cmp.Compare(r.number, n) })
	if !ok {
		return noChunk
	}
	return t.rows[i].chunk
}

// stream calls fn with all chunks as they are in the index.
func (ds *dataset) stream(ctx context.Context, fn func(at []int64, c chunk) error) error {
	x, err := ds.index(ctx)
	if err != nil {
		return err
	}
	return x.each(ctx, func(at []int64, c chunk) error {
		c, err := ds.checked(at, c)
		if err != nil {
			return err
		}
		return fn(at, c)
	})
}

// each calls fn with all chunks, from the table if they fit one.
func (ds *dataset) each(ctx context.Context, fn func(at []int64, c chunk) error) error {
	t, err := ds.table(ctx)
	if errors.Is(err, errRows) {
		return ds.stream(ctx, fn)
	}
	if err != nil {
		return err
	}
	at := make([]int64, len(ds.grid.counts))
	for _, r := range t.rows {
		n := r.number
		for d := len(at) - 1; d >= 0; d-- {
			c := uint64(ds.grid.counts[d])
			at[d] = int64(n % c)
			n /= c
		}
		if err := fn(at, r.chunk); err != nil {
			return err
		}
	}
	return nil
}

// checked compares a chunk with the file, and sets the mask of one that is stored without
// filters because it is at the border.
func (ds *dataset) checked(at []int64, c chunk) (chunk, error) {
	if ds.filter == nil {
		c.mask = 0
	} else if c.mask &= ds.filter.all(); ds.layout.rawEdges && ds.atEdge(at) {
		c.mask = ds.filter.all()
		if c.size != ds.grid.bytes && ds.layout.index != indexSingle {
			c.size = ds.grid.bytes
		}
	}
	if ds.filter == nil && c.size != ds.grid.bytes {
		return c, formats.Invalid("hdf5: a chunk of %d bytes, where chunks have %d", c.size, ds.grid.bytes)
	}
	return c, ds.f.inside("a chunk", c.addr, c.size)
}

// atEdge reports whether a chunk is partly outside the shape.
func (ds *dataset) atEdge(at []int64) bool {
	for d, n := range at {
		if (n+1)*ds.grid.chunk[d] > ds.space.dims[d] {
			return true
		}
	}
	return false
}

// find returns a chunk inside the grid.
func (ds *dataset) find(ctx context.Context, at []int64) (chunk, error) {
	g := ds.grid
	if t, ok := ds.f.tables.Peek(ds.o.addr); ok {
		return t.find(g.number1(at)), nil
	}
	// Many finds cost more than the whole index.
	const few = 16
	if n := ds.finds.Add(1); n > few {
		if all, ok := product(g.counts...); ok && all <= maxRows && n*64 >= all {
			if t, err := ds.table(ctx); err == nil {
				return t.find(g.number1(at)), nil
			}
		}
	}
	x, err := ds.index(ctx)
	if err != nil {
		return noChunk, err
	}
	c, err := x.find(ctx, at)
	if err != nil || c.addr == undefined {
		return noChunk, err
	}
	return ds.checked(at, c)
}

// coords yields the coordinates of all chunks that there are, for [formats.Array].
func (ds *dataset) coords(ctx context.Context) iter.Seq2[[]int64, error] {
	return func(yield func([]int64, error) bool) {
		at := make([]int64, len(ds.shape))
		err := ds.each(ctx, func(c []int64, _ chunk) error {
			copy(at, c)
			if !yield(at, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && err != errStopped {
			yield(nil, withPath(ds.path, err))
		}
	}
}

var errStopped = errors.New("hdf5: the caller stopped")

// planned returns the mask of the filters that all chunks skip. If the first chunk skips none, the
// codecs have all of them. All chunks are also read if a filter cannot be decoded here. The error is
// formats.ErrUnsupported if chunks have to be encoded anew and cannot be.
func (ds *dataset) planned(ctx context.Context) (uint32, error) {
	if ds.filter == nil || ds.grid == nil {
		return 0, nil
	}
	return ds.plan.Get(ctx, func() (uint32, error) {
		_, unknown := ds.filter.parsed(0)
		if unknown == nil && !ds.f.whole.Load() {
			switch mask, ok, err := ds.firstMask(ctx); {
			case err != nil:
				return 0, err
			case !ok || mask == 0:
				return 0, nil
			}
		}
		common, differ, odd := uint32(0), false, int64(0)
		n := 0
		err := ds.each(ctx, func(_ []int64, c chunk) error {
			if n++; n == 1 {
				common = c.mask
			}
			differ = differ || c.mask != common
			if c.mask != 0 {
				odd++
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		if !differ {
			_, unknown = ds.filter.parsed(common)
		}
		if short := !slices.Equal(ds.shape[:len(ds.space.dims)], ds.space.dims); unknown != nil && (differ || short) {
			return 0, unknown
		}
		if !differ {
			return common, nil
		}
		if odd > maxInline/ds.grid.bytes {
			return 0, formats.Unsupported("hdf5: %d chunks skip filters that others have not skipped: more than %d MiB", odd, maxInline>>20)
		}
		return 0, nil
	})
}

// firstMask returns the mask of one chunk, and whether there is one.
func (ds *dataset) firstMask(ctx context.Context) (mask uint32, ok bool, err error) {
	zero := make([]int64, len(ds.grid.counts))
	if ds.grid.inside(zero) {
		c, err := ds.find(ctx, zero)
		if err != nil || c.addr != undefined {
			return c.mask, err == nil, err
		}
	}
	err = ds.stream(ctx, func(_ []int64, c chunk) error {
		mask, ok = c.mask, true
		return errStopped
	})
	if err == errStopped {
		err = nil
	}
	return mask, ok, err
}
