package gather

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// Everything is called once, and as many at a time as is said.
func TestEach(t *testing.T) {
	for _, test := range []struct{ parallel, n, want int }{
		{3, 40, 3}, {1, 40, 1}, {8, 5, 5}, {8, 1, 1}, {8, 0, 0},
	} {
		called := make([]atomic.Int64, test.n)
		var now, most atomic.Int64
		full := make(chan struct{})
		err := Each(bg, test.parallel, test.n, func(_ context.Context, i int) error {
			called[i].Add(1)
			k := now.Add(1)
			defer now.Add(-1)
			for old := most.Load(); k > old && !most.CompareAndSwap(old, k); {
				old = most.Load()
			}
			if i < test.want {
				if k == int64(test.want) {
					close(full)
				}
				<-full // the first ones, until all are under way
			}
			return nil
		})
		if err != nil || most.Load() != int64(test.want) {
			t.Errorf("%+v: %d at a time, %v", test, most.Load(), err)
		}
		for i := range called {
			if called[i].Load() != 1 {
				t.Errorf("%+v: %d was called %d times", test, i, called[i].Load())
			}
		}
	}
}

// The first error ends it and cancels what is under way; so does the end of the
// context.
func TestEachErrors(t *testing.T) {
	boom := errors.New("boom")
	for _, n := range []int{1, 2, 100} {
		var mu sync.Mutex
		seen := 0
		err := Each(bg, 4, n, func(ctx context.Context, i int) error {
			mu.Lock()
			seen++
			mu.Unlock()
			if i == n/50 {
				return boom
			}
			if i > n/50 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		if err != boom || seen > n/50+4 {
			t.Errorf("%d calls: %v after %d", n, err, seen)
		}
	}
	ctx, cancel := context.WithCancel(bg)
	var began atomic.Int64
	err := Each(ctx, 4, 100, func(ctx context.Context, _ int) error {
		began.Add(1)
		cancel()
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, context.Canceled) || began.Load() > 4 {
		t.Errorf("canceled: %v after %d", err, began.Load())
	}
	if err := Each(ctx, 4, 0, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("nothing: %v", err)
	}
}
