package txn

import (
	"context"
	"fmt"

	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

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
	if err := (overlays{s.pages}).private(ctx, s.space.Tree, s.work, written, change.putPage); err != nil {
		return err
	}
	rec := catalog.Session{
		ID: s.id, Branch: s.branch, Base: s.base, Work: s.work,
		Created: s.created, Saved: s.db.opts.Now().UTC(), Label: s.label, Guards: s.guarded(),
	}
	catalog.Sessions.Put(change.extra, &rec)
	if err := s.db.publish(ctx, change); err != nil {
		return fmt.Errorf("savepoint of session %v: %w", s.id, err)
	}
	s.pages.drop(written)
	s.stored, s.saved = true, rec.Saved
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
		catalog.Sessions.Delete(batch, s.id)
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
	s.buf, s.bufDirs = nil, nil
	for _, release := range s.held {
		release()
	}
	s.pages.forget()
	s.db.unregister(s)
}

// Ended reports whether the session was committed, aborted or closed.
func (s *Session) Ended() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.state == sessionClosed
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
