package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn"
)

// A session may be used from several places of one process: by what opened the
// database, and by clients that the process serves. Each has a Session of its own
// for the same transaction:
//
//	Begin, Resume ──▶ Session ─┐
//	Join ───────────▶ Session ─┼─▶ joint: the transaction, and how many use it
//	Join of a handle ▶ Session ─┘
//
// Commit and Abort end it for all; Detach and Close leave it, and the last one
// to leave closes it.

// joints are the sessions of a database that are open, by id.
type joints struct {
	opening sync.Mutex // held from when a stored session is opened until it is in open

	mu   sync.Mutex
	open map[txn.SessionID]*joint
}

type joint struct {
	s    *Session // as it was opened
	uses int
}

// add notes a session that was opened.
func (j *joints) add(s *Session) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.open == nil {
		j.open = map[txn.SessionID]*joint{}
	}
	j.open[s.ID()] = &joint{s: s, uses: 1}
}

// take returns another Session for one that is open, nil if none is.
func (j *joints) take(id txn.SessionID) *Session {
	j.mu.Lock()
	defer j.mu.Unlock()
	o := j.open[id]
	if o == nil || o.s.Ended() {
		return nil
	}
	o.uses++
	s := *o.s
	s.left = new(sync.Once)
	return &s
}

// leave gives up one use, and reports whether that was the last one.
func (j *joints) leave(id txn.SessionID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	o := j.open[id]
	if o == nil {
		return true
	}
	if o.uses--; o.uses == 0 {
		delete(j.open, id)
	}
	return o.uses == 0
}

// end forgets a session that was committed or aborted.
func (j *joints) end(id txn.SessionID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.open, id)
}

// Join is [DB.Resume] for a session that this process may have open already: the
// result is then the same transaction, and both go on. What one commits or aborts
// has ended for all.
func (db *DB) Join(ctx context.Context, id txn.SessionID) (*Session, error) {
	db.joints.opening.Lock()
	defer db.joints.opening.Unlock()
	if s := db.joints.take(id); s != nil {
		return db.own(s), nil
	}
	return db.resume(ctx, id)
}

// Detach is [txn.Session.Detach]; a session that was joined goes on for the others.
func (s *Session) Detach(ctx context.Context) error {
	if err := s.Savepoint(ctx); err != nil {
		return err
	}
	return s.Close()
}

// Close is [txn.Session.Close]; a session that was joined goes on for the others.
func (s *Session) Close() (err error) {
	s.left.Do(func() {
		if s.db.joints.leave(s.ID()) {
			err = s.Session.Close()
		}
	})
	return err
}

// Abort is [txn.Session.Abort].
func (s *Session) Abort() error {
	err := s.Session.Abort()
	if err == nil {
		s.left.Do(func() { s.db.joints.end(s.ID()) })
	}
	return err
}

// Handle returns another DB for the database that db has open. Author and Follow
// of o are its own; caches and workers are shared. Closing it ends what was opened
// through it, and nothing else: sessions stay at their last savepoints. Errors:
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
	if err := opts.Follow.check(); err != nil {
		return nil, err
	}
	if db.store.Closed() {
		return nil, fmt.Errorf("open %s: %w", db.Dir(), txn.ErrClosed)
	}
	if db.opts.ReadOnly && !(o != nil && o.ReadOnly) {
		return nil, &LockedError{Dir: filepath.Join(db.Dir(), "index"), Holder: index.Holder{PID: os.Getpid(), Program: "a reader"}}
	}
	h := &DB{store: db.store, opts: opts, cache: db.cache, pool: db.pool, files: opts.resolver(), joints: db.joints, holder: db}
	h.files.recall = h.granted
	return h, nil
}

// own notes a session that is to end with the handle it was opened through.
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
	return errors.Join(append(errs, db.files.env.close())...)
}
