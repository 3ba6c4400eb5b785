package lru_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/lru"
	"github.com/zarrdb/zarrdb/internal/must"
)

func TestCache(t *testing.T) {
	ctx := t.Context()
	c := lru.New[string](10, func(n int) int64 { return int64(n) })
	reads := 0
	get := func(key string, n int) {
		t.Helper()
		if v, err := c.Get(ctx, key, func() (int, error) { reads++; return n, nil }); err != nil || v != n {
			t.Fatalf("%s: %d, %v", key, v, err)
		}
	}
	for _, step := range []struct {
		key      string
		n, reads int
	}{
		{"a", 4, 1}, {"b", 4, 2}, {"a", 4, 2}, // both fit
		{"c", 4, 3}, {"a", 4, 3}, {"b", 4, 4}, // b was the oldest, then c
		{"huge", 99, 5}, {"huge", 99, 5}, // the last one stays
		{"a", 4, 6},
	} {
		if get(step.key, step.n); reads != step.reads {
			t.Fatalf("%s: %d reads, want %d", step.key, reads, step.reads)
		}
	}
	c.Put("p", 3)
	if get("p", 3); reads != 6 {
		t.Error("what was put is read")
	}
	if v, ok := c.Peek("p"); v != 3 || !ok {
		t.Errorf("peek: %d, %v", v, ok)
	}
	if v, ok := c.Peek("nothing"); ok {
		t.Errorf("peek at nothing: %d", v)
	}
}

// Many ask for one value: it is read once. An error is not kept, and that of a
// goroutine whose context ended is not given to others.
func TestCacheTogether(t *testing.T) {
	c := lru.New[int](10, func(int) int64 { return 1 })
	var reads atomic.Int32
	var all sync.WaitGroup
	began := make(chan struct{})
	ended, cancel := context.WithCancel(t.Context())
	all.Go(func() {
		_, err := c.Get(ended, 1, func() (int, error) {
			close(began)
			<-ended.Done()
			return 0, ended.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	<-began
	for range 8 {
		all.Go(func() {
			v, err := c.Get(t.Context(), 1, func() (int, error) { reads.Add(1); return 7, nil })
			if err != nil || v != 7 {
				t.Errorf("%d, %v", v, err)
			}
		})
	}
	cancel()
	all.Wait()
	if reads.Load() != 1 {
		t.Errorf("%d reads", reads.Load())
	}
	bad := errors.New("bad")
	for range 2 {
		calls := 0
		if _, err := c.Get(t.Context(), 2, func() (int, error) { calls++; return 0, bad }); err != bad || calls != 1 {
			t.Errorf("%v, %d calls", err, calls)
		}
	}
}

// A value whose reading panics is read again by the next request.
func TestCacheAfterPanic(t *testing.T) {
	c := lru.New[int](10, func(int) int64 { return 1 })
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		_, _ = c.Get(t.Context(), 1, func() (int, error) { panic("boom") })
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if v, err := c.Get(ctx, 1, func() (int, error) { return 7, nil }); v != 7 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
}

// What is there needs no wait, so a context that has ended does not matter.
func TestEndedContext(t *testing.T) {
	c := lru.New[int](100, func(int) int64 { return 1 })
	must.Get(c.Get(t.Context(), 1, func() (int, error) { return 7, nil }))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if v, err := c.Get(ctx, 1, nil); v != 7 || err != nil {
			t.Fatal(v, err)
		}
	}
}
