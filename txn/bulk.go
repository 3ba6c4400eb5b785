package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// Bulk writes a whole node of a session at once: millions of keys, of which
// the pages are built bottom-up while they come in.
//
//	Put("t/.zarray") ─▶ forms of t/
//	Put("t/0.0") ─▶ run of (t/, '.', 2) ─▶ tree.Builder ─▶ pages, in order
//	Put("t/1.5"), Put("t/0.7") ─▶ sorted in batches ─▶ tree.Apply
//	Put("notes") ─▶ edits ─▶ space.apply
//
// The session sees nothing of it before Finish, which puts it in place with a
// few pages. What the session itself writes below the path meanwhile stays if the
// bulk write adds, and is an error of Finish if it replaces. Chunks that come in the order of their coordinates, array by array
// or several arrays in turn, cost no sorting; any order is right, and of a key
// that is put more than once the last value counts. Memory is bounded, except
// for what node documents say of themselves.
//
// A Bulk is not safe for concurrent use. After an error, and if it is not
// finished, what it built is garbage that the session forgets.
type Bulk struct {
	s     *Session
	space *space
	path  string // "" or ends in a slash
	add   bool
	began tree.Root // working root of the session before
	base  tree.Root // of the session's base, before
	start tree.Root // directory at path before
	done  func()    // lets began and base go

	root   tree.Root // what is built, without what runs hold
	loose  map[string]edit
	size   int64             // of loose
	strays bool              // keys without a form were put
	forms  map[string][]Form // by directory, that node documents name
	above  map[string]bool   // directories with such ones further down
	runs   map[runKey]*run   // by home
	open   []*run            // those with a builder, oldest first
	last   *run              // that a key went to
	held   int64             // bytes that runs wait to sort
	lim    bulkLimits
	coords [maxCoordsLen]byte // of the key in hand
	ref    tree.Entry         // a virtual value on its way
	err    error
}

// bulkLimits bound what is held in memory. Tests use smaller ones.
type bulkLimits struct {
	builders int   // chunk maps that are built at the same time
	loose    int   // edits
	held     int64 // bytes of chunks that came out of order
}

var defaultBulkLimits = bulkLimits{builders: 256, loose: 1 << 15, held: 48 << 20}

// runKey is a chunk map: a form in a directory.
type runKey struct {
	dir string
	Form
}

// Bulk begins to write the node at a path anew: after Finish, what was put is
// all there is below the path. Arrays that were there before and are put again
// keep their identity, so that the same keys make no change. With add, what is
// there already stays unless it is put again.
func (s *Session) Bulk(ctx context.Context, path string, add bool) (*Bulk, error) {
	base, root, err := s.flushedSince(ctx)
	if err != nil {
		return nil, err
	}
	frames, err := s.space.walk(ctx, root, dirPath(path))
	if err != nil {
		return nil, err
	}
	b := &Bulk{
		s: s, space: s.space, path: dirPath(path), add: add,
		began: root, base: base, done: s.hold(base, root),
		loose: map[string]edit{}, forms: map[string][]Form{}, above: map[string]bool{}, runs: map[runKey]*run{}, lim: defaultBulkLimits,
	}
	if last := frames[len(frames)-1]; last.path == b.path {
		b.start, frames = last.root, frames[:len(frames)-1]
	}
	if add {
		b.root, b.strays = b.start, b.start.Entries > 0
		for _, f := range frames {
			if len(f.info.forms) > 0 {
				return nil, fmt.Errorf("txn: add to %q: it lies inside the array %q: %w", path, f.path, kv.ErrInvalidKey)
			}
		}
		if err := b.learn(ctx, b.start, ""); err != nil {
			return nil, err
		}
		return b, nil
	}
	return b, b.reuse(ctx)
}

// reuse makes the bulk write leave out the pages that the session's base has at
// the path: writing a node anew makes most of them again as they were.
func (b *Bulk) reuse(ctx context.Context) error {
	_, dir, err := b.space.dirAt(ctx, b.base, b.path)
	if err != nil || dir.Entries == 0 {
		return err
	}
	names, err := b.space.pageNames(ctx, dir)
	if err == nil {
		b.space = b.space.with(knownPages{b.s.pages, names})
	}
	return err
}

// knownPages is the page store of a session without the pages of a version.
//
// Elsewhere every page that is made is put, because one that exists may be about
// to be collected. These are not: the version is held until Finish has given the
// session a working root that names them.
type knownPages struct {
	tree.Pages
	names map[tree.Name]struct{}
}

// PutPage implements [tree.Pages].
func (p knownPages) PutPage(ctx context.Context, name tree.Name, page []byte) error {
	if _, ok := p.names[name]; ok {
		return nil
	}
	return p.Pages.PutPage(ctx, name, page)
}

// pageNames collects the names of the pages below a root, about 100 bytes of
// memory for each. It reads those of directories and the inner ones of chunk
// maps: some MiB among ten million chunks.
func (s *space) pageNames(ctx context.Context, root tree.Root) (map[tree.Name]struct{}, error) {
	names := map[tree.Name]struct{}{}
	err := s.t.Walk(ctx, root, func(name tree.Name, _ uint8, _ int) (bool, error) {
		_, seen := names[name]
		names[name] = struct{}{}
		return !seen, nil
	}, nil)
	return names, err
}

// learn notes the forms at and below a directory.
func (b *Bulk) learn(ctx context.Context, root tree.Root, path string) error {
	if err := checkPath(ctx, path); err != nil {
		return err
	}
	info, err := b.space.dir(ctx, root)
	if err != nil {
		return err
	}
	for _, f := range info.forms {
		b.know(path, f.Form)
	}
	for sub, err := range b.space.subs(ctx, root, info) {
		if err == nil {
			err = b.learn(ctx, sub.root, path+sub.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// know notes a form of a directory.
func (b *Bulk) know(dir string, f Form) {
	dir = strings.Clone(dir)
	b.forms[dir] = append(b.forms[dir], f)
	for at := len(dir); at > 0; {
		at = strings.LastIndexByte(dir[:at-1], '/') + 1
		b.above[dir[:at]] = true
	}
}

// Set puts bytes at a key, which is relative to the path.
func (b *Bulk) Set(ctx context.Context, key string, value []byte) error {
	v := tree.Value{Kind: tree.KindInline, Inline: slices.Clone(value)}
	if len(value) > inlineLimit(key) {
		var err error
		if v, err = b.stored(ctx, key, value); err != nil {
			return fmt.Errorf("set %s: %w", key, err)
		}
	}
	return b.put(ctx, key, &tree.Entry{Value: v})
}

// stored is the value of bytes that go to a pack, unless the key has them already:
// in this bulk write, in the session, or in its base.
func (b *Bulk) stored(ctx context.Context, key string, value []byte) (tree.Value, error) {
	sum := digest.Of(value)
	if e, ok := b.loose[key]; ok && e.value.Kind == tree.KindNative && e.value.Sum == sum {
		return e.value, nil
	}
	full := b.path + key
	for i, root := range []tree.Root{b.began, b.base} {
		if i > 0 && root == b.began {
			break
		}
		old, ok, err := b.space.get(ctx, root, full)
		if err != nil || ok && old.Kind == tree.KindNative && old.Sum == sum {
			return old, err
		}
	}
	return b.s.store(ctx, pack.Owner{Key: []byte(full)}, value, sum)
}

// SetVirtual puts a reference at a key, which is relative to the path; see
// [Session.SetVirtual].
func (b *Bulk) SetVirtual(ctx context.Context, key string, src tree.Source, offset, length uint64) error {
	v := &b.ref.Value // there are millions: no other field is filled or copied
	v.Kind, v.Source, v.Offset, v.Length = tree.KindVirtual, src, offset, length
	return b.put(ctx, key, &b.ref)
}

func (b *Bulk) put(ctx context.Context, key string, e *tree.Entry) error {
	if b.err == nil {
		b.err = b.take(ctx, key, e)
	}
	return b.err
}

// take puts the value of e, of which Key is free for the coordinates.
func (b *Bulk) take(ctx context.Context, key string, e *tree.Entry) error {
	if len(b.path)+len(key) > maxKey {
		return checkKey(b.path + key)
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
	if _, name := splitKey(key); b.space.isNode(name) {
		if err := b.document(ctx, key, e.Value); err != nil {
			return err
		}
	} else {
		b.strays = true
	}
	key = strings.Clone(key) // it may be a part of a larger string
	b.loose[key] = edit{key: key, value: e.Value}
	b.size += int64(len(key)+len(e.Value.Inline)) + 160
	if len(b.loose) >= b.lim.loose || b.size > b.s.db.opts.SessionBytes {
		return b.applyLoose(ctx)
	}
	return nil
}

// home finds the run that a key belongs to: that of the deepest directory with
// a form that spells it.
func (b *Bulk) home(ctx context.Context, key string) (*run, []byte, error) {
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
func (b *Bulk) document(ctx context.Context, key string, v tree.Value) error {
	dir, name := splitKey(key)
	doc, err := b.space.describe(ctx, name, v)
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
		if err := b.settle(ctx); err != nil {
			return err
		}
		b.loose[key] = edit{key: key, value: v}
		if err := b.applyLoose(ctx); err != nil {
			return err
		}
	}
	for _, f := range fresh {
		b.know(dir, f)
	}
	b.last = nil // its keys may have deeper homes now
	return nil
}

// inside reports whether a directory, or one above it, has a run.
func (b *Bulk) inside(dir string) bool {
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
func (b *Bulk) run(ctx context.Context, dir string, f Form) (*run, error) {
	key := runKey{dir, f}
	r := b.runs[key]
	if r == nil {
		r = &run{b: b, dir: strings.Clone(dir), form: f}
		info, _, err := b.space.dirAt(ctx, b.root, dir)
		if err != nil {
			return nil, err
		}
		if info != nil {
			if had := info.form(f); had != nil {
				r.root = had.root
			}
		}
		if r.root.Entries == 0 {
			if len(b.open) >= b.lim.builders {
				if err := b.open[0].seal(); err != nil {
					return nil, err
				}
			}
			r.builder = b.space.t.NewBuilder(ctx)
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

// settle puts the runs and the edits into the tree.
func (b *Bulk) settle(ctx context.Context) error {
	if err := b.applyLoose(ctx); err != nil {
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
		if b.root, err = b.space.setMap(ctx, b.root, k.dir, k.Form, root); err != nil {
			return err
		}
	}
	clear(b.runs)
	b.open, b.last = nil, nil
	return nil
}

// applyLoose applies the edits that belong to no run.
func (b *Bulk) applyLoose(ctx context.Context) error {
	if len(b.loose) == 0 {
		return nil
	}
	edits := make([]edit, 0, len(b.loose))
	for _, e := range b.loose {
		edits = append(edits, e)
	}
	slices.SortFunc(edits, func(x, y edit) int { return strings.Compare(x.key, y.key) })
	root, err := b.space.apply(ctx, b.root, edits)
	if err != nil {
		return err
	}
	b.root, b.size = root, 0
	clear(b.loose)
	return nil
}

// Finish puts what was built in place, where the session sees it. If the bulk
// write adds, what the session wrote below the path since [Session.Bulk] stays,
// except for keys that were put here with other bytes than they had before. If it
// does not add, such writes are an error, and nothing is put in place.
func (b *Bulk) Finish(ctx context.Context) error {
	if b.err != nil {
		return b.err
	}
	defer b.done()
	b.err = errBulkFinished
	if err := b.settle(ctx); err != nil {
		return err
	}
	return b.s.change(ctx, func(root tree.Root) (tree.Root, error) {
		if b.add {
			return b.addTo(ctx, root)
		}
		for it, err := range b.space.diff(ctx, b.began, root, b.path) {
			if err == nil {
				err = fmt.Errorf("txn: bulk write of %q: the session wrote %s since it began: begin it again", strings.TrimSuffix(b.path, "/"), it.key)
			}
			return root, err
		}
		dir, err := b.space.adopt(ctx, b.root, b.start)
		if err != nil || dir == b.start {
			return root, err
		}
		if root, err = b.space.deletePrefix(ctx, root, b.path); err != nil {
			return tree.Root{}, err
		}
		return b.space.graft(ctx, root, graft{src: dir, dir: dir}, strings.TrimSuffix(b.path, "/"))
	})
}

// addTo puts what was built into the session's working root.
func (b *Bulk) addTo(ctx context.Context, root tree.Root) (_ tree.Root, err error) {
	if same, err := b.asBefore(ctx, root); err != nil {
		return tree.Root{}, err
	} else if same {
		return b.space.setDir(ctx, root, b.path, b.root)
	}
	// Only what was put here goes to its place. Of each directory, documents come
	// before the chunks that they give a home.
	put := func(fn visit) error {
		for it, err := range b.space.diff(ctx, b.start, b.root, "") {
			if err == nil {
				err = fn(b.path+it.key, *it.new) // nothing is deleted here
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	err = b.space.inBatches(put, func(batch []edit) error {
		root, err = b.space.apply(ctx, root, batch)
		return err
	})
	return root, err
}

// asBefore reports whether the directory at the path is the one that the bulk
// write began with, and no array above it takes its keys.
func (b *Bulk) asBefore(ctx context.Context, root tree.Root) (bool, error) {
	frames, err := b.space.walk(ctx, root, b.path)
	if err != nil {
		return false, err
	}
	var dir tree.Root
	if last := frames[len(frames)-1]; last.path == b.path {
		dir, frames = last.root, frames[:len(frames)-1]
	}
	above := slices.ContainsFunc(frames, func(f dirFrame) bool { return len(f.info.forms) > 0 })
	return dir == b.start && !above, nil
}

var errBulkFinished = errors.New("txn: bulk write is finished")
