package engine

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
)

// slowFile is read when it may be.
type slowFile struct {
	kv.Value
	read func()
}

func (f slowFile) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	f.read()
	return f.Value.View(ctx, rng, fn)
}

// Who waits for what somebody else looks up waits no longer than its context lives.
func TestWaitsEndWithTheContext(t *testing.T) {
	var asked, may chan struct{}
	var once *sync.Once
	block := func() {
		once.Do(func() { close(asked) })
		<-may
	}
	src := hooked(t, memoryURL(t, smallStore(t))+"/", func(kvtest.Op, string) error {
		block()
		return nil
	})
	set := &refSet{file: slowFile{kv.Bytes(`{"a":"b"}`), block}}
	for name, look := range map[string]func(context.Context) error{
		"the format of a source": func(ctx context.Context) error { _, err := src.dataset(ctx); return err },
		"a reference set":        func(ctx context.Context) error { _, err := set.open(ctx); return err },
	} {
		asked, may, once = make(chan struct{}), make(chan struct{}), new(sync.Once)
		first := make(chan error, 1)
		go func() { first <- look(bg) }()
		<-asked
		ctx, cancel := context.WithCancel(bg)
		cancel()
		if err := look(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		close(may)
		if err := <-first; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
