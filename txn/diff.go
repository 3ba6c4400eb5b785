package txn

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// diffItem is a key whose bytes differ between two roots; nil is absent.
type diffItem struct {
	key      string
	coords   []int64 // of a chunk, nil for a document
	dir      string  // of a chunk: the directory whose form spells it
	old, new *tree.Value
}

// diff yields the keys that begin with prefix and have different bytes in two
// roots. Equal pages are skipped, so it costs the changes. Directories come in
// the order of their paths, in each documents and what is below come first and
// then its chunks in the order of their coordinates.
func (s *space) diff(ctx context.Context, a, b tree.Root, prefix string) iter.Seq2[diffItem, error] {
	return func(yield func(diffItem, error) bool) {
		d := differ{s: s, ctx: ctx, a: a, b: b}
		d.emit = func(it diffItem) error {
			if !yield(it, nil) {
				return errStop
			}
			return nil
		}
		if err := d.dir("", a, b, prefix); err != nil && err != errStop {
			yield(diffItem{}, err)
		}
	}
}

// differ compares two roots directory by directory. Where one has a form that
// the other has not, a key may be a chunk here and a document or another
// form's chunk there. Those forms are kept in moved, and a key that one of them
// spells is looked up before it is called new or gone.
type differ struct {
	s     *space
	ctx   context.Context
	a, b  tree.Root
	emit  func(diffItem) error
	moved []formAt
}

// dir compares the directories at path, for keys that go on with rel.
func (d *differ) dir(path string, a, b tree.Root, rel string) error {
	if a == b {
		return nil
	}
	if err := checkPath(d.ctx, path); err != nil {
		return err
	}
	ia, err := d.s.dir(d.ctx, a)
	if err != nil {
		return err
	}
	ib, err := d.s.dir(d.ctx, b)
	if err != nil {
		return err
	}
	forms := unionForms(&ia.dirState, &ib.dirState)
	for _, f := range forms {
		if err := d.findMoved(formAt{path, f}, ia.form(f) != nil, ib.form(f) != nil); err != nil {
			return err
		}
	}
	bounds := listBounds{rel, rel}
	for c, err := range d.s.t.Diff(d.ctx, a, b, bounds.entries()) {
		if err != nil {
			return err
		}
		switch {
		case isReserved(c.Key):
		case isSub(c.Key):
			if below, ok := bounds.below(string(c.Key)); ok {
				err = d.dir(path+string(c.Key), childOf(c.Old), childOf(c.New), below.prefix)
			}
		case strings.HasPrefix(string(c.Key), rel):
			err = d.change(diffItem{key: path + string(c.Key), old: c.Old, new: c.New})
		}
		if err != nil {
			return err
		}
	}
	for _, f := range forms {
		if err := d.chunks(path, f, mapOf(&ia.dirState, f), mapOf(&ib.dirState, f), rel); err != nil {
			return err
		}
	}
	return nil
}

// findMoved remembers a form that one side has if it took up keys of the other.
func (d *differ) findMoved(at formAt, inA, inB bool) error {
	if inA == inB {
		return nil
	}
	other := d.a
	if inA {
		other = d.b
	}
	any, err := d.s.captures(d.ctx, other, at)
	if any {
		d.moved = append(d.moved, at)
	}
	return err
}

func (d *differ) chunks(path string, f Form, a, b tree.Root, rel string) error {
	cut, ok := f.cut(rel)
	if !ok || a == b {
		return nil
	}
	key := []byte(path)
	for from, to := range cut.spans {
		for c, err := range d.s.t.Diff(d.ctx, a, b, tree.Span{From: from, To: to}) {
			if err != nil {
				return err
			}
			if key, ok = f.print(key[:len(path)], c.Key); !ok {
				return corrupt("chunk map of %q: coordinates %x", path, c.Key)
			}
			if err := d.change(diffItem{string(key), f.numbers(c.Key), path, c.Old, c.New}); err != nil {
				return err
			}
		}
	}
	return nil
}

// change reports a change unless the bytes are the same.
func (d *differ) change(it diffItem) error {
	if (it.old == nil || it.new == nil) && d.isMoved(it.key) {
		other := d.a
		if it.new == nil {
			other = d.b
		}
		v, ok, err := d.s.get(d.ctx, other, it.key)
		if err != nil {
			return err
		}
		if ok {
			if it.new == nil {
				return nil // reported where it is now
			}
			it.old = &v
		}
	}
	if sameBytes(it.old, it.new) {
		return nil
	}
	return d.emit(it)
}

func (d *differ) isMoved(key string) bool {
	return slices.ContainsFunc(d.moved, func(at formAt) bool {
		if !strings.HasPrefix(key, at.dir) {
			return false
		}
		_, ok := at.parse(nil, key[len(at.dir):])
		return ok
	})
}

// unionForms returns the forms of several states, each once.
func unionForms(states ...*dirState) []Form {
	var out []Form
	for _, st := range states {
		for _, f := range st.forms {
			out = append(out, f.Form)
		}
	}
	slices.SortFunc(out, compareForms)
	return slices.Compact(out)
}

// mapOf returns the chunk map of a form, empty if there is none.
func mapOf(d *dirState, f Form) tree.Root {
	if f := d.form(f); f != nil {
		return f.root
	}
	return tree.Root{}
}

// childOf returns the root of a child, empty if there is none.
func childOf(v *tree.Value) tree.Root {
	if v == nil {
		return tree.Root{}
	}
	return v.Child
}

// changedDirs visits the directories at and below path that differ between two
// roots.
func (s *space) changedDirs(ctx context.Context, path string, a, b tree.Root, fn func(path string, a, b *dirInfo) error) error {
	if a == b {
		return nil
	}
	if err := checkPath(ctx, path); err != nil {
		return err
	}
	ia, err := s.dir(ctx, a)
	if err != nil {
		return err
	}
	ib, err := s.dir(ctx, b)
	if err != nil {
		return err
	}
	if err := fn(path, ia, ib); err != nil {
		return err
	}
	for c, err := range s.t.Diff(ctx, a, b, tree.Span{}) {
		if err == nil && isSub(c.Key) {
			err = s.changedDirs(ctx, path+string(c.Key), childOf(c.Old), childOf(c.New), fn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sameAt reports whether two roots have the same bytes at and below a path.
func (s *space) sameAt(ctx context.Context, a, b tree.Root, path string) (bool, error) {
	if a == b {
		return true, nil
	}
	if path != "" {
		was, inA, err := s.get(ctx, a, path)
		if err != nil {
			return false, err
		}
		is, inB, err := s.get(ctx, b, path)
		if err != nil || inA != inB || inA && !sameBytes(&was, &is) {
			return false, err
		}
	}
	for _, err := range s.diff(ctx, a, b, dirPath(path)) {
		return false, err
	}
	return true, nil
}
