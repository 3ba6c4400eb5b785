package txn

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// Session is a transaction: a private, writeable view of a branch. It reads
// its own writes and sees nothing of others. Any number may be open at once.
// Safe for concurrent use, except that Commit and Abort end it.
type Session struct {
	db      *DB
	id      SessionID
	branch  string
	created time.Time
	pages   *overlay
	space   *space

	floor pack.Position // of the packs when it was opened
	// live is what the collector has to keep; nil when the session has ended.
	live atomic.Pointer[liveState]

	mu       sync.RWMutex
	state    sessionState
	base     CommitID
	start    tree.Root // of base
	work     tree.Root // start and everything flushed
	buf      map[string]edit
	bufSize  int64
	newNodes bool  // buf has node documents, so that work does not know all arrays
	fresh    fresh // payloads since the last savepoint
	stored   bool  // a record of it is in the index
	saved    time.Time
	label    string
	guards   []string
	held     []func() // release roots that nothing names yet
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

// maxBuffered bounds the write buffer in entries; its bytes count against
// Options.SessionBytes.
const maxBuffered = 1 << 16

// Begin opens a session on a branch, based on its head.
func (db *DB) Begin(ctx context.Context, branch string) (*Session, error) {
	if err := db.writable(); err != nil {
		return nil, err
	}
	branch = orMain(branch)
	db.keeping.RLock()
	defer db.keeping.RUnlock()
	head, err := db.Head(branch)
	if err != nil {
		return nil, err
	}
	c, err := db.Commit(ctx, head)
	if err != nil {
		return nil, err
	}
	var id SessionID
	rand.Read(id[:])
	now := db.opts.Now().UTC()
	s := db.newSession(id, &sessionRecord{branch: branch, base: head, work: c.Root, created: now}, c.Root)
	return s, db.register(s)
}

// Resume opens a stored session at its last savepoint.
func (db *DB) Resume(ctx context.Context, id SessionID) (*Session, error) {
	if err := db.writable(); err != nil {
		return nil, err
	}
	b, err := db.idx.Get(index.SpaceSession, id[:])
	if errors.Is(err, index.ErrNotFound) {
		return nil, fmt.Errorf("session %v: %w", id, ErrNoRef)
	}
	if err != nil {
		return nil, err
	}
	rec, err := decodeSession(id, b)
	if err != nil {
		return nil, err
	}
	c, err := db.Commit(ctx, rec.base)
	if err != nil {
		return nil, fmt.Errorf("session %v: %w", id, err)
	}
	s := db.newSession(id, rec, c.Root)
	s.stored, s.saved = true, rec.saved
	return s, db.register(s)
}

func (db *DB) newSession(id SessionID, rec *sessionRecord, start tree.Root) *Session {
	pages := newOverlay(db.committed(), db.opts.SessionBytes)
	s := &Session{
		db: db, id: id, branch: rec.branch, created: rec.created,
		pages: pages, space: db.space.with(pages),
		base: rec.base, start: start, work: rec.work, guards: rec.guards, label: rec.label,
		buf: map[string]edit{}, floor: db.packs.Position(),
	}
	s.space.store = s.storeDoc
	s.publish()
	return s
}

func (db *DB) register(s *Session) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed.Load() {
		return ErrClosed
	}
	if db.sessions[s.id] != nil {
		return fmt.Errorf("session %v: %w", s.id, ErrSessionBusy)
	}
	db.sessions[s.id] = s
	return nil
}

func (db *DB) unregister(s *Session) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.sessions[s.id] == s {
		delete(db.sessions, s.id)
	}
}

// openSessions lists the sessions that are open in this process. Their locks are
// taken after mu is released, because a session that ends takes both.
func (db *DB) openSessions() []*Session {
	db.mu.Lock()
	defer db.mu.Unlock()
	return slices.Collect(maps.Values(db.sessions))
}

// SessionInfo describes a session that is open or stored.
type SessionInfo struct {
	ID      SessionID
	Branch  string
	Base    CommitID
	Created time.Time
	// Saved is the time of the last savepoint, zero if there is none.
	Saved time.Time
	// Open says that this process has it open.
	Open bool
	// Label says what the session is for; see [Session.SetLabel].
	Label string
}

// Sessions lists the sessions that can be resumed or are open, oldest first.
func (db *DB) Sessions(ctx context.Context) ([]SessionInfo, error) {
	if err := db.check(); err != nil {
		return nil, err
	}
	found := map[SessionID]SessionInfo{}
	for rec, err := range db.idx.Scan(index.SpaceSession, nil, nil, false) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if len(rec.Key) != len(SessionID{}) {
			return nil, corrupt("session key %x", rec.Key)
		}
		id := SessionID(rec.Key)
		r, err := decodeSession(id, rec.Value)
		if err != nil {
			return nil, err
		}
		found[id] = SessionInfo{ID: id, Branch: r.branch, Base: r.base, Created: r.created, Saved: r.saved, Label: r.label}
	}
	for _, s := range db.openSessions() {
		found[s.id] = s.info()
	}
	list := make([]SessionInfo, 0, len(found))
	for _, i := range found {
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b SessionInfo) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(string(a.ID[:]), string(b.ID[:]))
	})
	return list, nil
}

func (s *Session) info() SessionInfo {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return SessionInfo{ID: s.id, Branch: s.branch, Base: s.base, Created: s.created, Saved: s.saved, Open: true, Label: s.label}
}

// ID names the session for [DB.Resume].
func (s *Session) ID() SessionID { return s.id }

// Branch is the branch that Commit moves.
func (s *Session) Branch() string { return s.branch }

// SetLabel says what the session is for. A savepoint keeps it.
func (s *Session) SetLabel(label string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.label = label
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

// Guard names paths that the session read and relies on: Commit then fails
// with a conflict if anything at or below them changed on the branch, even if
// the session wrote elsewhere.
func (s *Session) Guard(paths ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != sessionOpen {
		return ErrSessionClosed
	}
	s.guards = append(s.guards, paths...)
	return nil
}

// Get implements [kv.Reader].
func (s *Session) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	v, err := s.lookup(ctx, key)
	if err != nil {
		return nil, err
	}
	return s.db.read(ctx, v, rng, readBy{key, s.Base()})
}

// Locate implements [kv.Locator].
func (s *Session) Locate(ctx context.Context, key string) (kv.Value, error) {
	v, err := s.lookup(ctx, key)
	if err != nil {
		return nil, err
	}
	return s.db.locate(ctx, v, readBy{key, s.Base()})
}

func (s *Session) lookup(ctx context.Context, key string) (tree.Value, error) {
	if err := ctx.Err(); err != nil {
		return tree.Value{}, err
	}
	s.mu.RLock()
	if s.state == sessionClosed {
		s.mu.RUnlock()
		return tree.Value{}, ErrSessionClosed
	}
	e, buffered := s.buf[key]
	root := s.work
	s.mu.RUnlock()
	if buffered {
		if e.del {
			return tree.Value{}, kv.ErrNotFound
		}
		return e.value, nil
	}
	v, ok, err := s.space.get(ctx, root, key)
	if err == nil && !ok {
		err = kv.ErrNotFound
	}
	return v, err
}

// List implements [kv.Lister].
func (s *Session) List(ctx context.Context, o kv.ListOptions) iter.Seq2[string, error] {
	root, err := s.flushed(ctx)
	return listKeys(err, s.space.list(ctx, root, o.Prefix, o.After))
}

// ListDir implements [kv.DirLister].
func (s *Session) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	root, err := s.flushed(ctx)
	if err != nil {
		return failed[kv.DirEntry](err)
	}
	return s.space.listDir(ctx, root, prefix)
}

// Value is [Snapshot.Value] for a session.
func (s *Session) Value(ctx context.Context, key string) (KeyValue, error) {
	v, err := s.lookup(ctx, key)
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
	return keyValues(s.db, s.space.scan(ctx, root, prefix))
}

// Changes yields what the session changed below prefix since its base.
func (s *Session) Changes(ctx context.Context, prefix string) iter.Seq2[Change, error] {
	root, err := s.flushed(ctx)
	if err != nil {
		return failed[Change](err)
	}
	return func(yield func(Change, error) bool) {
		changes(s.space.diff(ctx, s.start, root, prefix), yield)
	}
}

// Set implements [kv.Writer]. Setting the bytes that a key has already is no
// write at all.
func (s *Session) Set(ctx context.Context, key string, value []byte) error {
	sum := digest.Of(value)
	old, err := s.lookup(ctx, key)
	switch {
	case err == nil && old.Kind != tree.KindVirtual && old.ContentSum() == sum:
		return nil
	case err != nil && !errors.Is(err, kv.ErrNotFound):
		return err
	}
	if v, ok := inlineValue(key, value); ok {
		return s.put(ctx, edit{key: key, value: v}, 0)
	}
	v, failures, err := s.storeChunk(ctx, key, value, sum)
	if err != nil {
		return fmt.Errorf("set %s: %w", key, err)
	}
	return s.put(ctx, edit{key: key, value: v}, failures)
}

// SetVirtual stores a reference to bytes that lie outside the database: length
// bytes from offset on, or everything from there if src.Whole.
func (s *Session) SetVirtual(ctx context.Context, key string, src tree.Source, offset, length uint64) error {
	return s.put(ctx, edit{key: key, value: tree.Value{Kind: tree.KindVirtual, Source: src, Offset: offset, Length: length}}, 0)
}

// Delete implements [kv.Writer].
func (s *Session) Delete(ctx context.Context, key string) error {
	return s.put(ctx, edit{key: key, del: true}, 0)
}

// put buffers one edit. failures is the count under which a payload was stored.
func (s *Session) put(ctx context.Context, e edit, failures uint64) error {
	if err := errors.Join(ctx.Err(), checkKey(e.key)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != sessionOpen {
		return ErrSessionClosed
	}
	if e.value.Kind == tree.KindNative {
		if err := s.fresh.note(e.value.Length, failures); err != nil {
			return err
		}
	}
	s.buf[e.key] = e
	s.bufSize += int64(len(e.key)) + int64(len(e.value.Inline)) + 160
	if _, name := splitKey(e.key); s.space.isNode(name) {
		s.newNodes = true
	}
	if len(s.buf) >= maxBuffered || s.bufSize > s.db.opts.SessionBytes {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	if limit := s.db.opts.SavepointBytes; limit > 0 && s.fresh.bytes >= limit {
		return s.savepoint(ctx)
	}
	return nil
}

// maxKey is the longest key in bytes.
const maxKey = 4 << 10

func checkKey(key string) error {
	if len(key) > maxKey {
		return fmt.Errorf("%w: %.80q… is longer than %d bytes", kv.ErrInvalidKey, key, maxKey)
	}
	return kv.ValidKey(key)
}

// flush applies the write buffer to the working root. The caller holds mu.
func (s *Session) flush(ctx context.Context) error {
	if len(s.buf) == 0 {
		return nil
	}
	work, err := s.space.apply(ctx, s.work, s.buffered())
	if err != nil {
		return err
	}
	s.work = work
	s.publish()
	clear(s.buf)
	s.bufSize, s.newNodes = 0, false
	return nil
}

// buffered returns the write buffer in order. The caller holds mu.
func (s *Session) buffered() []edit {
	// Not the edits are sorted, because they are large to move.
	keys := slices.AppendSeq(make([]string, 0, len(s.buf)), maps.Keys(s.buf))
	slices.Sort(keys)
	edits := make([]edit, len(keys))
	for i, key := range keys {
		edits[i] = s.buf[key]
	}
	return edits
}

// flushed returns the working root with every write in it.
func (s *Session) flushed(ctx context.Context) (tree.Root, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == sessionClosed {
		return tree.Root{}, ErrSessionClosed
	}
	err := s.flush(ctx)
	return s.work, err
}

// change flushes and replaces the working root by what fn makes of it.
func (s *Session) change(ctx context.Context, fn func(root tree.Root) (tree.Root, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != sessionOpen {
		return ErrSessionClosed
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	work, err := fn(s.work)
	if err == nil {
		s.work = work
		s.publish()
	}
	return err
}

// DeletePrefix implements [kv.PrefixDeleter]. Where prefix names a directory
// ("a/b/") the cost does not depend on what is below.
func (s *Session) DeletePrefix(ctx context.Context, prefix string) error {
	return s.change(ctx, func(root tree.Root) (tree.Root, error) {
		return s.space.deletePrefix(ctx, root, prefix)
	})
}

// Move renames everything at and below a path. Chunks are not touched. Errors:
// kv.ErrNotFound if there is nothing, ErrExists if there is something at to.
func (s *Session) Move(ctx context.Context, from, to string) error {
	return s.change(ctx, func(root tree.Root) (tree.Root, error) {
		return s.space.move(ctx, root, from, to)
	})
}

// Copy makes a copy of everything at and below a path of a version (nil for
// the session itself). Chunks are shared, not copied.
func (s *Session) Copy(ctx context.Context, src *Snapshot, from, to string) error {
	return s.change(ctx, func(root tree.Root) (tree.Root, error) {
		source := root
		if src != nil {
			source = src.commit.Root
		}
		return s.space.copy(ctx, root, source, from, to, newIdentity)
	})
}

func newIdentity() (id [16]byte) {
	rand.Read(id[:])
	return id
}

// Savepoint makes everything written so far survive a crash, as a session that
// [DB.Resume] takes up again. It publishes nothing.
func (s *Session) Savepoint(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != sessionOpen {
		return ErrSessionClosed
	}
	return s.savepoint(ctx)
}

func (s *Session) savepoint(ctx context.Context) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	failures := s.db.packFailures.Load()
	if err := s.fresh.check(failures); err != nil {
		return err
	}
	batch := s.db.idx.NewBatch()
	defer batch.Close()
	group := overlays{s.pages}
	written := map[tree.Name]struct{}{}
	if err := group.private(ctx, s.space.t, s.work, written, batch.PutPage); err != nil {
		return err
	}
	rec := sessionRecord{
		branch: s.branch, base: s.base, work: s.work,
		created: s.created, saved: s.db.opts.Now().UTC(), label: s.label, guards: s.guards,
	}
	batch.Set(index.SpaceSession, s.id[:], rec.encode())
	if err := s.db.syncAndCommit(ctx, batch, nil, failures); err != nil {
		return fmt.Errorf("savepoint of session %v: %w", s.id, err)
	}
	s.pages.drop(written)
	s.stored, s.saved, s.fresh = true, rec.saved, fresh{}
	return nil
}

// Abort ends the session and forgets what it wrote.
func (s *Session) Abort() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.state {
	case sessionClosed:
		return nil
	case sessionCommitting:
		return ErrSessionClosed
	}
	if s.stored {
		batch := s.db.idx.NewBatch()
		defer batch.Close()
		batch.Delete(index.SpaceSession, s.id[:])
		if err := batch.Commit(true); err != nil {
			return fmt.Errorf("abort session %v: %w", s.id, err)
		}
	}
	s.end()
	return nil
}

// end closes the session; the caller holds mu.
func (s *Session) end() {
	s.state = sessionClosed
	s.live.Store(nil)
	s.buf = nil
	for _, release := range s.held {
		release()
	}
	s.pages.forget()
	s.db.unregister(s)
}

// close ends the session in this process; a stored one can be resumed.
func (s *Session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == sessionOpen {
		s.end()
	}
}

// Close ends the session in this process and forgets what was written since
// the last savepoint; if there was one, the session can be resumed from it.
func (s *Session) Close() error {
	s.close()
	return nil
}

// Detach closes the session after a savepoint, to be resumed later, perhaps by
// another process.
func (s *Session) Detach(ctx context.Context) error {
	if err := s.Savepoint(ctx); err != nil {
		return err
	}
	s.close()
	return nil
}
