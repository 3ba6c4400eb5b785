package gather

import (
	"context"
	"sync"
)

// Turn is a lock whose wait ends with a context. The zero value is ready.
type Turn struct {
	make sync.Once
	free chan struct{} // full while the lock is free
}

// Take acquires the lock. If ctx ends first, it returns the error of ctx without
// the lock.
func (t *Turn) Take(ctx context.Context) error {
	t.make.Do(func() {
		t.free = make(chan struct{}, 1)
		t.free <- struct{}{}
	})
	select {
	case <-t.free:
		return nil
	default:
	}
	select {
	case <-t.free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Release releases the lock, which the caller holds.
func (t *Turn) Release() { t.free <- struct{}{} }
