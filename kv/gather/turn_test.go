package gather

import (
	"context"
	"errors"
	"github.com/zarrdb/zarrdb/internal/must"
	"sync"
	"testing"
)

func TestTurn(t *testing.T) {
	var turn Turn
	var work sync.WaitGroup
	n := 0
	for range 50 {
		work.Go(func() {
			if err := turn.Take(t.Context()); err != nil {
				t.Error(err)
				return
			}
			defer turn.Release()
			n++
		})
	}
	work.Wait()
	if n != 50 {
		t.Errorf("%d turns", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	must.Do(t, turn.Take(ctx))
	cancel()
	if err := turn.Take(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a second turn: %v", err)
	}
	turn.Release()
	if err := turn.Take(t.Context()); err != nil {
		t.Error(err)
	}
}
