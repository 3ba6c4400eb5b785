package gather

import (
	"context"
	"sync"
)

// Turn is a lock that is waited for no longer than a context lives. The zero value is
// ready.
type Turn struct {
	make sync.Once
	free chan struct{} // full while nobody has the lock
}

// Take waits for the lock. The error is that of ctx; then the lock is not taken.
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

// Release gives back the lock, which the caller has.
func (t *Turn) Release() { t.free <- struct{}{} }
