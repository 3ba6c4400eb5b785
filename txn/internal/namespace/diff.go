package namespace

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// Change is a key whose bytes differ between two roots; nil is absent.
type Change struct {
	Key      string
	Coords   []int64 // of a chunk, nil for a document
	Dir      string  // of a chunk: the directory of its array
	Old, New *tree.Value
}

// Diff yields the keys that begin with prefix and have different bytes in two
// roots. Equal pages are skipped, so it costs the changes. Directories come in
// the order of their paths, in each documents and what is below come first and
// then its chunks in the order of their coordinates.
func (s *Space) Diff(ctx context.Context, a, b tree.Root, prefix string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		d := differ{s: s, ctx: ctx, a: a, b: b, moved: map[string][]Form{}}
		d.emit = func(it Change) error {
			if !yield(it, nil) {
				return errStop
			}
			return nil
		}
		if err := d.dir("", a, b, prefix); err != nil && err != errStop {
			yield(Change{}, err)
		}
	}
}

// differ compares two roots directory by directory. Where one has a form that
// the other has not, a key may be a chunk here and a document or another
// form's chunk there. Those forms are kept in moved, and a key that one of them
// matches is looked up before it counts as new or removed.
type differ struct {
	s     *Space
	ctx   context.Context
	a, b  tree.Root
	emit  func(Change) error
	moved map[string][]Form // by directory
}

// dir compares the directories at path, for keys that go on with rel.
func (d *differ) dir(path string, a, b tree.Root, rel string) error {
	if a == b {
		return nil
	}
	if err := CheckPath(d.ctx, path); err != nil {
		return err
	}
	ia, err := d.s.readDir(d.ctx, a)
	if err != nil {
		return err
	}
	ib, err := d.s.readDir(d.ctx, b)
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
	for c, err := range ahead(d.ctx, d.s.Tree, d.s.Tree.Diff(d.ctx, a, b, bounds.entries()), changedRoots) {
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
			err = d.change(Change{Key: path + string(c.Key), Old: c.Old, New: c.New})
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

// findMoved notes a form of one side only, if it matches keys of the other.
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
		d.moved[at.dir] = append(d.moved[at.dir], at.Form)
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
		for c, err := range d.s.Tree.Diff(d.ctx, a, b, tree.Span{From: from, To: to}) {
			if err != nil {
				return err
			}
			if key, ok = f.print(key[:len(path)], c.Key); !ok {
				return corrupt("chunk map of %q: coordinates %x", path, c.Key)
			}
			if err := d.change(Change{string(key), f.numbers(c.Key), path, c.Old, c.New}); err != nil {
				return err
			}
		}
	}
	return nil
}

// change reports a change unless the bytes are the same.
func (d *differ) change(it Change) error {
	if (it.Old == nil || it.New == nil) && d.isMoved(it.Key) {
		other := d.a
		if it.New == nil {
			other = d.b
		}
		v, ok, err := d.s.Get(d.ctx, other, it.Key)
		if err != nil {
			return err
		}
		if ok {
			if it.New == nil {
				return nil // reported where it is now
			}
			it.Old = &v
		}
	}
	if SameBytes(it.Old, it.New) {
		return nil
	}
	return d.emit(it)
}

func (d *differ) isMoved(key string) bool {
	for at := len(key); at > 0 && len(d.moved) > 0; {
		at = strings.LastIndexByte(key[:at], '/')
		if slices.ContainsFunc(d.moved[key[:at+1]], func(f Form) bool {
			_, ok := f.parse(nil, key[at+1:])
			return ok
		}) {
			return true
		}
	}
	return false
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
func (s *Space) changedDirs(ctx context.Context, path string, a, b tree.Root, fn func(path string, a, b *dirInfo) error) error {
	if a == b {
		return nil
	}
	if err := CheckPath(ctx, path); err != nil {
		return err
	}
	ia, err := s.readDir(ctx, a)
	if err != nil {
		return err
	}
	ib, err := s.readDir(ctx, b)
	if err != nil {
		return err
	}
	if err := fn(path, ia, ib); err != nil {
		return err
	}
	for c, err := range ahead(ctx, s.Tree, s.Tree.Diff(ctx, a, b, tree.Span{}), changedRoots) {
		if err == nil && isSub(c.Key) {
			err = s.changedDirs(ctx, path+string(c.Key), childOf(c.Old), childOf(c.New), fn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// FirstChange returns one change between two roots at or below a path, and nil if they hold
// the same bytes there. It looks at the path itself first, and then takes the first change
// that Diff yields.
func (s *Space) FirstChange(ctx context.Context, a, b tree.Root, path string) (*Change, error) {
	if a == b {
		return nil, nil
	}
	if path != "" {
		var v [2]*tree.Value
		for i, root := range []tree.Root{a, b} {
			is, ok, err := s.Get(ctx, root, path)
			if err != nil {
				return nil, err
			}
			if ok {
				v[i] = &is
			}
		}
		if !SameBytes(v[0], v[1]) {
			return &Change{Key: path, Old: v[0], New: v[1]}, nil
		}
	}
	for c, err := range s.Diff(ctx, a, b, DirPath(path)) {
		return &c, err
	}
	return nil, nil
}
