package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/txn"
)

// Session is an open session that any number of clients share by its id. Safe
// for concurrent use. Its changes survive a kill of this process: see [txn.Session.Log]. A commit or discard of one client ends the session for
// all: later calls are [txn.ErrSessionClosed].
type Session struct {
	s   *engine.Session
	t   *Table
	db  string
	who *Principal
}

// sessions are the sessions that clients have opened. They stay open without a
// client if something was written.
type sessions struct {
	opening ctxlock.Lock // held while one is opened for a client, or closed

	mu     sync.Mutex
	closed bool
	open   map[txn.SessionID]*engine.Session
}

// keep keeps s open until it has ended. After close it leaves s at a savepoint, and is ErrUnavailable.
func (c *sessions) keep(ctx context.Context, s *engine.Session) error {
	if !c.add(s) {
		return errors.Join(ErrUnavailable, s.Detach(ctx))
	}
	return nil
}

func (c *sessions) add(s *engine.Session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, old := range c.open {
		if old.Ended() {
			delete(c.open, id)
		}
	}
	if c.open == nil {
		c.open = map[txn.SessionID]*engine.Session{}
	}
	if !c.closed {
		c.open[s.ID()] = s
	}
	return !c.closed
}

// share returns the session with that id for one more client, and keeps it open.
func (c *sessions) share(ctx context.Context, db *engine.DB, who *Principal, id txn.SessionID) (s *engine.Session, err error) {
	if err := c.opening.Lock(ctx); err != nil {
		return nil, err
	}
	defer c.opening.Unlock()
	if s = c.get(id); s == nil || s.Ended() {
		if s, err = db.Resume(ctx, id); err != nil {
			return nil, err
		}
	}
	if err := who.MayWrite(s.Branch()); err != nil {
		return nil, err
	}
	if s.Info().Saved.IsZero() {
		// More than one client may know it now, and only the first could begin it again.
		if err := s.Savepoint(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.Log(ctx); err != nil {
		return nil, err
	}
	return s, c.keep(ctx, s)
}

func (c *sessions) get(id txn.SessionID) *engine.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[id]
}

// left closes a session that its client has left, if nothing is lost by that. Without a
// savepoint no other client knows it.
func (c *sessions) left(s *engine.Session) {
	ctx := context.Background()
	c.opening.WaitLock()
	defer c.opening.Unlock()
	if s.Ended() || !s.Versions().Blank(ctx) {
		return
	}
	c.mu.Lock()
	delete(c.open, s.ID())
	c.mu.Unlock()
	_ = s.Close() // nothing is written by it
}

// close leaves every session at a savepoint.
func (c *sessions) close(ctx context.Context) error {
	if c.opening.Lock(ctx) == nil { // else another process delays a session that is being opened
		defer c.opening.Unlock()
	}
	c.mu.Lock()
	open := c.open
	c.open, c.closed = nil, true
	c.mu.Unlock()
	var errs []error
	for _, s := range open {
		if !s.Ended() {
			errs = append(errs, s.Detach(ctx))
		}
	}
	return errors.Join(errs...)
}

func (c *Session) left() {
	if e, err := c.t.entry(c.db); err == nil && e != nil { // else the server ends, and stores them
		if s := e.now.Load(); s != nil {
			s.sessions.left(c.s)
		}
	}
}

// BeginOptions describe a new session.
type BeginOptions struct {
	// Branch is the branch of the commit; "" is main.
	Branch string
	// Label describes the session.
	Label string
	// By is the process that begins the session. User and Host are by default the principal and
	// this machine.
	By txn.Origin
	// Unsaved leaves out the savepoint with which a session begins otherwise. If this
	// process is killed before the first change or savepoint, the session is gone.
	Unsaved bool
	// Once says that the session is for one request and no client knows its id: no savepoint is
	// left if this process is killed.
	Once bool
	// ID and Base belong to an unsaved session of a process that was killed; zero is
	// a new id, and the head of the branch.
	ID   txn.SessionID
	Base txn.CommitID
}

// Begin opens a session on a branch. Clients find it by its id.
func (t *Table) Begin(ctx context.Context, who *Principal, name string, o BeginOptions) (*Session, error) {
	s, err := t.find(ctx, name, true)
	if err != nil {
		return nil, err
	}
	db, err := s.database()
	if err != nil {
		return nil, err
	}
	if o.Branch == "" {
		o.Branch = txn.MainBranch
	}
	if err := who.MayWrite(o.Branch); err != nil {
		return nil, err
	}
	es, err := db.BeginWith(ctx, txn.BeginOptions{Branch: o.Branch, Label: o.Label, ID: o.ID, Base: o.Base})
	if errors.Is(err, txn.ErrSessionBusy) { // another client of the session was first
		return t.Session(ctx, who, name, o.ID.String())
	}
	if err != nil {
		return nil, err
	}
	setOrigin(es, who, o.By)
	if !o.Unsaved && !o.Once {
		err = es.Savepoint(ctx)
	}
	if err == nil && !o.Once {
		err = es.Log(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, es.Abort())
	}
	if err := s.sessions.keep(ctx, es); err != nil {
		return nil, err
	}
	return &Session{s: es, t: t, db: name, who: who}, nil
}

// setOrigin notes the process that begins a session; see [BeginOptions].By.
func setOrigin(s *engine.Session, who *Principal, by txn.Origin) {
	by.User, by.Host = cmp.Or(by.User, who.Name), cmp.Or(by.Host, s.Info().By.Host)
	s.SetOrigin(by)
}

// Session returns the open session with that id, or resumes it from its last
// savepoint. Reading it needs write access to its branch.
func (t *Table) Session(ctx context.Context, who *Principal, name, id string) (*Session, error) {
	s, err := t.find(ctx, name, true)
	if err != nil {
		return nil, err
	}
	db, err := s.database()
	if err != nil {
		return nil, err
	}
	sid, err := txn.ParseSessionID(id)
	if err != nil {
		return nil, err
	}
	es, err := s.sessions.share(ctx, db, who, sid)
	if err != nil {
		return nil, err
	}
	return &Session{s: es, t: t, db: name, who: who}, nil
}

// Engine is the session itself, for reads and writes. It is ended by [Session.Commit] and
// [Session.Discard] of c, not by its own.
func (c *Session) Engine() *engine.Session { return c.s }

// Commit publishes the session. An author that is missing is the principal.
func (c *Session) Commit(ctx context.Context, o txn.CommitOptions) (*txn.Commit, error) {
	if o.Author == "" {
		o.Author = c.who.Name
	}
	commit, err := c.s.Commit(ctx, o)
	if errors.Is(err, txn.ErrConflict) {
		c.t.conflicts.Add(1)
	}
	if err == nil {
		c.t.commits.Add(1)
		c.t.o.Log.InfoContext(ctx, "commit", "database", c.db, "who", c.who.Name, "branch", c.s.Branch(), "commit", commit.ID.String())
	}
	return commit, err
}

// Discard ends the session without a trace.
func (c *Session) Discard(ctx context.Context) error {
	err := c.s.Abort()
	if err == nil {
		c.t.o.Log.InfoContext(ctx, "discard", "database", c.db, "who", c.who.Name, "session", fmt.Sprint(c.s.ID()))
	}
	return err
}
