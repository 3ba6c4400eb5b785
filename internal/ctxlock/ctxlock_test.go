package ctxlock

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

func TestLock(t *testing.T) {
	var lock Lock
	var work sync.WaitGroup
	n := 0
	for range 50 {
		work.Go(func() {
			if err := lock.Lock(t.Context()); err != nil {
				t.Error(err)
				return
			}
			defer lock.Unlock()
			n++
		})
	}
	work.Wait()
	if n != 50 {
		t.Errorf("locked %d times", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	must.Do(t, lock.Lock(ctx))
	cancel()
	if err := lock.Lock(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("locked twice: %v", err)
	}
	lock.Unlock()
	if err := lock.Lock(t.Context()); err != nil {
		t.Error(err)
	}
}
