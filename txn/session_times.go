package txn

import (
	"context"
	"time"
)

// maxTimes bounds the keys of a session whose times are kept.
const maxTimes = 1 << 18

// noteTime notes that a key was written, in a session with a log: only clients of a server
// ask for times. The caller holds mu.
func (s *Session) noteTime(key string, deleted bool) {
	switch {
	case !s.log.on:
		return
	case deleted:
		delete(s.times, key)
		return
	case s.times == nil || len(s.times) >= maxTimes:
		s.times = map[string]time.Time{}
	}
	s.times[key] = s.used
}

// Modified returns when the value of a key was written: the time of the base's commit if
// the session has not changed it, else that of the write. Where the write is not known any
// more, as after a restart, it is the time when the session was begun, which is earlier:
// a program that copies what is newer then copies too much, and never too little.
// The error is kv.ErrNotFound if the key has no value.
func (s *Session) Modified(ctx context.Context, key string) (time.Time, error) {
	v, err := s.lookup(ctx, key)
	if err != nil {
		return time.Time{}, err
	}
	s.mu.RLock()
	at, known := s.times[key]
	start, base := s.start, s.base
	s.mu.RUnlock()
	if known {
		return at, nil
	}
	old, ok, err := s.space.Get(ctx, start, key)
	if err != nil || !ok || old.Kind != v.Kind || old.ContentSum() != v.ContentSum() {
		return s.created, err
	}
	c, err := s.db.Lookup(ctx, base)
	if err != nil {
		return time.Time{}, err
	}
	return c.Time, nil
}
