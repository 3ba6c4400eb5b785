// Package ctxlock has a lock whose wait ends with a context.
//
//	caller ──Lock(ctx)──▶ waits ──▶ holds it over a request ──Unlock──▶ next caller
//	                        └── ctx ends: an error, without the lock
//
// A [sync.Mutex] is for memory alone. Work that may wait for a disk, a request or another process
// is done under a Lock, so that no caller waits longer than it wants.
package ctxlock

import (
	"context"
	"sync"
)

// Lock is a mutual exclusion lock. The zero value is unlocked.
type Lock struct {
	make sync.Once
	free chan struct{} // full while the lock is free
}

// Lock acquires the lock. If ctx ends first, it returns the error of ctx without
// the lock.
func (l *Lock) Lock(ctx context.Context) error {
	l.make.Do(func() {
		l.free = make(chan struct{}, 1)
		l.free <- struct{}{}
	})
	select {
	case <-l.free:
		return nil
	default:
	}
	select {
	case <-l.free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WaitLock acquires the lock, however long that takes. It is for bookkeeping and closing after
// the work of a call.
func (l *Lock) WaitLock() { _ = l.Lock(context.Background()) }

// Unlock releases the lock, which the caller holds.
func (l *Lock) Unlock() {
	select {
	case l.free <- struct{}{}:
	default:
		panic("ctxlock: unlock of a free lock")
	}
}
