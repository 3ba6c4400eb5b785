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

	"golang.org/x/sync/semaphore"
)

// Lock is a lock that one caller holds alone, or many hold shared. The zero value is unlocked.
// Callers get it in the order in which they came.
type Lock struct {
	make sync.Once
	free *semaphore.Weighted
}

// alone is how much of a lock the caller of Lock has, and one the caller of RLock.
const alone = 1 << 30

func (l *Lock) acquire(ctx context.Context, n int64) error {
	l.make.Do(func() { l.free = semaphore.NewWeighted(alone) })
	return l.free.Acquire(ctx, n)
}

// Lock acquires the lock. If ctx ends first, it returns the error of ctx without
// the lock.
func (l *Lock) Lock(ctx context.Context) error { return l.acquire(ctx, alone) }

// RLock is Lock for a caller that shares the lock with other callers of RLock.
func (l *Lock) RLock(ctx context.Context) error { return l.acquire(ctx, 1) }

// WaitLock acquires the lock, however long that takes. It is for bookkeeping and closing after
// the work of a call.
func (l *Lock) WaitLock() { _ = l.Lock(context.Background()) }

// Unlock releases the lock, which the caller holds.
func (l *Lock) Unlock() { l.free.Release(alone) }

// RUnlock releases the lock after RLock.
func (l *Lock) RUnlock() { l.free.Release(1) }
