package namespace

import (
	"context"
	"strconv"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// ChunkGrid describes the keys of the chunks of an array.
type ChunkGrid struct {
	// Dir is what the keys begin with, relative to the path of the bulk write: ""
	// or a directory and a slash.
	Dir string
	// Counts are the numbers of chunks along each dimension, one or more, each
	// at least 1.
	Counts []int64
	// Sep stands between coordinates: '.' or '/'.
	Sep byte
}

// References are virtual values of chunks that follow each other in C order, as
// columns of equal length: row i is the chunk with number First + i.
type References struct {
	// First is below the product of the grid's counts, and so is the number of
	// the last row.
	First int64
	// URL is empty where nothing is put.
	URL []string
	// Validator is as in [tree.Source]. It may be nil where there are none.
	Validator []string
	// Offset and Length are in bytes. A negative length means the whole
	// resource, and no offset counts.
	Offset, Length []int64
}

// PutReferences puts references at the keys of a grid, without a key being
// printed and parsed. The columns are the caller's again when it returns.
func (b *Builder) PutReferences(ctx context.Context, g *ChunkGrid, refs *References) error {
	if len(refs.URL) == 0 {
		return nil
	}
	at := newGridWalk(g, refs.First)
	r, _, err := b.home(ctx, at.key())
	if err != nil {
		return err
	}
	if r != nil && b.holds(r, g) {
		return r.addReferences(ctx, at, refs)
	}
	// The grid is not that of the document, or arrays lie inside of this one.
	for i, url := range refs.URL {
		if url != "" {
			refs.value(i, &b.ref.Value)
			if err := b.add(ctx, at.key(), &b.ref); err != nil {
				return err
			}
		}
		at.next()
	}
	return nil
}

// holds reports whether all keys of a grid belong to a run, given that one does.
func (b *Builder) holds(r *run, g *ChunkGrid) bool {
	longest := len(b.path) + len(g.Dir) + (maxDigits+1)*len(g.Counts)
	if longest > MaxKey || r.dir != g.Dir || r.form.Prefix != "" || r.form.Rank != len(g.Counts) {
		return false
	}
	return r.form.Rank == 1 || r.form.Sep == g.Sep && (g.Sep == '.' || !b.above[r.dir])
}

// value makes row i a value. It fills no field that does not count.
func (refs *References) value(i int, v *tree.Value) {
	v.Kind, v.Source.URL, v.Source.Validator = tree.KindVirtual, refs.URL[i], ""
	if refs.Validator != nil {
		v.Source.Validator = refs.Validator[i]
	}
	v.Offset, v.Length, v.Source.Whole = uint64(refs.Offset[i]), uint64(refs.Length[i]), false
	if refs.Length[i] < 0 {
		v.Offset, v.Length, v.Source.Whole = 0, 0, true
	}
}

// addReferences adds references of consecutive chunks, the first of which is at.
func (r *run) addReferences(ctx context.Context, at *gridWalk, refs *References) (err error) {
	e := &r.b.ref
	ordered := false // the builder has one of them, so that the next are greater
	for i, url := range refs.URL {
		if url != "" {
			refs.value(i, &e.Value)
			e.Key = at.coded
			if ordered {
				r.latest = append(r.latest[:0], e.Key...)
				err = r.builder.Add(e)
			} else {
				err = r.add(ctx, e)
				ordered = r.builder != nil
			}
			if err != nil {
				return err
			}
		}
		at.next()
	}
	return nil
}

// gridWalk goes through the chunks of a grid in C order.
type gridWalk struct {
	*ChunkGrid
	coords []int64
	coded  []byte // as they are in chunk maps
	last   int    // where the last one begins in coded
}

// newGridWalk begins at a chunk.
func newGridWalk(g *ChunkGrid, number int64) *gridWalk {
	w := &gridWalk{ChunkGrid: g, coords: make([]int64, len(g.Counts))}
	for d := len(g.Counts) - 1; d >= 0; d-- {
		w.coords[d] = number % g.Counts[d]
		number /= g.Counts[d]
	}
	w.code()
	return w
}

func (w *gridWalk) code() {
	w.coded = w.coded[:0]
	for _, c := range w.coords {
		w.last = len(w.coded)
		w.coded = appendCoord(w.coded, uint64(c))
	}
}

// next goes to the chunk that follows; after the last one to the first.
func (w *gridWalk) next() {
	d := len(w.coords) - 1
	if w.coords[d]++; w.coords[d] < w.Counts[d] {
		w.coded = appendCoord(w.coded[:w.last], uint64(w.coords[d]))
		return
	}
	for ; d > 0 && w.coords[d] == w.Counts[d]; d-- {
		w.coords[d] = 0
		w.coords[d-1]++
	}
	w.coords[0] %= w.Counts[0]
	w.code()
}

// key prints the key of the chunk.
func (w *gridWalk) key() string {
	b := []byte(w.Dir)
	for d, c := range w.coords {
		if d > 0 {
			b = append(b, w.Sep)
		}
		b = strconv.AppendInt(b, c, 10)
	}
	return string(b)
}
