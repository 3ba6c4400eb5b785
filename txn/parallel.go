package txn

import (
	"context"
	"sync"
	"sync/atomic"
)

// inParallel calls fn with each of 0 to n-1, at most workers of them at a time,
// and returns the first error, after which no more are begun and the context that
// fn gets is canceled. It returns when all calls have.
func inParallel(ctx context.Context, n, workers int, fn func(ctx context.Context, i int) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		next   atomic.Int64
		first  sync.Once
		failed error
		wg     sync.WaitGroup
	)
	for range min(workers, n) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := fn(ctx, int(i)); err != nil {
					first.Do(func() { failed = err })
					stop()
					return
				}
			}
		})
	}
	wg.Wait()
	return failed
}
