package engine

import (
	"context"
	"time"
)

// Waits between two tries of a lock, which grow with the time waited.
const (
	shortestWait = 50 * time.Millisecond
	longestWait  = time.Second
)

// waitLocked waits for the process that has a database open, until ctx ends or
// o.LockWait has passed since the database was first found locked: then the
// *[LockedError] is the error of opening. A database that this process itself has open
// is not waited for, unless o.Locked decides.
func (o *Options) waitLocked(ctx context.Context) func(*LockedError, time.Duration) error {
	limit, tell := o.LockWait, o.Locked
	return func(held *LockedError, waited time.Duration) error {
		if held.Own && tell == nil { // the wait would be for this process itself
			return held
		}
		if tell != nil && waited < limit {
			if err := tell(held); err != nil {
				return err
			}
		}
		if waited >= limit {
			return held
		}
		t := time.NewTimer(min(nextLook(waited), limit-waited))
		defer t.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
			return nil
		}
	}
}

// nextLook returns the wait before the next try of a lock.
func nextLook(waited time.Duration) time.Duration {
	return min(max(waited/4, shortestWait), longestWait)
}
