package txn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/overlay"
)

// Savepoint makes everything written so far survive a crash, as a session that
// [DB.Resume] takes up again. It publishes nothing.
func (s *Session) Savepoint(ctx context.Context) error { return s.home.save(ctx) }

func (s own) save(ctx context.Context) error {
	if err := s.lockOpen(ctx); err != nil {
		return err
	}
	defer s.changing.Unlock()
	return s.savepoint(ctx)
}

// savepoint is Savepoint. The caller holds changing.
func (s *Session) savepoint(ctx context.Context) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	failures := s.db.packFailures.Load()
	if err := s.fresh.check(failures); err != nil {
		return err
	}
	stored := s.fresh.take()
	if err := s.writeSavepoint(ctx, failures); err != nil {
		s.fresh.restore(stored)
		return err
	}
	return nil
}

// writeSavepoint writes the working root. failures is the count under which all
// payloads that it names were stored.
func (s *Session) writeSavepoint(ctx context.Context, failures uint64) error {
	change := newChange(failures)
	change.extra = s.db.idx.NewBatch()
	defer change.extra.Close()
	written := map[tree.Name]struct{}{}
	if err := (overlay.Group{s.pages}).Private(ctx, s.space.Tree, s.work, written, change.putPage); err != nil {
		return err
	}
	rec := s.record(s.work)
	rec.Saved = s.db.opts.Now().UTC()
	catalog.Sessions.Put(change.extra, rec)
	if s.joins != nil { // after a kill, the fork is there or its changes are in s
		catalog.Sessions.Delete(change.extra, *s.joins)
	}
	if err := s.db.publish(ctx, change); err != nil {
		return fmt.Errorf("savepoint of session %v: %w", s.id, err)
	}
	s.pages.Drop(written)
	s.mu.Lock()
	s.stored, s.saved, s.used = true, rec.Saved, time.Now().UTC()
	s.mu.Unlock()
	s.renewLog(digest.Of(rec.Encode()), rec.Work, len(rec.Guards))
	return nil
}

// record is the record of the session with a state of its work.
func (s *Session) record(work tree.Root) *catalog.Session {
	s.mu.RLock() // of the label and the origin
	defer s.mu.RUnlock()
	rec := &catalog.Session{
		ID: s.id, Branch: s.branch, Base: s.base, Work: work,
		Created: s.created, Saved: s.saved, Label: s.label, By: s.by, Guards: s.guarded(),
	}
	if s.forked {
		rec.Start = &s.start
	}
	return rec
}

// Abort ends the session and forgets what it wrote. After an error the session stays open.
func (s *Session) Abort() error { return s.home.abort() }

func (s own) abort() error {
	s.changing.WaitLock()
	defer s.changing.Unlock()
	switch s.state {
	case sessionClosed:
		return nil
	case sessionCommitting:
		return s.errClosed()
	}
	if s.stored {
		batch := s.db.idx.NewBatch()
		defer batch.Close()
		catalog.Sessions.Delete(batch, s.id)
		if err := batch.Commit(true); err != nil {
			return fmt.Errorf("abort session %v: %w", s.id, err)
		}
	} else if err := s.dropLog(false); err != nil {
		return fmt.Errorf("abort session %v: %w", s.id, err) // no record tells that it has ended
	}
	s.end()
	return nil
}

// AbortSession ends a session and discards its changes, also if programs have it open or it cannot be resumed.
// Later calls of such programs return [ErrSessionClosed]. Without such a session the error is [ErrNoRef].
func (db *DB) AbortSession(ctx context.Context, id SessionID) (err error) {
	defer wrap(&err, "abort session %v", id)
	_, err = asked(ctx, db, AskAbortSession, id, func(ctx context.Context, id SessionID) (none, error) {
		_, err := db.abortUnused(ctx, abortRequest{ID: id})
		return none{}, err
	})
	return err
}

// AbortUnused is [DB.AbortSession] for a session that was last used before a time; the zero time means any
// session. ended is false if the session was used since.
func (db *DB) AbortUnused(ctx context.Context, id SessionID, before time.Time) (ended bool, err error) {
	if before.IsZero() {
		err = db.AbortSession(ctx, id)
		return err == nil, err
	}
	defer wrap(&err, "abort session %v", id)
	return asked(ctx, db, askAbortUnused, abortRequest{id, before}, db.abortUnused)
}

func (db *DB) abortUnused(ctx context.Context, r abortRequest) (ended bool, err error) {
	id, before := r.ID, r.Before
	if err := db.writable(); err != nil {
		return false, err
	}
	for {
		db.mu.Lock()
		s := db.sessions[id]
		db.mu.Unlock()
		if s != nil {
			if !before.IsZero() && !s.Info().Used.Before(before) {
				return ended, nil
			}
			if err := s.Abort(); err != nil {
				return ended, err
			}
			ended = true
		}
		// One that was closed meanwhile may be stored.
		err := db.abortStored(ctx, id)
		if ended && errors.Is(err, ErrNoRef) {
			return true, nil
		}
		if !errors.Is(err, ErrSessionBusy) {
			return err == nil, err
		}
		if err := ctx.Err(); err != nil {
			return ended, err
		}
	}
}

// abortStored ends a session that is not open. The error is ErrSessionBusy for an open session, and ErrNoRef
// without such a session.
func (db *DB) abortStored(ctx context.Context, id SessionID) error {
	if err := db.applying.Lock(ctx); err != nil {
		return err
	}
	defer db.applying.Unlock()
	// Whoever resumes the session registers it, and looks for the record after that.
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.sessions[id] != nil {
		return ErrSessionBusy
	}
	stored, err := catalog.Sessions.Has(db.idx, id)
	if _, waits := db.unapplied[id]; err == nil && !stored && !waits {
		err = ErrNoRef
	}
	if err != nil {
		return err
	}
	batch := db.idx.NewBatch()
	defer batch.Close()
	catalog.Sessions.Delete(batch, id)
	if err := batch.Commit(true); err != nil {
		return err
	}
	if err := db.removeLog(id, true); err != nil {
		return err
	}
	delete(db.unapplied, id)
	return nil
}

// end closes the session. The caller holds changing.
func (s *Session) end() {
	_ = s.dropLog(s.state == sessionCommitting)
	s.logged.size = 0
	s.over()
}

// over notes that the session has ended in this process.
func (s *Session) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == sessionClosed {
		return
	}
	s.state = sessionClosed
	s.wrote()
	s.live.Store(nil)
	s.buf, s.bufDirs = nil, nil
	for _, release := range s.held {
		release()
	}
	s.pages.Forget()
	s.db.unregister(s)
}

// Ended reports whether the session was committed, aborted or closed.
func (s *Session) Ended() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.state == sessionClosed
}

// close ends the session in this process; a stored one can be resumed.
func (s *Session) close() { s.home.close() }

func (s own) close() {
	s.changing.WaitLock()
	defer s.changing.Unlock()
	if s.state == sessionOpen {
		s.end()
	}
}

// suspend is close for a database that is closed: the log stays.
func (s *Session) suspend() {
	s.changing.WaitLock()
	defer s.changing.Unlock()
	if s.state == sessionOpen {
		s.logged.size = 0
		s.end()
	}
}

// Close ends the session in this process and forgets what was written since
// the last savepoint; if there was one, the session can be resumed from it.
func (s *Session) Close() error {
	s.close()
	return nil
}
