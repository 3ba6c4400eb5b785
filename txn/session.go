package txn

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
	"github.com/zarrdb/zarrdb/txn/internal/overlay"
)

// Session is a transaction: a private, writeable view of a branch. It reads
// its own writes and sees nothing of others. Any number may be open at once.
// Safe for concurrent use, except that Commit and Abort end it.
type Session struct {
	db      *DB
	home    sessionHome
	life    uint64        // see Roots; of a session of a peer: as of the last swap
	writes  atomic.Uint64 // by everybody
	onWrite callbacks     // see OnWrite
	id      SessionID
	branch  string
	created time.Time
	pages   *overlay.Overlay
	space   *namespace.Space

	floor pack.Position // of the packs when it was opened
	// live is what the collector has to keep; nil when the session has ended.
	live atomic.Pointer[liveState]

	// changing is held while the session changes, also over requests and reads of pages; writes of
	// keys of a session of a peer share it. The fields below that it changes change under mu too,
	// which is held for memory alone.
	changing ctxlock.Lock

	mu       sync.RWMutex
	state    sessionState
	base     CommitID
	start    tree.Root    // of base; of a fork, what its parent had when it began
	forked   bool         // start is not that of base
	joining  ctxlock.Lock // held while another session takes over the changes
	joins    *SessionID   // the fork whose changes the next savepoint has; see Join
	work     tree.Root    // start and everything flushed
	buf      map[string]namespace.Edit
	bufDirs  dirSet // above the keys of buf
	bufSize  int64
	newNodes bool         // buf has node documents, so that work does not know all arrays
	healed   atomic.Int64 // payloads
	repeats  atomic.Bool  // the last payload was there already
	fresh    fresh        // payloads since the last savepoint
	stored   bool         // a record of it is in the index
	saved    time.Time
	label    string
	by       Origin
	guards   map[string]struct{}
	held     []func() // release roots that nothing names yet
	used     time.Time
	times    map[string]time.Time // when keys were written; see Modified
	logged   sessionLog           // see session_log.go
	// recovering says that a log is applied: its savepoint stays until all of it is.
	recovering bool
}

type sessionState uint8

const (
	sessionOpen sessionState = iota
	sessionCommitting
	sessionClosed
)

var (
	_ kv.Store         = (*Session)(nil)
	_ kv.Locator       = (*Session)(nil)
	_ kv.DirLister     = (*Session)(nil)
	_ kv.PrefixDeleter = (*Session)(nil)
)

// Begin opens a session on a branch, based on its head.
func (db *DB) Begin(ctx context.Context, branch string) (*Session, error) {
	return db.home.begin(ctx, BeginOptions{Branch: orMain(branch)})
}

// BeginWith opens a session with a label. With an id it opens the session that was open in a process that has ended before the first
// savepoint, with the id and base that it had there, and without what was written to it: ErrSessionBusy if a session with that id
// is open or stored, [ErrNoRef] or [ErrExpired] if the branch or the base is gone.
func (db *DB) BeginWith(ctx context.Context, o BeginOptions) (*Session, error) {
	o.Branch = orMain(o.Branch)
	s, err := db.home.begin(ctx, o)
	if err == nil {
		s.SetLabel(o.Label)
	}
	return s, err
}

func (h holder) begin(ctx context.Context, o BeginOptions) (*Session, error) {
	if err := h.changeable(); err != nil {
		return nil, err
	}
	if err := h.keeping.RLock(ctx); err != nil {
		return nil, err
	}
	defer h.keeping.RUnlock()
	head, err := h.head(ctx, o.Branch)
	if err != nil {
		return nil, err
	}
	again := o.ID != SessionID{}
	if again {
		err = h.retryLog(ctx, o.ID)
		if err == nil && h.ended.has(o.ID) {
			err = fmt.Errorf("session %v was committed: %w", o.ID, ErrSessionBusy)
		}
	} else {
		rand.Read(o.ID[:])
		o.Base = head
	}
	if err != nil {
		return nil, err
	}
	c, err := h.version(ctx, o.Base)
	if err != nil {
		return nil, err
	}
	now := h.opts.Now().UTC()
	s := h.newSession(&catalog.Session{ID: o.ID, Branch: o.Branch, Base: o.Base, Work: c.Root, Created: now, By: thisProcess()}, c.Root)
	err = h.register(s)
	if err == nil && again {
		if _, err = h.storedSession(o.ID); err == nil {
			err = fmt.Errorf("session %v: %w", o.ID, ErrSessionBusy)
		} else if errors.Is(err, ErrNoRef) {
			err = nil
		}
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// Resume opens a stored session at its last savepoint. ErrSessionBusy if it is open,
// or was until now.
func (db *DB) Resume(ctx context.Context, id SessionID) (*Session, error) {
	return db.home.resume(ctx, id)
}

func (h holder) resume(ctx context.Context, id SessionID) (*Session, error) {
	if err := h.changeable(); err != nil {
		return nil, err
	}
	if err := h.retryLog(ctx, id); err != nil {
		return nil, err
	}
	b, err := h.storedSession(id)
	if err != nil {
		return nil, err
	}
	rec, err := catalog.Sessions.Decode(id[:], b)
	if err != nil {
		return nil, err
	}
	s, err := h.openSession(ctx, rec)
	if err != nil {
		return nil, err
	}
	s.stored, s.logged.stored = true, digest.Of(b)
	// The record has kept its pages from being collected until here, unless somebody
	// had the session open meanwhile, and saved or ended it.
	now, err := h.storedSession(id)
	if err == nil && !bytes.Equal(now, b) {
		err = fmt.Errorf("session %v: %w", id, ErrSessionBusy)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// openSession opens a session in the state that a record has.
func (db *DB) openSession(ctx context.Context, rec *catalog.Session) (*Session, error) {
	c, err := db.Lookup(ctx, rec.Base)
	if err != nil {
		return nil, fmt.Errorf("session %v: %w", rec.ID, err)
	}
	start := c.Root
	if rec.Start != nil {
		start = *rec.Start
	}
	s := db.newSession(rec, start)
	s.forked = rec.Start != nil
	return s, db.register(s)
}

// storedSession reads the record of a session.
func (db *DB) storedSession(id SessionID) ([]byte, error) {
	b, err := catalog.Sessions.Record(db.idx, id)
	if errors.Is(err, index.ErrNotFound) {
		err = fmt.Errorf("session %v: %w", id, ErrNoRef)
	}
	return b, err
}

func (db *DB) newSession(rec *catalog.Session, start tree.Root) *Session {
	pages := overlay.New(db.pages(), db.sessionBytes())
	s := &Session{
		db: db, life: mathrand.Uint64(), id: rec.ID, branch: rec.Branch, created: rec.Created,
		pages: pages, space: db.space.With(pages),
		base: rec.Base, start: start, work: rec.Work, label: rec.Label, by: rec.By,
		guards: map[string]struct{}{}, buf: map[string]namespace.Edit{}, bufDirs: dirSet{}, floor: db.packs.Position(),
	}
	s.home = own{s}
	for _, path := range rec.Guards {
		s.guards[path] = struct{}{}
	}
	s.saved, s.used = rec.Saved, time.Now().UTC()
	s.logged.saved, s.logged.guards = rec.Work, len(s.guards)
	s.space.Store = s.storeDoc
	s.publish()
	return s
}

// ID names the session for [DB.Resume].
func (s *Session) ID() SessionID { return s.id }

func (s *Session) errClosed() error { return fmt.Errorf("%w: %v", ErrSessionClosed, s.id) }

// Branch is the branch that Commit moves.
func (s *Session) Branch() string { return s.branch }

// SetLabel says what the session is for. A savepoint keeps it.
func (s *Session) SetLabel(label string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.label = label
}

// SetOrigin says which process began the session, where that is not this one. A savepoint keeps it.
func (s *Session) SetOrigin(by Origin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by = by
}

// Label returns what SetLabel said.
func (s *Session) Label() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.label
}

// Base is the commit that the session began from.
func (s *Session) Base() CommitID {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.base
}

// Guard names paths that the session read and relies on: Commit and Refresh then
// fail with a conflict if anything at or below them changed on the branch since
// the session's base, even if the session wrote elsewhere. A path is that of a
// node, or the key of a chunk or document; with a slash at its end, that of a group
// whose members are guarded: which arrays and groups are directly in it ("/" is the root).
// Savepoints keep guards. Each costs Commit a look-up if the branch moved.
func (s *Session) Guard(ctx context.Context, paths ...string) error {
	return s.home.guard(ctx, paths)
}

func (s own) guard(ctx context.Context, paths []string) error {
	if err := s.lockOpen(ctx); err != nil {
		return err
	}
	defer s.changing.Unlock()
	paths = slices.DeleteFunc(slices.Clone(paths), func(path string) bool { _, ok := s.guards[path]; return ok })
	if len(paths) == 0 {
		return nil
	}
	if err := s.note(&catalog.Entry{Kind: catalog.EntryGuard, Paths: paths}); err != nil {
		return err
	}
	s.addGuards(paths)
	return nil
}

// addGuards is Guard without an entry in the log. The caller holds changing.
func (s *Session) addGuards(paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range paths {
		s.guards[path] = struct{}{}
	}
}

// Blank reports whether nothing is lost when the session ends: it has no savepoint, and
// nothing was written or guarded in it. It is false if the changes cannot be read,
// and for a session of a peer. Without [Session.Log], what was there already counts as not written.
func (s *Session) Blank(ctx context.Context) bool {
	s.mu.RLock()
	known := !s.saved.IsZero() || len(s.guards) > 0
	s.mu.RUnlock()
	if _, here := s.home.(own); known || !here {
		return false
	}
	if s.changing.RLock(ctx) != nil {
		return false
	}
	written := s.logged.size > 0 // also the same as there was: whoever wrote it goes on with the session
	s.changing.RUnlock()
	if written {
		return false
	}
	for range s.Changes(ctx, "") {
		return false
	}
	return true
}

// guarded returns what Guard named, in order.
func (s *Session) guarded() []string { return slices.Sorted(maps.Keys(s.guards)) }

// Get implements [kv.Reader].
func (s *Session) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	v, err := s.home.lookup(ctx, key)
	if err != nil {
		return nil, err
	}
	return s.db.read(ctx, v, rng, readBy{key: key, version: s.Base()})
}

// Locate implements [kv.Locator].
func (s *Session) Locate(ctx context.Context, key string) (kv.Value, error) {
	return s.LocateWith(ctx, key, s.db.opts.Resolver)
}

func (s own) lookup(ctx context.Context, key string) (tree.Value, error) {
	if err := ctx.Err(); err != nil {
		return tree.Value{}, err
	}
	s.mu.RLock()
	if s.state == sessionClosed {
		s.mu.RUnlock()
		return tree.Value{}, s.errClosed()
	}
	e, buffered := s.buf[key]
	root := s.work
	s.mu.RUnlock()
	if buffered {
		if e.Delete {
			return tree.Value{}, kv.ErrNotFound
		}
		return e.Value, nil
	}
	v, ok, err := s.space.Get(ctx, root, key)
	if err == nil && !ok {
		err = kv.ErrNotFound
	}
	return v, err
}

// List implements [kv.Lister].
func (s *Session) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	root, err := s.flushedBelow(ctx, o.Prefix)
	return listKeys(err, s.space.List(ctx, root, o.Prefix, o.After))
}

// ListDir implements [kv.DirLister].
func (s *Session) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	root, err := s.flushedBelow(ctx, prefix)
	if err != nil {
		return failed[kv.DirEntry](err)
	}
	return s.space.ListDir(ctx, root, prefix)
}

// Value is [Snapshot.Value] for a session.
func (s *Session) Value(ctx context.Context, key string) (KeyValue, error) {
	v, err := s.home.lookup(ctx, key)
	if err != nil {
		return KeyValue{}, err
	}
	return keyValue(key, v), nil
}

// Values is [Snapshot.Values] for a session.
func (s *Session) Values(ctx context.Context, prefix string) iter.Seq2[KeyValue, error] {
	root, err := s.flushed(ctx)
	if err != nil {
		return failed[KeyValue](err)
	}
	return keyValues(s.db, s.space.Scan(ctx, root, prefix))
}

// Changes yields what the session changed below prefix since its base.
func (s *Session) Changes(ctx context.Context, prefix string) iter.Seq2[Change, error] {
	start, root, err := s.flushedSince(ctx)
	if err != nil {
		return failed[Change](err)
	}
	return func(yield func(Change, error) bool) {
		changes(s.space.Diff(ctx, start, root, prefix), yield)
	}
}
