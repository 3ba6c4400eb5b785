package local

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"strings"
	"sync"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/serve/wire"
	"github.com/zarrdb/zarrdb/txn"
)

// Session is a transaction that a server has open, and that any number of clients
// may share. Safe for concurrent use. Commit or Discard ends it for all.
//
// A key that was read is written only if its value is still the one read:
// otherwise another client has changed it, and the error is an
// *[engine.ChangedError]. A key that was never read is written without a
// condition.
//
// When the server ends or is killed, the session continues on the next one with
// everything that was acknowledged. If the server cannot do that, as one of an earlier
// version that is killed, every call fails with a *[SessionLostError] once something is
// lost.
type Session struct {
	c  *Client
	db string
	id txn.SessionID
	shelf

	state sync.Mutex
	info  txn.SessionInfo
	seen  map[string]kv.ID // the value read last; zero is no value
	dirty int              // writes since the last savepoint that were acknowledged
	lost  *SessionLostError
	// committing says that a commit was sent and not answered.
	committing bool

	// Reads and writes of a key exclude each other, so that the last value read
	// is known.
	keys [64]sync.RWMutex
}

var (
	_ kv.Store         = (*Session)(nil)
	_ kv.Locator       = (*Session)(nil)
	_ kv.DirLister     = (*Session)(nil)
	_ kv.PrefixDeleter = (*Session)(nil)
)

// maxSeen bounds the keys whose reads a session remembers. Beyond it, writes of
// those read first are no longer conditional.
const maxSeen = 1 << 20

// Begin opens a new session on a branch; "" is main. It is stored by the first
// Savepoint or change, and when the server ends in order.
func (c *Client) Begin(ctx context.Context, db, branch, label string) (*Session, error) {
	return c.askSession(ctx, db, wire.OpBegin, wire.Begin{Database: db, Branch: branch, Label: label, Unsaved: true})
}

// Session joins the session with that id, or takes it up from its last savepoint.
func (c *Client) Session(ctx context.Context, db string, id txn.SessionID) (*Session, error) {
	return c.askSession(ctx, db, wire.OpOpen, wire.Open{Database: db, Rev: sessionRev(id)})
}

func (c *Client) askSession(ctx context.Context, db string, op wire.Op, in any) (s *Session, err error) {
	err = c.again(ctx, func(l *link) error {
		out, err := ask[wire.View](ctx, l, op, in)
		if err == nil {
			s, err = c.session(db, l, &out)
		}
		return err
	})
	return s, err
}

func sessionRev(id txn.SessionID) string { return "~" + id.String() }

func (c *Client) session(db string, l *link, out *wire.View) (*Session, error) {
	if out.Session == nil {
		return nil, fmt.Errorf("%w: a view of no session", wire.ErrProtocol)
	}
	s := &Session{c: c, db: db, info: sessionIn(out.Session), seen: map[string]kv.ID{}}
	s.id = s.info.ID
	s.l, s.handle, s.reopen, s.note = l, out.View, s.resume, s.remember
	return s, nil
}

// ID names the session for [Client.Session].
func (s *Session) ID() txn.SessionID { return s.id }

// Info describes the session as it was when it was opened or saved last.
func (s *Session) Info() txn.SessionInfo {
	s.state.Lock()
	defer s.state.Unlock()
	return s.info
}

// Branch is the branch that Commit moves.
func (s *Session) Branch() string { return s.Info().Branch }

// resume opens the session on another connection, unless something is lost.
func (s *Session) resume(ctx context.Context) (*link, uint32, error) {
	s.state.Lock()
	defer s.state.Unlock()
	if s.lost != nil {
		return nil, 0, s.lost
	}
	if s.l.savedBefore(s.id.String()) {
		s.dirty = 0
	}
	lost := func() (*link, uint32, error) {
		s.lost = &SessionLostError{ID: s.id, Saved: s.info.Saved, Err: s.l.why()}
		return nil, 0, s.lost
	}
	if s.dirty > 0 && !s.info.Logged {
		return lost()
	}
	l, err := s.c.link(ctx)
	if err != nil {
		return nil, 0, err
	}
	out, err := ask[wire.View](ctx, l, wire.OpOpen, wire.Open{Database: s.db, Rev: sessionRev(s.id)})
	if errors.Is(err, txn.ErrNoRef) && s.info.Saved.IsZero() {
		if s.dirty > 0 || s.committing {
			return lost()
		}
		again := wire.Begin{
			Database: s.db, Branch: s.info.Branch, Label: s.info.Label, Unsaved: true,
			ID: s.id.String(), Base: s.info.Base.String(),
		}
		out, err = ask[wire.View](ctx, l, wire.OpBegin, again)
	}
	if err == nil && out.Session != nil {
		s.info = sessionIn(out.Session)
	}
	return l, out.View, err
}

// lock returns the lock of a key.
func (s *Session) lock(key string) *sync.RWMutex {
	return &s.keys[maphash.String(seed, key)%uint64(len(s.keys))]
}

var seed = maphash.MakeSeed()

// Get implements [kv.Reader].
func (s *Session) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	m := s.lock(key)
	m.RLock()
	defer m.RUnlock()
	return s.shelf.Get(ctx, key, rng)
}

// Locate implements [kv.Locator].
func (s *Session) Locate(ctx context.Context, key string) (kv.Value, error) {
	m := s.lock(key)
	m.RLock()
	defer m.RUnlock()
	return s.shelf.Locate(ctx, key)
}

// remember stores the value read of a key.
func (s *Session) remember(key string, id kv.ID, err error) {
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return
	}
	s.state.Lock()
	defer s.state.Unlock()
	if _, ok := s.seen[key]; !ok && len(s.seen) >= maxSeen {
		for old := range s.seen {
			delete(s.seen, old)
			break
		}
	}
	s.seen[key] = id
}

// condition returns the condition of a write of a key.
func (s *Session) condition(key string) (e wire.Expect, id kv.ID) {
	s.state.Lock()
	defer s.state.Unlock()
	id, ok := s.seen[key]
	switch {
	case !ok:
		return wire.ExpectAny, id
	case id == kv.ID{}:
		return wire.ExpectAbsent, id
	}
	return wire.ExpectID, id
}

// written notes a write that was acknowledged.
func (s *Session) written(key string, id kv.ID) {
	s.state.Lock()
	defer s.state.Unlock()
	s.dirty++
	if _, ok := s.seen[key]; ok {
		s.seen[key] = id
	}
}

// Set implements [kv.Writer].
func (s *Session) Set(ctx context.Context, key string, value []byte) error {
	m := s.lock(key)
	m.Lock()
	defer m.Unlock()
	id, err := s.write(ctx, wire.OpSet, key, value)
	if err == nil {
		s.written(key, id)
	}
	return err
}

// Delete implements [kv.Writer].
func (s *Session) Delete(ctx context.Context, key string) error {
	m := s.lock(key)
	m.Lock()
	defer m.Unlock()
	_, err := s.write(ctx, wire.OpDelete, key, nil)
	if err == nil {
		s.written(key, kv.ID{})
	}
	return err
}

// write sends a write, and repeats it on a new connection. If the value is then another
// one than expected, this write or one of another client has taken place: the error is
// [ErrUnknown].
func (s *Session) write(ctx context.Context, op wire.Op, key string, value []byte) (id kv.ID, err error) {
	in := wire.Set{Key: key}
	e, want := s.condition(key)
	in.Expect, in.ID = e, want
	unknown := false
	err = s.read(ctx, func(l *link, handle uint32) error {
		in.View = handle
		f, err := l.call(ctx, &wire.Frame{Op: op, Meta: in.Append(nil), Body: value}, false)
		var changed *engine.ChangedError
		if unknown && errors.As(err, &changed) {
			return fmt.Errorf("%w: whether %s was written is not known: read it again", ErrUnknown, key)
		}
		if err != nil {
			unknown = unknown || errors.Is(err, ErrUnknown)
			return err
		}
		defer f.Close()
		if op == wire.OpSet {
			if len(f.Meta) != len(id) {
				return fmt.Errorf("%w: an identity of %d bytes", wire.ErrProtocol, len(f.Meta))
			}
			id = kv.ID(f.Meta)
		}
		return nil
	})
	return id, err
}

// DeletePrefix implements [kv.PrefixDeleter]. It has no condition.
func (s *Session) DeletePrefix(ctx context.Context, prefix string) error {
	for i := range s.keys {
		s.keys[i].Lock()
		defer s.keys[i].Unlock()
	}
	err := s.read(ctx, func(l *link, handle uint32) error {
		in := wire.Stat{View: handle, Key: prefix}
		_, err := l.call(ctx, &wire.Frame{Op: wire.OpDeletePrefix, Meta: in.Append(nil)}, false)
		return err
	})
	if err != nil {
		return err
	}
	s.state.Lock()
	defer s.state.Unlock()
	s.dirty++
	for key := range s.seen {
		if strings.HasPrefix(key, prefix) {
			s.seen[key] = kv.ID{}
		}
	}
	return nil
}

// do runs a request on the session, and repeats it where that changes nothing.
func (s *Session) do(ctx context.Context, op wire.Op, in func(handle uint32) any, out any) error {
	return s.read(ctx, func(l *link, handle uint32) error {
		got, err := ask[raw](ctx, l, op, in(handle))
		if err != nil || out == nil {
			return err
		}
		return wire.ParseJSON(op, got, out)
	})
}

// Savepoint makes everything written so far survive the end of the server. It
// returns when that was.
func (s *Session) Savepoint(ctx context.Context) error {
	s.state.Lock()
	dirty := s.dirty
	s.state.Unlock()
	var out wire.Session
	err := s.do(ctx, wire.OpSavepoint, func(handle uint32) any { return wire.Handle{View: handle} }, &out)
	if err != nil {
		return err
	}
	s.state.Lock()
	defer s.state.Unlock()
	s.info = sessionIn(&out)
	s.dirty -= min(dirty, s.dirty) // concurrent writes may be included or not
	return nil
}

// Guard names paths that the session read and relies on; see [txn.Session.Guard].
func (s *Session) Guard(ctx context.Context, paths ...string) error {
	err := s.do(ctx, wire.OpGuard, func(handle uint32) any { return wire.Guard{Handle: wire.Handle{View: handle}, Paths: paths} }, nil)
	if err != nil {
		return err
	}
	s.state.Lock()
	defer s.state.Unlock()
	s.dirty++
	return nil
}

// Changes yields the changes of the session below prefix since its base.
func (s *Session) Changes(ctx context.Context, prefix string) iter.Seq2[txn.Change, error] {
	return pages(func(skip int) ([]wire.Change, bool, error) {
		var out wire.Changes
		err := s.do(ctx, wire.OpChanges, func(handle uint32) any {
			return wire.Diff{View: handle, Prefix: prefix, Skip: skip, Limit: pageKeys}
		}, &out)
		return out.Changes, out.More, err
	}, changeIn)
}

// CommitOptions are those of [txn.CommitOptions] that a client may say.
type CommitOptions struct {
	Message, Author string
	Properties      map[string]string
	AllowEmpty      bool
	DryRun          bool
	// Choices decide conflicts; see [txn.CommitOptions].
	Choices []txn.PathChoice
}

// Commit publishes the session; see [txn.Session.Commit]. If the server ends meanwhile,
// the next one makes the commit if the session is still there. If it is not, the commit
// may have taken place: the error is a *[SessionLostError] with Committing. After a dry
// run that was not answered, the session goes on.
func (s *Session) Commit(ctx context.Context, o CommitOptions) (*txn.Commit, error) {
	in := wire.Publish{
		Message: o.Message, Author: o.Author, Properties: o.Properties, AllowEmpty: o.AllowEmpty, DryRun: o.DryRun, Choices: choicesOut(o.Choices),
	}
	var out wire.Commit
	err := s.read(ctx, func(l *link, handle uint32) (err error) {
		in.View = handle
		out, err = ask[wire.Commit](ctx, l, wire.OpCommit, &in)
		if !o.DryRun {
			s.answered(err)
		}
		return err
	})
	switch {
	case err != nil && o.DryRun:
		return nil, err
	case err != nil:
		return nil, s.unlessCommitting(err)
	case !o.DryRun:
		s.end(txn.ErrSessionClosed)
	}
	return commitIn(&out), nil
}

// answered notes whether a commit was answered.
func (s *Session) answered(err error) {
	s.state.Lock()
	defer s.state.Unlock()
	switch {
	case err == nil:
		s.committing = false
	case errors.Is(err, ErrUnknown):
		s.committing = true
	}
}

// unlessCommitting returns the error of a commit, or if that was sent before and not
// answered, the error that says so. A conflict answers for both.
func (s *Session) unlessCommitting(err error) error {
	s.state.Lock()
	defer s.state.Unlock()
	if !s.committing || errors.Is(err, txn.ErrConflict) {
		s.committing = false
		return err
	}
	s.lost = &SessionLostError{ID: s.id, Saved: s.info.Saved, Committing: true, Err: err}
	return s.lost
}

func choicesOut(list []txn.PathChoice) (out []wire.Choice) {
	for _, c := range list {
		take := map[txn.Choice]string{txn.Ours: "ours", txn.Theirs: "theirs"}[c.Choice]
		out = append(out, wire.Choice{Path: c.Path, Take: take})
	}
	return out
}

// Discard ends the session without a trace.
func (s *Session) Discard(ctx context.Context) error {
	err := s.do(ctx, wire.OpDiscard, func(handle uint32) any { return wire.Handle{View: handle} }, nil)
	if errors.Is(err, txn.ErrNoRef) || errors.Is(err, txn.ErrSessionClosed) {
		err = nil // it has ended
	}
	if err == nil {
		s.end(txn.ErrSessionClosed)
	}
	return err
}

// Close gives the session up on this side. It stays open in the server.
func (s *Session) Close() error { return s.shelf.close() }
