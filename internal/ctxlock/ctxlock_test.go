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
	if err := lock.RLock(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("shared while it is locked: %v", err)
	}
	lock.Unlock()
	must.Do(t, lock.RLock(t.Context()))
	must.Do(t, lock.RLock(t.Context()))
	lock.RUnlock()
	lock.RUnlock()
	if err := lock.Lock(t.Context()); err != nil {
		t.Error(err)
	}
}
