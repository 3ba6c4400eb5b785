package remote

import (
	"context"
	"sync"
	"sync/atomic"
)

// Each calls fn for 0 to n-1, as many at a time as Options.Parallel says, and
// returns the first error. After one, no further call begins, and those under
// way are canceled.
func (c *Client) Each(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	if n == 1 {
		return fn(ctx, 0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(c.o.Parallel, n) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := fn(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
