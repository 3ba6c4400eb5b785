package namespace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// Builder writes a whole node at once: millions of keys, of which the pages are
// built bottom-up while they come in.
//
//	Put("t/.zarray") ─▶ forms of t/
//	Put("t/0.0") ─▶ run of (t/, '.', 2) ─▶ tree.Builder ─▶ pages, in order
//	Put("t/1.5"), put("t/0.7") ─▶ sorted in batches ─▶ tree.Apply
//	Put("notes") ─▶ pending edits ─▶ Space.Apply
//
// Keys are relative to the path of the node. A root gets the node by ReplaceIn or
// AddTo, after Flush. A Builder is not safe for concurrent use, and is of no use
// after an error.
type Builder struct {
	s            *Space
	path         string    // "" or ends in a slash
	start        tree.Root // directory at path before
	pendingBytes int64     // bounds size

	root    tree.Root         // what is built, without what pending and runs hold
	pending map[string]Edit   // of no run
	size    int64             // of pending
	strays  bool              // keys without a form were put
	forms   map[string][]Form // by directory, that node documents name
	above   map[string]bool   // directories with forms further down
	runs    map[runKey]*run   // by home
	open    []*run            // those with a builder, oldest first
	last    *run              // that a key went to
	held    int64             // bytes that runs wait to sort
	Limits  BuilderLimits
	coords  [maxCoordsLen]byte // of the key in hand
	ref     tree.Entry         // a virtual value on its way
}

// BuilderLimits bound what a builder holds in memory. Tests use smaller ones.
type BuilderLimits struct {
	Builders int   // chunk maps that are built at the same time
	Pending  int   // edits
	Held     int64 // bytes of chunks that came out of order
}

var defaultBuilderLimits = BuilderLimits{Builders: 256, Pending: 1 << 15, Held: 48 << 20}

// runKey is a chunk map: a form in a directory.
type runKey struct {
	dir string
	Form
}

// NewBuilder begins to write the node at a path of root. With add, what is there
// already stays unless it is put again. pendingBytes bounds the memory of keys
// that belong to no chunk map.
func (s *Space) NewBuilder(ctx context.Context, root tree.Root, path string, add bool, pendingBytes int64) (*Builder, error) {
	b := &Builder{
		s: s, path: DirPath(path), pendingBytes: pendingBytes,
		pending: map[string]Edit{}, forms: map[string][]Form{}, above: map[string]bool{}, runs: map[runKey]*run{}, Limits: defaultBuilderLimits,
	}
	above, start, err := s.dirsTo(ctx, root, b.path)
	if err != nil {
		return nil, err
	}
	b.start = start
	if !add {
		return b, nil
	}
	b.root, b.strays = start, start.Entries > 0
	for _, f := range above {
		if len(f.info.forms) > 0 {
			return nil, fmt.Errorf("txn: add to %q: it lies inside the array %q: %w", path, f.path, kv.ErrInvalidKey)
		}
	}
	return b, b.readForms(ctx, start, "")
}

// dirsTo returns the directories above a path, which is empty or ends in a slash,
// and the root of the one there.
func (s *Space) dirsTo(ctx context.Context, root tree.Root, path string) (above []dirFrame, dir tree.Root, err error) {
	above, err = s.walk(ctx, root, path)
	if err != nil {
		return nil, dir, err
	}
	if last := above[len(above)-1]; last.path == path {
		dir, above = last.root, above[:len(above)-1]
	}
	return above, dir, nil
}

// readForms notes the forms at and below a directory.
func (b *Builder) readForms(ctx context.Context, root tree.Root, path string) error {
	if err := CheckPath(ctx, path); err != nil {
		return err
	}
	info, err := b.s.readDir(ctx, root)
	if err != nil {
		return err
	}
	for _, f := range info.forms {
		b.addForm(path, f.Form)
	}
	for sub, err := range b.s.subDirs(ctx, root, info) {
		if err == nil {
			err = b.readForms(ctx, sub.root, path+sub.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addForm notes a form of a directory.
func (b *Builder) addForm(dir string, f Form) {
	dir = strings.Clone(dir)
	b.forms[dir] = append(b.forms[dir], f)
	for at := len(dir); at > 0; {
		at = strings.LastIndexByte(dir[:at-1], '/') + 1
		b.above[dir[:at]] = true
	}
}

// Put puts a value at a key.
func (b *Builder) Put(ctx context.Context, key string, v tree.Value) error {
	return b.add(ctx, key, &tree.Entry{Value: v})
}

// PutVirtual puts a reference at a key: length bytes from offset on, or everything
// from there if src.Whole.
func (b *Builder) PutVirtual(ctx context.Context, key string, src tree.Source, offset, length uint64) error {
	v := &b.ref.Value // there are millions: no other field is filled or copied
	v.Kind, v.Source, v.Offset, v.Length = tree.KindVirtual, src, offset, length
	return b.add(ctx, key, &b.ref)
}

// PendingAt returns the value that was put at a key, if it is still in memory.
func (b *Builder) PendingAt(key string) (tree.Value, bool) {
	e, ok := b.pending[key]
	return e.Value, ok
}

// add puts the value of e, of which Key is free for the coordinates.
func (b *Builder) add(ctx context.Context, key string, e *tree.Entry) error {
	if len(b.path)+len(key) > MaxKey {
		return CheckKey(b.path + key)
	}
	r, coords, err := b.home(ctx, key)
	if err != nil {
		return err
	}
	if r != nil { // digits and separators behind a valid directory: a valid key
		e.Key = coords
		return r.add(ctx, e)
	}
	if err := kv.ValidKey(key); err != nil {
		return err
	}
	if _, name := SplitKey(key); b.s.IsNode(name) {
		if err := b.document(ctx, key, e.Value); err != nil {
			return err
		}
	} else {
		b.strays = true
	}
	key = strings.Clone(key) // it may be a part of a larger string
	b.pending[key] = Edit{Key: key, Value: e.Value}
	b.size += int64(len(key)+len(e.Value.Inline)) + 160
	if len(b.pending) >= b.Limits.Pending || b.size > b.pendingBytes {
		return b.applyPending(ctx)
	}
	return nil
}

// home finds the run that a key belongs to: that of the deepest directory with
// a form that matches it.
func (b *Builder) home(ctx context.Context, key string) (*run, []byte, error) {
	if r := b.last; r != nil && strings.HasPrefix(key, r.dir) {
		if coords, ok := r.form.parse(b.coords[:0], key[len(r.dir):]); ok {
			return r, coords, nil
		}
	}
	if len(b.forms) == 0 {
		return nil, nil, nil
	}
	for end := len(key); ; {
		at := strings.LastIndexByte(key[:end], '/') + 1
		for _, f := range b.forms[key[:at]] {
			if coords, ok := f.parse(b.coords[:0], key[at:]); ok {
				r, err := b.run(ctx, key[:at], f)
				return r, coords, err
			}
		}
		if at == 0 {
			return nil, nil, nil
		}
		end = at - 1
	}
}

// document notes the forms that a node document names.
func (b *Builder) document(ctx context.Context, key string, v tree.Value) error {
	dir, name := SplitKey(key)
	doc, err := b.s.describe(ctx, name, v)
	if err != nil {
		return fmt.Errorf("txn: read %s: %w", key, err)
	}
	var fresh []Form
	for _, f := range doc.forms {
		if f.Rank > 0 && !slices.Contains(b.forms[dir], f) {
			fresh = append(fresh, f)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if b.strays || b.inside(dir) {
		// Keys that were put already may belong here.
		if err := b.Flush(ctx); err != nil {
			return err
		}
		b.pending[key] = Edit{Key: key, Value: v}
		if err := b.applyPending(ctx); err != nil {
			return err
		}
	}
	for _, f := range fresh {
		b.addForm(dir, f)
	}
	b.last = nil // its keys may have deeper homes now
	return nil
}

// inside reports whether a directory, or one above it, has a run.
func (b *Builder) inside(dir string) bool {
	for at := len(dir); ; at = strings.LastIndexByte(dir[:at-1], '/') + 1 {
		for _, f := range b.forms[dir[:at]] {
			if b.runs[runKey{dir[:at], f}] != nil {
				return true
			}
		}
		if at == 0 {
			return false
		}
	}
}

// run returns the run of a chunk map, which it begins if there is none.
func (b *Builder) run(ctx context.Context, dir string, f Form) (*run, error) {
	key := runKey{dir, f}
	r := b.runs[key]
	if r == nil {
		r = &run{b: b, dir: strings.Clone(dir), form: f}
		info, _, err := b.s.dirAt(ctx, b.root, dir)
		if err != nil {
			return nil, err
		}
		if info != nil {
			if had := info.form(f); had != nil {
				r.root = had.root
			}
		}
		if r.root.Entries == 0 {
			if len(b.open) >= b.Limits.Builders {
				if err := b.open[0].seal(); err != nil {
					return nil, err
				}
			}
			r.builder = b.s.Tree.NewBuilder(ctx)
			b.open = append(b.open, r)
		}
		b.runs[runKey{r.dir, f}] = r
	}
	b.last = r
	if b.above[r.dir] {
		b.last = nil // its keys may have deeper homes
	}
	return r, nil
}

// Flush applies all that was put, before ReplaceIn or AddTo.
func (b *Builder) Flush(ctx context.Context) error {
	if err := b.applyPending(ctx); err != nil {
		return err
	}
	keys := make([]runKey, 0, len(b.runs))
	for k := range b.runs {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y runKey) int {
		if c := strings.Compare(x.dir, y.dir); c != 0 {
			return c
		}
		return compareForms(x.Form, y.Form)
	})
	for _, k := range keys {
		r := b.runs[k]
		root, err := r.finish(ctx)
		if err != nil {
			return err
		}
		if b.root, err = b.s.setMap(ctx, b.root, k.dir, k.Form, root); err != nil {
			return err
		}
	}
	clear(b.runs)
	b.open, b.last = nil, nil
	return nil
}

// applyPending applies the edits of keys that belong to no run.
func (b *Builder) applyPending(ctx context.Context) error {
	if len(b.pending) == 0 {
		return nil
	}
	edits := make([]Edit, 0, len(b.pending))
	for _, e := range b.pending {
		edits = append(edits, e)
	}
	slices.SortFunc(edits, func(x, y Edit) int { return strings.Compare(x.Key, y.Key) })
	root, err := b.s.Apply(ctx, b.root, edits)
	if err != nil {
		return err
	}
	b.root, b.size = root, 0
	clear(b.pending)
	return nil
}

// ReplaceIn puts what was built in the place of all that root has at the path.
// Arrays that were there when the builder began keep their identity.
func (b *Builder) ReplaceIn(ctx context.Context, root tree.Root) (tree.Root, error) {
	dir, err := b.s.adoptIDs(ctx, b.root, b.start)
	if err != nil || dir == b.start {
		return root, err
	}
	if root, err = b.s.DeletePrefix(ctx, root, b.path); err != nil {
		return tree.Root{}, err
	}
	return b.s.graft(ctx, root, graft{src: dir, dir: dir}, strings.TrimSuffix(b.path, "/"))
}

// AddTo puts into root what was built by a builder that adds. What root has below
// the path stays, except for keys that were put with other bytes than they had
// when the builder began.
func (b *Builder) AddTo(ctx context.Context, root tree.Root) (_ tree.Root, err error) {
	above, dir, err := b.s.dirsTo(ctx, root, b.path)
	if err != nil {
		return tree.Root{}, err
	}
	inside := slices.ContainsFunc(above, func(f dirFrame) bool { return len(f.info.forms) > 0 })
	if dir == b.start && !inside {
		return b.s.setDir(ctx, root, b.path, b.root)
	}
	// Only what was put here goes to its place. Of each directory, documents come
	// before the chunks that they give a home.
	put := func(fn visit) error {
		for it, err := range b.s.Diff(ctx, b.start, b.root, "") {
			if err == nil {
				err = fn(b.path+it.Key, *it.New) // nothing is deleted here
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	err = b.s.inBatches(put, func(batch []Edit) error {
		root, err = b.s.Apply(ctx, root, batch)
		return err
	})
	return root, err
}
