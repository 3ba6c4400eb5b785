package zarr

import (
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/kv"
)

// ResizeOptions control the elements that a shrunk array loses.
//
// By default they are gone: chunks outside the new shape are deleted, and in chunks
// at its edge the elements outside are reset to the fill value. zarr-python and
// tensorstore leave the chunks at the edge as they are.
type ResizeOptions struct {
	// KeepChunks changes nothing but the metadata: the elements come back when the
	// array grows again.
	KeepChunks bool
}

// Resize changes the shape of the array; the number of dimensions stays. New
// elements hold the fill value, unless a chunk has them from before (see
// [ResizeOptions]). The chunks at the new edge are rewritten first, virtual ones as
// stored ones: if that fails, the shape stays, and some of the elements that were to
// be cut off hold the fill value. Then the metadata is written: if deleting chunks
// fails afterwards, the chunks that are left are out of sight.
//
// The grid of chunks stays the same, so a rectilinear one bounds the shape. Where
// another handle changed the shape in the meantime, axes that keep the length that
// this handle knows have the stored one.
func (a *Array) Resize(ctx context.Context, shape []int64, o ResizeOptions) error {
	if err := a.change.Lock(ctx); err != nil {
		return a.fail("resize", err)
	}
	defer a.change.Unlock()
	return a.fail("resize", a.resize(ctx, shape, o))
}

func (a *Array) resize(ctx context.Context, shape []int64, o ResizeOptions) error {
	if a.readOnly != nil {
		return a.readOnly
	}
	base := a.st.Load().meta.Shape
	if len(shape) != len(base) {
		return fmt.Errorf("%w: shape %v for an array of %d dimensions", ErrSelection, shape, len(base))
	}
	if !o.KeepChunks {
		if err := a.resetEdges(ctx, base, shape); err != nil {
			return err
		}
	}
	var was *arrayState // with the shape before
	err := a.changeMeta(ctx, func(m *Meta) error {
		m.Shape = mergeShape(base, shape, m.Shape)
		return m.Validate()
	}, func(old, m *Meta) {
		was = a.st.Load().with(old)
		a.know(func(known *Meta) { known.Shape = m.Shape }, a.locks.noteShape(a.loc))
	})
	if err != nil || o.KeepChunks {
		return err
	}
	return a.deleteOutside(ctx, was, a.st.Load().meta.Shape)
}

// resetEdges resets the elements that a change of the shape from base to shape cuts
// off, in chunks that keep other elements.
func (a *Array) resetEdges(ctx context.Context, base, shape []int64) error {
	if err := a.reload(ctx); err != nil {
		return err
	}
	m := a.st.Load().meta
	resized := m.Clone()
	resized.Shape = mergeShape(base, shape, m.Shape)
	if err := resized.Validate(); err != nil {
		return err
	}
	next := resized.Shape
	box := make([]Index, len(next)) // of the chunks that keep elements
	ends := make([]int64, len(next))
	for d, n := range next {
		ends[d] = m.Shape[d]
		if n < m.Shape[d] {
			ends[d] = min(m.Grid.Start(d, m.Grid.Count(d, n)), m.Shape[d])
		}
		box[d] = Slice(0, ends[d], 1)
	}
	for d, n := range next {
		if n >= ends[d] {
			continue
		}
		box[d] = Slice(n, ends[d], 1)
		if err := a.writeFill(ctx, Sel(box...), true); err != nil {
			return err
		}
		box[d] = Slice(0, n, 1)
	}
	return nil
}

// deleteOutside deletes the chunks of the old shape that hold no element of
// the new one.
func (a *Array) deleteOutside(ctx context.Context, st *arrayState, shape []int64) error {
	grid, old := st.meta.Grid, st.meta.Shape
	keep := make([]int64, len(shape)) // chunks that stay along each dimension
	all := make([]int64, len(shape))
	for d := range shape {
		keep[d], all[d] = grid.Count(d, shape[d]), grid.Count(d, old[d])
		keep[d] = min(keep[d], all[d])
	}
	stay, ok1 := elements(keep)
	total, ok2 := elements(all)
	if ok1 && ok2 && total == stay {
		return nil
	}
	list, ok := a.view.(kv.Lister)
	few := ok1 && ok2 && total-stay <= tune.few
	switch {
	case few, !ok && ok1 && ok2:
		return a.deleteBox(ctx, st, keep, all)
	case !ok:
		return fmt.Errorf("deleting more than 2^63 chunks in a view that cannot be listed: %w", errors.ErrUnsupported)
	}
	var keys []string
	err := a.eachListed(ctx, list, st, func(key string, coords []int64) error {
		for d, c := range coords {
			if c >= keep[d] {
				keys = append(keys, key)
				break
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return kv.DeleteAll(ctx, a.writer, keys)
}

// deleteBox deletes, one by one, the chunks inside all that are outside keep:
// for each dimension those beyond keep there and within it in the dimensions
// before.
func (a *Array) deleteBox(ctx context.Context, st *arrayState, keep, all []int64) error {
	coords := make([]int64, len(all))
	var walk func(d, cut int) error
	walk = func(d, cut int) error {
		if d == len(all) {
			if err := ctx.Err(); err != nil {
				return err
			}
			key := string(st.meta.Keys.Append([]byte(a.loc.chunks), coords))
			return a.writer.Delete(ctx, key)
		}
		lo, hi := int64(0), all[d]
		switch {
		case d < cut:
			hi = keep[d]
		case d == cut:
			lo = keep[d]
		}
		for c := lo; c < hi; c++ {
			coords[d] = c
			if err := walk(d+1, cut); err != nil {
				return err
			}
		}
		return nil
	}
	for cut := range all {
		if err := walk(0, cut); err != nil {
			return err
		}
	}
	return nil
}

// eachListed lists the keys below the array and calls fn for the keys of chunks
// inside the grid of the state's shape.
func (a *Array) eachListed(ctx context.Context, list kv.Lister, st *arrayState, fn func(key string, coords []int64) error) error {
	counts := st.meta.ChunkCounts()
	for key, err := range list.List(ctx, kv.ListOptions{Prefix: a.loc.chunks + st.meta.Keys.Prefix()}) {
		if err != nil {
			return err
		}
		coords, ok := st.meta.Keys.Parse(key[len(a.loc.chunks):])
		for d := 0; ok && d < len(coords); d++ {
			ok = coords[d] < counts[d]
		}
		if !ok {
			continue
		}
		if err := fn(key, coords); err != nil {
			return err
		}
	}
	return nil
}

// NChunksInitialised counts the chunks that are stored. It lists the keys of
// the array: a view that is no [kv.Lister] gives errors.ErrUnsupported.
func (a *Array) NChunksInitialised(ctx context.Context) (n int64, err error) {
	list, ok := a.view.(kv.Lister)
	if !ok {
		return 0, a.fail("list", errors.ErrUnsupported)
	}
	err = a.eachListed(ctx, list, a.st.Load(), func(string, []int64) error {
		n++
		return nil
	})
	return n, a.fail("list", err)
}
