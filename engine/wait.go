package engine

import (
	"context"
	"time"
)

// Waits between two looks at a lock, which grow with how long it was waited.
const (
	shortestWait = 50 * time.Millisecond
	longestWait  = time.Second
)

// WaitLocked returns an [Options.Locked] that waits for the other process, until
// ctx ends or limit has passed since the database was first found locked: then
// the *[LockedError] is the error of opening. It may serve several databases at
// once.
func WaitLocked(ctx context.Context, limit time.Duration) func(*LockedError, time.Duration) error {
	return func(held *LockedError, waited time.Duration) error {
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

// nextLook is how long to wait before the next look at a lock.
func nextLook(waited time.Duration) time.Duration {
	return min(max(waited/4, shortestWait), longestWait)
}
