package engine

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/kv/kvtest"
)

// A call that waits for the detection of another one waits no longer than its context
// lives.
func TestDetectionWaitEndsWithTheContext(t *testing.T) {
	asked, may, once := make(chan struct{}), make(chan struct{}), new(sync.Once)
	src := hooked(t, memoryURL(t, smallStore(t))+"/", func(kvtest.Op, string) error {
		once.Do(func() { close(asked) })
		<-may
		return nil
	})
	look := func(ctx context.Context) error { _, err := src.dataset(ctx); return err }
	first := make(chan error, 1)
	go func() { first <- look(bg) }()
	<-asked
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if err := look(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled wait: %v", err)
	}
	close(may)
	if err := <-first; err != nil {
		t.Error(err)
	}
}
