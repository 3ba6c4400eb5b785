package gather

import (
	"context"
	"sync"
	"sync/atomic"
)

// Each calls fn for 0 to n-1, as many at a time as parallel says, and returns
// the first error. After one, no further call begins, and those under way are
// canceled.
func Each(ctx context.Context, parallel, n int, fn func(ctx context.Context, i int) error) error {
	if n == 1 {
		return fn(ctx, 0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
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
	mu    sync.Mutex
	freed *sync.Cond
	max   int64
	used  int64
}

// NewMemory returns a bound of that many bytes.
func NewMemory(max int64) *Memory {
	m := &Memory{max: max}
	m.freed = sync.NewCond(&m.mu)
	return m
}

// Take waits until n bytes fit, or nobody holds any: so what is larger than the
// bound goes alone. It waits for calls of Give, not for a context: who holds
// bytes gives them back when its own context ends.
func (m *Memory) Take(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.used > 0 && n > m.max-m.used {
		m.freed.Wait()
	}
	m.used += n
}

// Give returns what Take took.
func (m *Memory) Give(n int64) {
	m.mu.Lock()
	m.used -= n
	m.mu.Unlock()
	m.freed.Broadcast()
}
