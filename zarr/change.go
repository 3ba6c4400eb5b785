package zarr

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// A handle may be older than the stored metadata: another handle of the same node
// may have changed the metadata since. So every change reads the stored documents
// and changes only its own fields in them:
//
//	handle:  shape 4, {"a": 1} ─ SetAttributes {"a": 2} ─▶ "a" becomes 2
//	stored:  shape 8, {"a": 1, "b": 1} ──────────────────▶ shape 8, {"a": 2, "b": 1}
//
// Attributes are compared name by name, a shape axis by axis. Where both changed
// the same, the later call decides. The handle then shows the changed field as
// stored. It keeps its other fields: later changes are compared with the state that
// the caller has seen.

// SetAttributes replaces the user attributes that the handle knows. Changes of another
// handle in the meantime stay, unless this call changes the same attribute. A Node and
// the [Array] that it returns show the result at once. Other handles keep the metadata
// that they were opened with.
func (n *Node) SetAttributes(ctx context.Context, attrs Attributes) error {
	if n.array != nil {
		return n.array.SetAttributes(ctx, attrs)
	}
	if err := n.change.Lock(ctx); err != nil {
		return failAt("set attributes of", n.loc.path, err)
	}
	defer n.change.Unlock()
	known := n.meta.Load().Clone()
	err := changeMeta(ctx, n.view, n.loc, n.opts, func(m *Meta) error {
		if m.Array {
			return fmt.Errorf("%w: an array was stored in place of the group; open it again", ErrKind)
		}
		m.Attributes = meta.MergeAttributes(known.Attributes, attrs, m.Attributes)
		return nil
	}, func(_, m *Meta) {
		known.Attributes = m.Attributes
		n.meta.Store(known)
	})
	return failAt("set attributes of", n.loc.path, err)
}

// SetAttributes is [Node.SetAttributes].
func (a *Array) SetAttributes(ctx context.Context, attrs Attributes) error {
	if err := a.change.Lock(ctx); err != nil {
		return a.fail("set attributes of", err)
	}
	defer a.change.Unlock()
	base := a.Meta().Attributes
	err := a.changeMeta(ctx, func(m *Meta) error {
		m.SetAttributes(meta.MergeAttributes(base, attrs, m.Attributes))
		return nil
	}, func(_, m *Meta) {
		a.know(func(known *Meta) { known.SetAttributes(m.Attributes) }, a.st.Load().shapes)
	})
	return a.fail("set attributes of", err)
}

// mergeShape applies the change from base to mine to a stored shape.
func mergeShape(base, mine, stored []int64) []int64 {
	shape := slices.Clone(stored)
	for d := range shape {
		if mine[d] != base[d] {
			shape[d] = mine[d]
		}
	}
	return shape
}

// changeMeta is changeMeta for an array, whose structure must be as the handle
// knows it. The caller holds a.change and no lock of a chunk.
func (a *Array) changeMeta(ctx context.Context, change func(m *Meta) error, stored func(old, m *Meta)) error {
	o := a.opts
	o.Locks = a.locks
	return changeMeta(ctx, a.view, a.loc, o, func(m *Meta) error {
		if err := a.sameStructure(m); err != nil {
			return err
		}
		return change(m)
	}, stored)
}

// refresh makes the handle see a shape that was changed through another one, because
// a writer must know which elements of the chunks at the edge belong to the array.
// The caller holds no lock of a chunk.
func (a *Array) refresh(ctx context.Context) error {
	if a.locks.shapes(a.loc) == a.st.Load().shapes {
		return nil
	}
	return a.reload(ctx)
}

// reload reads the stored metadata, also where refresh knows of no change of the shape: another
// program may have changed it.
func (a *Array) reload(ctx context.Context) error {
	lock := a.locks.of(a.loc.docs)
	if err := lock.Lock(ctx); err != nil {
		return err
	}
	defer lock.Unlock()
	shapes := a.locks.shapes(a.loc) // before the document is read, which others may replace
	m, err := storedMeta(ctx, a.view, a.loc, a.opts)
	if err == nil {
		err = a.sameStructure(m)
	}
	if err != nil {
		return err
	}
	a.know(func(known *Meta) { known.Shape = m.Shape }, shapes)
	return nil
}

// know changes the metadata that the handle shows, as of a count of changes of
// the shape. The caller holds the lock of the document.
func (a *Array) know(change func(known *Meta), shapes int64) {
	m := a.Meta().Clone()
	change(m)
	next := a.st.Load().with(m)
	next.shapes = shapes
	a.st.Store(next)
}

// sameStructure returns an error unless a chunk has the same key and reads the same
// under the stored metadata as under the metadata of the handle.
func (a *Array) sameStructure(stored *Meta) error {
	if string(a.Meta().StructureKey()) != string(stored.StructureKey()) || len(a.Meta().Shape) != len(stored.Shape) {
		return fmt.Errorf("%w: something else was stored in place of the array; open it again", ErrKind)
	}
	return nil
}

// with returns the state for metadata of the same structure.
func (st *arrayState) with(m *Meta) *arrayState {
	next := &arrayState{meta: m, size: st.size, lens: st.lens, form: st.form, shapes: st.shapes}
	next.forms.limit = st.forms.limit
	return next
}

// changeMeta reads the documents of a node, changes a copy and stores it. Then it
// calls stored with the metadata before and after. No other handle with the same
// locks changes the node meanwhile.
func changeMeta(ctx context.Context, view kv.Reader, loc location, o OpenOptions, change func(m *Meta) error, stored func(old, m *Meta)) error {
	if _, err := writerOf(view, loc.version); err != nil {
		return err
	}
	if o.Locks != nil {
		lock := o.Locks.of(loc.docs)
		if err := lock.Lock(ctx); err != nil {
			return err
		}
		defer lock.Unlock()
	}
	old, err := storedMeta(ctx, view, loc, o)
	if err != nil {
		return err
	}
	m := old.Clone()
	if err := change(m); err != nil {
		return err
	}
	if err := saveMeta(ctx, view, loc, old, m); err != nil {
		return err
	}
	stored(old, m)
	return nil
}

// storedMeta reads the metadata of a node.
func storedMeta(ctx context.Context, view kv.Reader, loc location, o OpenOptions) (*Meta, error) {
	f := finder{view: view, opts: o}
	f.opts.Version, f.opts.Consolidated = loc.version, false
	n, err := f.find(ctx, loc.path)
	if err != nil {
		return nil, err
	}
	return n.Meta(), nil
}

// saveMeta stores the documents of a node that changed from old to m, and
// deletes the documents that m no longer has.
func saveMeta(ctx context.Context, view kv.Reader, loc location, old, m *Meta) error {
	w, err := writerOf(view, loc.version)
	if err != nil {
		return err
	}
	docs, err := m.Print()
	if err != nil {
		return err
	}
	var before map[string][]byte
	if old != nil && old.HasDocuments() {
		if before, err = old.Print(); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		if had, ok := before[name]; ok && string(had) == string(docs[name]) {
			continue
		}
		if err := w.Set(ctx, loc.docs+name, docs[name]); err != nil {
			return err
		}
	}
	for name := range before {
		if _, ok := docs[name]; !ok {
			if err := w.Delete(ctx, loc.docs+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Changed notes that a document was set or deleted by other means than a node with these locks.
// Writers of arrays that are open read its shape again.
func (l *ChunkLocks) Changed(document string) {
	l.noteShape(location{docs: document[:strings.LastIndexByte(document, '/')+1]})
}

// shapeCounts counts, by path, how often handles that share [ChunkLocks] stored
// another shape or put an array in place of another.
type shapeCounts struct{ counts sync.Map }

func (c *shapeCounts) shapes(loc location) int64 {
	n, _ := c.counts.Load(loc.docs)
	count, _ := n.(int64)
	return count
}

// noteShape counts a change.
func (c *shapeCounts) noteShape(loc location) int64 {
	n, _ := c.counts.LoadOrStore(loc.docs, int64(0))
	for !c.counts.CompareAndSwap(loc.docs, n, n.(int64)+1) {
		n, _ = c.counts.Load(loc.docs)
	}
	return n.(int64) + 1
}

// replaced notes that a new node took the place of any node there.
func (c *shapeCounts) replaced(n *Node) {
	count := c.noteShape(n.loc)
	if n.array != nil {
		n.array.st.Load().shapes = count // the handle is not shared yet
	}
}
