package engine

import (
	"context"

	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/txn"
)

// Fork is [txn.Session.Fork].
func (s *Session) Fork(ctx context.Context) (*Session, error) {
	if err := s.copies.Refresh(ctx); err != nil {
		return nil, err
	}
	f, err := s.tx.Fork(ctx)
	if err != nil {
		return nil, err
	}
	return s.db.session(f), nil
}

// Join is [txn.Session.Join].
func (s *Session) Join(ctx context.Context, f *Session, choices []txn.PathChoice) error {
	for _, c := range []*policy.Copies{s.copies, f.copies} {
		if err := c.Refresh(ctx); err != nil {
			return err
		}
	}
	err := s.tx.Join(ctx, f.tx, choices)
	if err == nil {
		f.left.Do(func() { f.db.shared.end(f.ID()) })
	}
	return err
}
