package txn

import (
	"context"
	"time"

	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// maxTimes bounds the keys of a session whose times are kept.
const maxTimes = 1 << 18

// noteTime notes that a key was written, in a session with a log: only clients of a server
// ask for times. The caller holds mu.
func (s *Session) noteTime(key string, deleted bool) {
	switch {
	case !s.logged.on:
		return
	case deleted:
		delete(s.times, key)
		return
	case s.times == nil || len(s.times) >= maxTimes:
		s.times = map[string]time.Time{}
	}
	s.times[key] = s.used
}

// Modified returns since when a key has its value: what [Snapshot.Written] says of the base
// if the session has not changed the value, else the time of the write. Where the write is
// not known any more, as after a restart, it is the time when the session was begun, which
// is earlier: a program that copies what is newer then copies too much, and never too
// little. exact is false if an earlier value may have the same time in seconds, as always
// after a write. The error is kv.ErrNotFound if the key has no value.
func (s *Session) Modified(ctx context.Context, key string) (at time.Time, exact bool, err error) {
	v, err := s.home.lookup(ctx, key)
	if err != nil {
		return at, false, err
	}
	s.mu.RLock()
	at, known := s.times[key]
	base := s.base
	s.mu.RUnlock()
	if known {
		return at, false, nil
	}
	c, err := s.db.Lookup(ctx, base)
	if err != nil {
		return at, false, err
	}
	old, ok, err := s.space.Get(ctx, c.Root, key)
	if err != nil || !ok || !namespace.SameBytes(&old, &v) {
		return s.created, false, err
	}
	return s.db.writes.Since(ctx, s.db.versions(), base, key, &v)
}
