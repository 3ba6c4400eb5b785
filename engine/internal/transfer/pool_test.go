package transfer

import (
	"context"
	"errors"
	"github.com/zarrdb/zarrdb/internal/must"
	"sync/atomic"
	"testing"
)

func TestPoolRunsEachOnceWithinBound(t *testing.T) {
	for _, workers := range []int{1, 2, 5} {
		p := NewPool(workers)
		var running, most atomic.Int64
		counts := make([]atomic.Int64, 1000)
		must.Do(t, p.Run(context.Background(), len(counts), func(_ context.Context, i int) error {
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			counts[i].Add(1)
			running.Add(-1)
			return nil
		}))
		for i := range counts {
			if c := counts[i].Load(); c != 1 {
				t.Fatalf("%d workers: call %d ran %d times", workers, i, c)
			}
		}
		if m := most.Load(); m > int64(workers) {
			t.Errorf("%d workers: %d calls at a time", workers, m)
		}
		if len(p.spare) != cap(p.spare) {
			t.Errorf("%d workers: %d of %d tokens came back", workers, len(p.spare), cap(p.spare))
		}
	}
}

func TestPoolStopsAtFirstError(t *testing.T) {
	const workers = 3
	p := NewPool(workers)
	boom := errors.New("boom")
	var calls atomic.Int64
	err := p.Run(context.Background(), 1<<30, func(ctx context.Context, _ int) error {
		switch n := calls.Add(1); {
		case n < 10:
			return nil
		case n == 10:
			return boom
		}
		<-ctx.Done() // those under way are canceled
		return nil
	})
	if !errors.Is(err, boom) {
		t.Fatalf("got %v", err)
	}
	if n := calls.Load(); n > 10+workers-1 {
		t.Errorf("%d calls, of which the tenth failed", n)
	}
}

func TestPoolNests(t *testing.T) {
	p := NewPool(2)
	var calls atomic.Int64
	inner := func(ctx context.Context, _ int) error {
		return p.Run(ctx, 8, func(context.Context, int) error { calls.Add(1); return nil })
	}
	if err := p.Run(context.Background(), 8, inner); err != nil || calls.Load() != 64 {
		t.Fatalf("%d calls, %v", calls.Load(), err)
	}
}

func TestPoolHonoursContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := NewPool(2).Run(ctx, 5, func(context.Context, int) error { t.Error("called"); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}
