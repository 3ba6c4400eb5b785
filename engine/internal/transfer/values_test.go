package transfer

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/kv"
)

// claimed is a value that claims a size and counts how many bytes of such values are
// held at a time.
type claimed struct {
	kv.Bytes
	size       int64
	held, most *atomic.Int64
	others     func()
}

func (c claimed) Size() int64 { return c.size }

func (c claimed) View(_ context.Context, _ kv.Range, fn func([]byte) error) error {
	now := c.held.Add(c.size)
	defer c.held.Add(-c.size)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	c.others()
	return fn(nil)
}

// Long values that many workers meet at the same time are not all in memory at once.
func TestLongValuesTakeTurns(t *testing.T) {
	var held, most atomic.Int64
	started := make(chan struct{}, 100)
	p := NewPool(16)
	err := p.Run(context.Background(), 16, func(ctx context.Context, i int) error {
		v := claimed{size: 400 << 20, held: &held, most: &most, others: func() {
			for range 1000 {
				runtime.Gosched() // others would come in here
			}
			started <- struct{}{}
		}}
		if i%4 == 0 {
			v.size = 2 << 30
		}
		return ViewWhole(ctx, v, func([]byte) error { return nil })
	})
	if err != nil || len(started) != 16 {
		t.Errorf("%d values, %v", len(started), err)
	}
	if most.Load() > 2<<30 {
		t.Errorf("%d bytes at once", most.Load())
	}
	v := claimed{size: 8 << 40, held: &held, most: &most}
	if err := ViewWhole(context.Background(), v, nil); !errors.Is(err, kv.ErrTooLarge) {
		t.Errorf("8 TiB: %v", err)
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	v.size = 1 << 30
	if err := ViewWhole(stopped, v, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}
