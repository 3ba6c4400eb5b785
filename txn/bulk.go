package txn

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// Bulk writes a whole node of a session at once, millions of keys: the pages are
// built bottom-up while the keys come in.
//
// The session sees nothing of it before Finish, which puts it in place with a
// few pages. What the session itself writes below the path meanwhile stays if the
// bulk write adds, and is an error of Finish if it replaces. Chunks that come in
// the order of their coordinates, array by array or several arrays in turn, cost
// no sorting; any order is right, and of a key that is put more than once the last
// value counts. Memory is bounded, except for the chunk key forms of node
// documents.
//
// A Bulk is not safe for concurrent use. After an error, and if it is not
// finished, what it built is garbage that the session forgets.
type Bulk struct {
	s     *Session
	space *namespace.Space
	node  *namespace.Builder
	path  string // "" or ends in a slash
	add   bool
	began tree.Root // working root of the session before
	base  tree.Root // of the session's base, before
	life  uint64    // see Roots
	done  func()    // releases began and base
	err   error
}

// Bulk begins to write the node at a path anew: after Finish, what was put is
// all there is below the path. Arrays that were there before and are put again
// keep their identity, so that the same keys make no change. With add, what is
// there already stays unless it is put again.
func (s *Session) Bulk(ctx context.Context, path string, add bool) (*Bulk, error) {
	at, err := s.home.roots(ctx)
	if err != nil {
		return nil, err
	}
	b := &Bulk{
		s: s, space: s.space, path: namespace.DirPath(path), add: add,
		began: at.Work, base: at.Start, life: at.Life, done: s.hold(at.Start, at.Work),
	}
	if !add {
		if err := b.reuse(ctx); err != nil {
			return nil, err
		}
	}
	b.node, err = b.space.NewBuilder(ctx, at.Work, path, add, s.pages.Bound)
	return b, err
}

// reuse makes the bulk write leave out the pages that the session's base has at
// the path: writing a node anew makes most of them again as they were.
func (b *Bulk) reuse(ctx context.Context) error {
	dir, _, err := b.space.Dir(ctx, b.base, b.path)
	if err != nil || dir.Entries == 0 {
		return err
	}
	names, err := pageNames(ctx, b.space.Tree, dir)
	if err == nil {
		b.space = b.space.With(knownPages{b.s.pages, names})
	}
	return err
}

// knownPages is the page store of a session without the pages of a version.
//
// Elsewhere every page that is made is put, also a page that exists: the collector may be
// about to delete it. The collector keeps the pages of the version until Finish has given
// the session a working root that names them.
type knownPages struct {
	tree.Pages
	names map[tree.Name]struct{}
}

func (p knownPages) PutPage(ctx context.Context, name tree.Name, page []byte) error {
	if _, ok := p.names[name]; ok {
		return nil
	}
	return p.Pages.PutPage(ctx, name, page)
}

// pageNames collects the names of the pages below a root, about 100 bytes of
// memory for each. It reads those of directories and the inner ones of chunk
// maps: some MiB among ten million chunks.
func pageNames(ctx context.Context, t *tree.Tree, root tree.Root) (map[tree.Name]struct{}, error) {
	names := map[tree.Name]struct{}{}
	err := t.Walk(ctx, root, func(name tree.Name, _ uint8, _ int) (bool, error) {
		_, seen := names[name]
		names[name] = struct{}{}
		return !seen, nil
	})
	return names, err
}

// Set puts bytes at a key, which is relative to the path.
func (b *Bulk) Set(ctx context.Context, key string, value []byte) error {
	if b.err != nil {
		return b.err
	}
	v, ok := inlineValue(key, value)
	if !ok {
		var err error
		if v, err = b.stored(ctx, key, value); err != nil {
			return fmt.Errorf("set %s: %w", key, err)
		}
	}
	b.err = b.node.Put(ctx, key, v)
	return b.err
}

// stored is the value of bytes that go to a pack, unless the key has them already:
// in this bulk write, in the session, or in its base.
func (b *Bulk) stored(ctx context.Context, key string, value []byte) (tree.Value, error) {
	full := b.path + key
	if b.s.repeats.Load() {
		if old, ok, err := b.space.Get(ctx, b.began, full); err == nil && ok && b.s.repeated(ctx, old, value) {
			return old, nil
		}
	}
	sum := digest.Of(value)
	if v, ok := b.node.PendingAt(key); ok && v.Kind == tree.KindNative && v.Sum == sum {
		return v, nil
	}
	for i, root := range []tree.Root{b.began, b.base} {
		if i > 0 && root == b.began {
			break
		}
		old, ok, err := b.space.Get(ctx, root, full)
		if err == nil && ok && old.Kind == tree.KindNative && old.Sum == sum {
			ok, err = b.s.home.keeps(ctx, old, value)
		} else {
			ok = false
		}
		if ok || err != nil {
			return old, err
		}
	}
	return b.s.home.store(ctx, pack.Owner{Key: []byte(full)}, value, sum)
}

// SetVirtual puts a reference at a key, which is relative to the path; see
// [Session.SetVirtual].
func (b *Bulk) SetVirtual(ctx context.Context, key string, src tree.Source, offset, length uint64) error {
	if b.err == nil {
		b.err = b.node.PutVirtual(ctx, key, src, offset, length)
	}
	return b.err
}

// SetReferences puts references at the keys of a grid, as [Bulk.SetVirtual] does
// for each, without a key being printed and parsed. The columns are the
// caller's again when it returns.
func (b *Bulk) SetReferences(ctx context.Context, g *ChunkGrid, refs *References) error {
	if b.err == nil {
		b.err = b.node.PutReferences(ctx, g, refs)
	}
	return b.err
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
	if err := b.node.Flush(ctx); err != nil {
		return err
	}
	return b.s.home.change(ctx, nil, func(root tree.Root) (tree.Root, error) {
		if b.s.life != b.life { // pages and values that were sent there may be lost
			return root, fmt.Errorf("bulk write of %q: another process has the session open now: %w; begin the bulk write again", strings.TrimSuffix(b.path, "/"), ErrLost)
		}
		if b.add {
			return b.node.AddTo(ctx, root)
		}
		for it, err := range b.space.Diff(ctx, b.began, root, b.path) {
			if err == nil {
				err = fmt.Errorf("txn: bulk write of %q: the session wrote %s since it began: begin it again", strings.TrimSuffix(b.path, "/"), it.Key)
			}
			return root, err
		}
		return b.node.ReplaceIn(ctx, root)
	})
}

var errBulkFinished = errors.New("txn: bulk write is finished")
