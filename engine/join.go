package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/internal/ctxlock"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn"
)

// A session may be used from several places of one process: by the program that
// opened the database, and by clients that the process serves. Each has a Session
// of its own for the same transaction:
//
//	Begin ───────────▶ Session ─┐
//	Resume ──────────▶ Session ─┼─▶ sharedSession: the transaction, and how many use it
//	Resume of a handle ▶ Session ┘
//
// Commit and Abort end it for all; Detach and Close leave it, and the last one
// to leave closes it.

// sharedSessions are the open sessions of a database, by id.
type sharedSessions struct {
	opening ctxlock.Lock // held while a stored session is opened and added to open

	mu   sync.Mutex
	open map[txn.SessionID]*sharedSession
}

type sharedSession struct {
	s    *Session // the first one
	uses int      // how many Sessions there are
}

// add adds a session that was opened.
func (o *sharedSessions) add(s *Session) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = map[txn.SessionID]*sharedSession{}
	}
	o.open[s.ID()] = &sharedSession{s: s, uses: 1}
}

// share returns another Session for one that is open, or nil.
func (o *sharedSessions) share(id txn.SessionID) *Session {
	o.mu.Lock()
	defer o.mu.Unlock()
	one := o.open[id]
	if one == nil || one.s.Ended() {
		return nil
	}
	one.uses++
	s := *one.s
	s.left = new(sync.Once)
	return &s
}

// leave gives up one Session, and reports whether it was the last one.
func (o *sharedSessions) leave(id txn.SessionID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	one := o.open[id]
	if one == nil {
		return true
	}
	if one.uses--; one.uses == 0 {
		delete(o.open, id)
	}
	return one.uses == 0
}

// end removes a session that was committed or aborted.
func (o *sharedSessions) end(id txn.SessionID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, id)
}

// Detach closes the session after a savepoint, to be resumed later, perhaps by another
// process. A session that was joined goes on for its other users.
func (s *Session) Detach(ctx context.Context) error {
	if err := s.Savepoint(ctx); err != nil {
		return err
	}
	return s.Close()
}

// Close is [txn.Session.Close]; a session that was joined goes on for its other users.
func (s *Session) Close() (err error) {
	s.left.Do(func() {
		if s.db.shared.leave(s.ID()) {
			err = s.tx.Close()
		}
	})
	return err
}

// Abort is [txn.Session.Abort].
func (s *Session) Abort() error {
	err := s.tx.Abort()
	if err == nil {
		s.left.Do(func() { s.db.shared.end(s.ID()) })
	}
	return err
}

// AbortSession ends a session and discards its changes, also if this or another process has it open, and if it
// cannot be resumed. Later calls on the session return txn.ErrSessionClosed. Without such a session the error is
// ErrNotFound.
func (db *DB) AbortSession(ctx context.Context, id txn.SessionID) error {
	_, err := db.AbortUnused(ctx, id, time.Time{})
	return err
}

// AbortSessions ends all sessions that were last used before a time, and returns them; see
// [txn.SessionInfo].Used. After an error it goes on with the other sessions.
func (db *DB) AbortSessions(ctx context.Context, before time.Time) (ended []SessionInfo, err error) {
	list, err := db.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, i := range list {
		if !i.Used.Before(before) {
			continue
		}
		switch done, err := db.AbortUnused(ctx, i.ID, before); {
		case errors.Is(err, txn.ErrNoRef): // it has ended since
		case err != nil:
			errs = append(errs, err)
		case done:
			ended = append(ended, i)
		}
	}
	return ended, errors.Join(errs...)
}

// AbortUnused is [DB.AbortSession], unless the session was used after a time that is not zero.
func (db *DB) AbortUnused(ctx context.Context, id txn.SessionID, before time.Time) (ended bool, err error) {
	if err := db.shared.opening.Lock(ctx); err != nil {
		return false, err
	}
	defer db.shared.opening.Unlock()
	s := db.shared.share(id)
	if s == nil {
		return db.store.AbortUnused(ctx, id, before)
	}
	if !before.IsZero() && !s.Info().Used.Before(before) {
		return false, s.Close()
	}
	if err := s.Abort(); err != nil {
		return false, errors.Join(err, s.Close())
	}
	return true, nil
}

// Handle returns another DB for the database that db has open. Author and Follow
// of o are its own; caches and workers are shared. Closing the handle ends only the sessions
// and snapshots that were opened through it: sessions stay at their last savepoints. Errors:
// txn.ErrClosed, and a *[LockedError] for a writer if db only reads.
func (db *DB) Handle(o *Options) (*DB, error) {
	opts := db.opts
	opts.ReadOnly = o != nil && o.ReadOnly
	if o != nil {
		opts.Follow = o.Follow
		if o.Author != "" {
			opts.Author = o.Author
		}
	}
	if err := opts.Follow.Check(); err != nil {
		return nil, err
	}
	if db.store.Closed() {
		return nil, fmt.Errorf("open %s: %w", db.Dir(), txn.ErrClosed)
	}
	if db.opts.ReadOnly && !(o != nil && o.ReadOnly) {
		return nil, &LockedError{Dir: filepath.Join(db.Dir(), "index"), Holder: index.Holder{PID: os.Getpid(), Program: "a reader"}}
	}
	env := opts.env()
	h := &DB{store: db.store, opts: opts, cache: db.cache, pool: db.pool, docs: db.docs, env: env, files: env.Resolver("", nil), shared: db.shared, holder: db}
	env.Recall = h.Granted
	return h, nil
}

// own has a handle close a session that was opened through it.
func (db *DB) own(s *Session) *Session {
	if db.holder != nil {
		db.mu.Lock()
		db.sessions = append(db.sessions, s)
		db.mu.Unlock()
	}
	return s
}

// leave closes a handle.
func (db *DB) leave() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	var errs []error
	for _, s := range db.sessions {
		errs = append(errs, s.Close())
	}
	db.sessions = nil
	return errors.Join(append(errs, db.env.Close())...)
}
