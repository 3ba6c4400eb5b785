package transfer

import (
	"context"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/internal/together"
)

// Pool runs the chunks of all operations of a database with a bounded number
// of workers. It implements zarr.Runner.
//
// The caller of Run always works too, so an operation makes progress even when
// every worker is busy elsewhere, and nested calls cannot block each other.
type Pool struct {
	spare chan struct{} // one token per worker beside the callers
}

// NewPool makes a pool of so many workers; callers count.
func NewPool(workers int) *Pool {
	p := &Pool{spare: make(chan struct{}, max(workers-1, 0))}
	for range cap(p.spare) {
		p.spare <- struct{}{}
	}
	return p
}

// Run calls fn for 0 to n-1, each once, and returns the first error. After an
// error or when ctx ends, no further call begins; Run returns when the calls
// under way have returned.
func (p *Pool) Run(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	work := func() {
		for ctx.Err() == nil {
			i := next.Add(1) - 1
			if i >= int64(n) {
				return
			}
			if err := fn(ctx, int(i)); err != nil {
				cancel(err)
				return
			}
		}
	}
	var wg together.Group
	defer wg.Wait()
	for helpers := n - 1; helpers > 0; helpers-- {
		select {
		case <-p.spare:
			wg.Go(func() {
				defer func() { p.spare <- struct{}{} }()
				work()
			})
			continue
		default:
		}
		break
	}
	work()
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
