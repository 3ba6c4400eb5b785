package gather

import (
	"context"
	"sync/atomic"
	"testing"
)

// A panic in any of the goroutines of a call is one of the caller, after all have ended.
func TestPanics(t *testing.T) {
	for name, each := range map[string]func(fn func(ctx context.Context, i int) error) error{
		"each":  func(fn func(ctx context.Context, i int) error) error { return Each(context.Background(), 4, 4, fn) },
		"spare": func(fn func(ctx context.Context, i int) error) error { return NewSpare(4, NewMemory(4)).Each(context.Background(), 4, 1, fn) },
	} {
		for bad := range 4 {
			var running atomic.Int32
			got := func() (p any) {
				defer func() { p = recover() }()
				return each(func(_ context.Context, i int) error {
					running.Add(1)
					defer running.Add(-1)
					if i == bad {
						panic("bad")
					}
					return nil
				})
			}()
			if got != "bad" || running.Load() != 0 {
				t.Errorf("%s, %d: %v, %d still run", name, bad, got, running.Load())
			}
		}
	}
}
