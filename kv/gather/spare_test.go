package gather

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// As many calls are under way as there is room for, and one without any.
func TestSpare(t *testing.T) {
	for _, test := range []struct {
		places       int
		memory, size int64
		want         int64
	}{
		{3, 100, 10, 4}, {0, 100, 10, 1}, {8, 25, 10, 3}, {8, 5, 10, 2}, {8, 100, 0, 9},
	} {
		memory := NewMemory(test.memory)
		s := NewSpare(test.places, memory)
		const n = 40
		var now, most atomic.Int64
		var called [n]atomic.Int64
		full := make(chan struct{})
		err := s.Each(bg, n, test.size, func(_ context.Context, i int) error {
			called[i].Add(1)
			k := now.Add(1)
			for {
				old := most.Load()
				if k <= old || most.CompareAndSwap(old, k) {
					break
				}
			}
			if k == test.want && i < n/2 {
				select {
				case <-full:
				default:
					close(full)
				}
			}
			if i < int(test.want) {
				<-full // the first ones, until all are under way
			}
			now.Add(-1)
			return nil
		})
		if err != nil || most.Load() != test.want {
			t.Errorf("%+v: %d at a time, %v", test, most.Load(), err)
		}
		for i := range called {
			if called[i].Load() != 1 {
				t.Errorf("%+v: %d was called %d times", test, i, called[i].Load())
			}
		}
		if !memory.try(test.memory) || len(s.places) != 0 {
			t.Errorf("%+v: bytes, or %d places, were not given back", test, len(s.places))
		}
	}
}

// The first error ends it, and so does the end of the context.
func TestSpareErrors(t *testing.T) {
	s := NewSpare(3, NewMemory(100))
	boom := errors.New("boom")
	var mu sync.Mutex
	var seen []int
	err := s.Each(bg, 100, 1, func(ctx context.Context, i int) error {
		mu.Lock()
		seen = append(seen, i)
		mu.Unlock()
		if i == 2 {
			return boom
		}
		if i > 2 {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	if err != boom || len(seen) > 6 {
		t.Errorf("%v after %v", err, seen)
	}
	ctx, cancel := context.WithCancel(bg)
	err = s.Each(ctx, 100, 1, func(ctx context.Context, i int) error {
		cancel()
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, context.Canceled) || len(s.places) != 0 {
		t.Errorf("canceled: %v", err)
	}
	if err := s.Each(ctx, 0, 1, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("nothing: %v", err)
	}
	if err := s.Each(bg, 0, 1, nil); err != nil {
		t.Errorf("nothing: %v", err)
	}
}

// Readings that hold memory and want more do not wait for each other.
func TestSpareNested(t *testing.T) {
	memory := NewMemory(10)
	s := NewSpare(4, memory)
	err := Each(bg, 2, 8, func(ctx context.Context, _ int) error {
		if err := memory.Take(ctx, 5); err != nil {
			return err
		}
		defer memory.Give(5)
		return s.Each(ctx, 20, 5, func(context.Context, int) error { return nil })
	})
	if err != nil || !memory.try(10) {
		t.Errorf("%v, or bytes are left", err)
	}
}
