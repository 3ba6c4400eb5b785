package txn

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// Fork opens a session that begins with everything that s has written, on the same
// branch and base. From then on neither sees what the other writes, and the changes of
// the fork are what it wrote itself. [Session.Join] takes them into s. The fork can also
// be committed, which publishes them without those of s: a change of something that only
// s has written is a conflict then, until s is committed. Fork makes a savepoint of s.
// The fork has the guards of s.
func (s *Session) Fork(ctx context.Context) (*Session, error) { return s.home.fork(ctx) }

func (s own) fork(ctx context.Context) (*Session, error) {
	if err := s.lockOpen(ctx); err != nil {
		return nil, err
	}
	defer s.changing.Unlock()
	// The fork reads the pages of s from the index, and its payloads from the packs.
	if err := s.savepoint(ctx); err != nil {
		return nil, fmt.Errorf("fork: %w", err)
	}
	var id SessionID
	rand.Read(id[:])
	rec := &catalog.Session{ID: id, Branch: s.branch, Base: s.base, Work: s.work, Created: s.db.opts.Now().UTC(), By: s.by, Guards: s.guarded()}
	f := s.db.newSession(rec, s.work)
	f.forked = s.forked || s.work != s.start
	if err := s.db.register(f); err != nil {
		return nil, fmt.Errorf("fork: %w", err)
	}
	return f, nil
}

// Join takes what a fork of s changed into s, with its guards, and ends the fork. Changes
// of the same chunk, document, field or shape that s made since [Session.Fork] are a
// *[ConflictError], to the same value or not; both sessions stay as they are then. Choices
// decide such conflicts as in [CommitOptions]: Ours keeps what s has, Theirs takes what the
// fork has.
func (s *Session) Join(ctx context.Context, f *Session, choices []PathChoice) error {
	if s == f || s.db != f.db {
		return fmt.Errorf("join session %v: it is no other session of the same database", f.id)
	}
	return s.home.join(ctx, f, choices)
}

func (s own) join(ctx context.Context, f *Session, choices []PathChoice) error {
	if err := f.joining.Lock(ctx); err != nil { // a second join waits, and finds that the fork has ended
		return err
	}
	defer f.joining.Unlock()
	base, theirs, guards, release, err := f.frozen(ctx)
	if err != nil {
		return fmt.Errorf("join session %v: %w", f.id, err)
	}
	s.holds(release)
	err = s.change(ctx, nil, func(work tree.Root) (tree.Root, error) {
		root, conflicts, err := s.space.Merge(ctx, base, work, theirs, namespace.MergeOptions{Strict: true, Choose: chooser(choices, nil)})
		if err == nil && len(conflicts) > 0 {
			err = &ConflictError{Branch: s.branch, Base: s.base, Head: s.base, Conflicts: conflicts}
		}
		if err != nil {
			return root, err
		}
		s.addGuards(guards)
		s.joins = &f.id
		return root, nil
	})
	if err != nil {
		return fmt.Errorf("join session %v: %w", f.id, err)
	}
	return f.Abort()
}

// frozen stores what the session has written, and returns the roots that its changes are
// between, which are held until release.
func (s *Session) frozen(ctx context.Context) (start, work tree.Root, guards []string, release func(), err error) {
	if err := s.lockOpen(ctx); err != nil {
		return start, work, nil, nil, err
	}
	defer s.changing.Unlock()
	if err := s.savepoint(ctx); err != nil {
		return start, work, nil, nil, err
	}
	start, work = s.start, s.work
	releases := []func(){s.db.hold(start), s.db.hold(work)}
	release = func() {
		for _, release := range releases {
			release()
		}
	}
	return start, work, s.guarded(), release, nil
}
