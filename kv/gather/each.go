package gather

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/zarrdb/zarrdb/internal/together"
)

// Each calls fn for 0 to n-1, up to parallel calls at a time, and returns the
// first error. After an error no further call begins, and running calls are
// canceled.
func Each(ctx context.Context, parallel, n int, fn func(ctx context.Context, i int) error) error {
	if n == 1 {
		return fn(ctx, 0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg together.Group
	defer wg.Wait()
	for range min(parallel, n) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if i >= int64(n) {
					return
				}
				if err := fn(ctx, int(i)); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// Memory bounds how many bytes are held at a time. The zero value is not ready;
// use [NewMemory]. Safe for concurrent use.
type Memory struct {
	max  int64
	free *semaphore.Weighted
}

// NewMemory returns a bound of that many bytes.
func NewMemory(max int64) *Memory { return &Memory{max, semaphore.NewWeighted(max)} }

// Take reserves n bytes. It waits until they fit, or until no bytes are
// reserved: more than the bound is granted alone. Callers are served in order of
// arrival. If ctx ends first, nothing is reserved.
func (m *Memory) Take(ctx context.Context, n int64) error {
	if m.free.Acquire(ctx, min(n, m.max)) != nil {
		return context.Cause(ctx)
	}
	return nil
}

// try reserves n bytes if that needs no wait.
func (m *Memory) try(n int64) bool { return m.free.TryAcquire(min(n, m.max)) }

// Give releases n bytes that Take reserved.
func (m *Memory) Give(n int64) { m.free.Release(min(n, m.max)) }
