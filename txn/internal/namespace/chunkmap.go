package namespace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// mapWriter collects edits of one chunk map in any order and applies them in
// the order of their coordinates.
type mapWriter struct {
	s     *Space
	form  Form
	root  tree.Root
	edits []Edit // what refs point into

	refs   []chunkRef
	coords []byte // encoded coordinates of all refs
}

// chunkRef is an edit with its coordinates: 24 bytes per chunk of a batch.
type chunkRef struct {
	head uint64 // the first 8 bytes, which decide most comparisons
	edit int32
	off  uint32
	len  uint16
}

// mapBatch is the most edits that are collected: with maxCoordsLen bytes each
// they must fit the fields of chunkRef.
const mapBatch = 1 << 20

// add adds edit i if the form matches its key.
func (w *mapWriter) add(ctx context.Context, key string, i int) (bool, error) {
	start := len(w.coords)
	coords, ok := w.form.parse(w.coords, key)
	if !ok {
		w.coords = coords[:start]
		return false, nil
	}
	w.coords = coords
	b := coords[start:]
	w.refs = append(w.refs, chunkRef{coordHead(b), int32(i), uint32(start), uint16(len(b))})
	if len(w.refs) >= w.s.Limits.Refs {
		return true, w.flush(ctx)
	}
	return true, nil
}

func coordHead(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var h [8]byte
	copy(h[:], b)
	return binary.BigEndian.Uint64(h[:])
}

func (w *mapWriter) key(r *chunkRef) []byte { return w.coords[r.off:][:r.len:r.len] }

// flush applies what was collected.
func (w *mapWriter) flush(ctx context.Context) (err error) {
	if len(w.refs) == 0 {
		return nil
	}
	order := func(a, b chunkRef) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return bytes.Compare(w.key(&a), w.key(&b))
	}
	if !slices.IsSortedFunc(w.refs, order) {
		slices.SortFunc(w.refs, order)
	}
	w.root, err = w.s.writeMap(ctx, w.root, len(w.refs), func(i int) tree.Edit {
		r := &w.refs[i]
		e := &w.edits[r.edit]
		return tree.Edit{Key: w.key(r), Value: e.Value, Delete: e.Delete}
	})
	w.refs, w.coords = w.refs[:0], w.coords[:0]
	return err
}

// writeMap makes n edits of a chunk map, ascending by coordinates. An empty map is
// built.
func (s *Space) writeMap(ctx context.Context, root tree.Root, n int, edit func(i int) tree.Edit) (_ tree.Root, err error) {
	if root.Entries == 0 {
		b := s.Tree.NewBuilder(ctx)
		for i := range n {
			e := edit(i)
			if e.Delete {
				continue
			}
			if err := b.Add(&tree.Entry{Key: e.Key, Value: e.Value}); err != nil {
				return tree.Root{}, err
			}
		}
		return b.Finish()
	}
	size := min(n, s.Limits.Edits)
	batch := make([]tree.Edit, 0, size)
	for i := range n {
		if batch = append(batch, edit(i)); len(batch) < size && i < n-1 {
			continue
		}
		if root, err = s.Tree.Apply(ctx, root, batch); err != nil {
			return tree.Root{}, err
		}
		batch = batch[:0]
	}
	return root, nil
}
