package txn

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// Snapshot is one version as a read-only view. It never changes, costs nothing
// to hold, and is safe for concurrent use. Until Close, its version is kept
// even if no ref names it any more.
type Snapshot struct {
	db     *DB
	commit *Commit
	close  func()
	kept   func() error // nil, or whether the lease of a peer holds

	mu     sync.Mutex // beside Close
	closed atomic.Bool
}

var (
	_ kv.Reader      = (*Snapshot)(nil)
	_ kv.BatchReader = (*Snapshot)(nil)
	_ kv.Locator     = (*Snapshot)(nil)
	_ kv.Lister      = (*Snapshot)(nil)
	_ kv.DirLister   = (*Snapshot)(nil)
)

// At opens the version that a revision names; see [DB.Resolve].
func (db *DB) At(ctx context.Context, rev string) (*Snapshot, error) {
	return db.home.at(ctx, rev)
}

func (h holder) at(ctx context.Context, rev string) (*Snapshot, error) {
	id, err := h.Resolve(ctx, rev)
	if err != nil {
		return nil, err
	}
	return h.snapshot(ctx, id)
}

// Snapshot opens the version of a commit. A version that has expired can be opened as long as
// another snapshot or a peer has it open.
func (db *DB) Snapshot(ctx context.Context, id CommitID) (*Snapshot, error) {
	return db.home.snapshot(ctx, id)
}

func (h holder) snapshot(ctx context.Context, id CommitID) (*Snapshot, error) {
	if err := h.keeping.RLock(ctx); err != nil {
		return nil, err
	}
	defer h.keeping.RUnlock()
	c, err := h.version(ctx, id)
	if errors.Is(err, ErrExpired) {
		if c, release := h.holdAgain(ctx, id); c != nil {
			return &Snapshot{db: h.DB, commit: c, close: release}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return &Snapshot{db: h.DB, commit: c, close: h.hold(c.Root)}, nil
}

// holdAgain is hold of a version that may have expired, if an open snapshot or the lease of a
// peer holds it. Else c is nil.
func (db *DB) holdAgain(ctx context.Context, id CommitID) (c *Commit, release func()) {
	c, err := db.Lookup(ctx, id)
	if err != nil {
		return nil, nil
	}
	if release := db.holdHeld(c.Root); release != nil {
		return c, release
	}
	if db.writable() != nil {
		return nil, nil
	}
	if _, err := db.visits.NotBack(); err != nil { // a peer of an earlier process may have the version open
		return nil, nil
	}
	if release := db.holdHeld(c.Root); release != nil {
		return c, release
	}
	return nil, nil
}

// holdHeld is hold of what is held already, else nil.
func (db *DB) holdHeld(root tree.Root) (release func()) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.roots[root] == 0 {
		return nil
	}
	return db.holdLocked(root)
}

// hold keeps all below a root from being collected until release is called.
func (db *DB) hold(root tree.Root) (release func()) {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.holdLocked(root)
}

// holdLocked is hold where db.mu is held.
func (db *DB) holdLocked(root tree.Root) (release func()) {
	db.roots[root]++
	return sync.OnceFunc(func() {
		db.mu.Lock()
		defer db.mu.Unlock()
		if db.roots[root]--; db.roots[root] == 0 {
			delete(db.roots, root)
		}
	})
}

// Cache registers a function that closes snapshots which are kept only to be opened
// again. [DB.GC] and [DB.Expire] call it, so that such a snapshot holds nothing, until stop
// is called.
func (db *DB) Cache(letGo func()) (stop func()) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.caches = append(db.caches, &letGo)
	return func() {
		db.mu.Lock()
		defer db.mu.Unlock()
		db.caches = slices.DeleteFunc(db.caches, func(f *func()) bool { return f == &letGo })
	}
}

// letGo closes snapshots that are kept only to be opened again.
func (db *DB) letGo() {
	db.mu.Lock()
	caches := slices.Clone(db.caches)
	db.mu.Unlock()
	for _, letGo := range slices.Backward(caches) { // a server is told before what it serves
		(*letGo)()
	}
}

// Commit returns the commit that this is the version of; it must not be changed.
func (s *Snapshot) Commit() *Commit { return s.commit }

// Close lets the version go. Calling it twice is fine.
func (s *Snapshot) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed.Store(true)
	s.close()
	return nil
}

// check is [DB.check] for a snapshot.
func (s *Snapshot) check() error {
	if err := s.db.check(); err != nil {
		return err
	}
	return s.failed(nil)
}

// failed returns the error of a read. What a closed snapshot read may be collected, which
// is no damage: then it is kv.ErrClosed.
func (s *Snapshot) failed(err error) error {
	if s != nil && s.closed.Load() {
		return fmt.Errorf("snapshot of %s: %w", s.commit.ID.Short(), kv.ErrClosed)
	}
	if s != nil && s.kept != nil {
		if lost := s.kept(); lost != nil {
			return fmt.Errorf("snapshot of %s: %w", s.commit.ID.Short(), lost)
		}
	}
	return err
}

// whileOpen yields what items yields, with the errors of a snapshot that may be closed.
func whileOpen[T any](s *Snapshot, items iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := s.check(); err != nil {
			failed[T](err)(yield)
			return
		}
		for it, err := range items {
			if err != nil {
				err = s.failed(err)
			}
			if !yield(it, err) {
				return
			}
		}
	}
}

// keep holds the version beyond Close, until release is called. A snapshot that is
// closed already is kv.ErrClosed.
func (s *Snapshot) keep() (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failed(nil); err != nil {
		return nil, err
	}
	return s.db.hold(s.commit.Root), nil
}

// Get implements [kv.Reader].
func (s *Snapshot) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	v, err := s.lookup(ctx, key)
	if err != nil {
		return nil, err
	}
	return s.db.read(ctx, v, rng, readBy{key, s.commit.ID, s})
}

// GetMany implements [kv.BatchReader]. A peer asks for all directories of the keys; then the
// values are read one by one, as Get does.
func (s *Snapshot) GetMany(ctx context.Context, reqs []kv.Request) ([][]byte, error) {
	s.db.space.Fetch(ctx, s.commit.Root, func(yield func(string) bool) {
		for i := range reqs {
			if !yield(reqs[i].Key) {
				return
			}
		}
	})
	return nil, errors.ErrUnsupported
}

// Locate implements [kv.Locator].
func (s *Snapshot) Locate(ctx context.Context, key string) (kv.Value, error) {
	return s.LocateWith(ctx, key, s.db.opts.Resolver)
}

func (s *Snapshot) lookup(ctx context.Context, key string) (tree.Value, error) {
	if err := s.check(); err != nil {
		return tree.Value{}, err
	}
	if err := ctx.Err(); err != nil {
		return tree.Value{}, err
	}
	v, ok, err := s.db.space.Get(ctx, s.commit.Root, key)
	if err == nil && !ok {
		return v, kv.ErrNotFound
	}
	if err != nil {
		err = s.failed(err)
	}
	return v, err
}

// SameArray reports whether the array at a path is the same one in another version: it was not made anew in between, and its chunks
// were not shifted. ok is false if s has no array there. The error is ErrClosed if one of the versions is closed.
func (s *Snapshot) SameArray(ctx context.Context, other *Snapshot, path string) (same, ok bool, err error) {
	if err := errors.Join(s.check(), other.check()); err != nil {
		return false, false, err
	}
	id, ok, err := s.db.space.Identity(ctx, s.commit.Root, path)
	if err != nil || !ok {
		return false, false, s.failed(err)
	}
	is, _, err := s.db.space.Identity(ctx, other.commit.Root, path)
	return is == id, true, other.failed(err)
}

// List implements [kv.Lister].
func (s *Snapshot) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	return whileOpen(s, s.db.space.List(ctx, s.commit.Root, o.Prefix, o.After))
}

// ListDir implements [kv.DirLister].
func (s *Snapshot) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	return whileOpen(s, s.db.space.ListDir(ctx, s.commit.Root, prefix))
}

// Value returns where the bytes of a key are. [kv.ErrNotFound] if it has none.
func (s *Snapshot) Value(ctx context.Context, key string) (KeyValue, error) {
	v, err := s.lookup(ctx, key)
	if err != nil {
		return KeyValue{}, err
	}
	return keyValue(key, v), nil
}

// Values yields every key below prefix with where its bytes are, in an order
// that is fast rather than sorted.
func (s *Snapshot) Values(ctx context.Context, prefix string) iter.Seq2[KeyValue, error] {
	return whileOpen(s, keyValues(s.db, s.db.space.Scan(ctx, s.commit.Root, prefix)))
}

// Documents is Values without the chunks of arrays: metadata, and keys that no
// metadata explains. It does not take longer where there are millions of chunks.
func (s *Snapshot) Documents(ctx context.Context, prefix string) iter.Seq2[KeyValue, error] {
	return whileOpen(s, keyValues(s.db, s.db.space.ScanDocuments(ctx, s.commit.Root, prefix)))
}

// KeyValue is a key and where its bytes are.
type KeyValue struct {
	Key string
	// Kind is where they are: "inline", "native" or "virtual".
	Kind string
	// Length in bytes; -1 for a virtual value that is a whole resource.
	Length int64
	// URL, Validator and Offset of a virtual value; see [tree.Source].
	URL, Validator string
	Offset         uint64
}

func keyValues(db *DB, items iter.Seq2[namespace.Item, error]) iter.Seq2[KeyValue, error] {
	if err := db.check(); err != nil {
		return failed[KeyValue](err)
	}
	return func(yield func(KeyValue, error) bool) {
		for it, err := range items {
			if err != nil {
				yield(KeyValue{}, err)
				return
			}
			if !yield(keyValue(it.Key, it.Value), nil) {
				return
			}
		}
	}
}

func keyValue(key string, v tree.Value) KeyValue {
	out := KeyValue{Key: key, Length: int64(v.Length)}
	switch v.Kind {
	case tree.KindInline:
		out.Kind, out.Length = "inline", int64(len(v.Inline))
	case tree.KindNative:
		out.Kind = "native"
	case tree.KindVirtual:
		out.Kind, out.URL, out.Validator, out.Offset = "virtual", v.Source.URL, v.Source.Validator, v.Offset
		if v.Source.Whole {
			out.Length = -1
		}
	}
	return out
}

// listKeys is a listing, or an error.
func listKeys(err error, keys iter.Seq2[string, error]) iter.Seq2[string, error] {
	if err != nil {
		return failed[string](err)
	}
	return keys
}

// failed is a sequence that consists of one error.
func failed[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		yield(zero, err)
	}
}
