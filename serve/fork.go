package serve

import (
	"context"
	"errors"

	"github.com/zarrdb/zarrdb/txn"
)

// Fork opens a session that begins with the writes of c, and stores the new session, so
// that other processes can name it; see [engine.Session.Fork]. by is the process that forks, as in
// [BeginOptions].
func (c *Session) Fork(ctx context.Context, by txn.Origin) (*Session, error) {
	s, err := c.t.find(ctx, c.db, true)
	if err != nil {
		return nil, err
	}
	f, err := c.s.Fork(ctx)
	if err != nil {
		return nil, err
	}
	setOrigin(f, c.who, by)
	if err = f.Savepoint(ctx); err == nil {
		err = f.Log(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, f.Abort())
	}
	if err := s.sessions.keep(ctx, f); err != nil {
		return nil, err
	}
	return &Session{s: f, t: c.t, db: c.db, who: c.who}, nil
}

// Join merges the changes of a fork of c into c, and ends the fork; see
// [engine.Session.Join].
func (c *Session) Join(ctx context.Context, f *Session, choices []txn.PathChoice) error {
	return c.s.Join(ctx, f.s, choices)
}
