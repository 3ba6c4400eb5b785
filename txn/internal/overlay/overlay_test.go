package overlay

import (
	"context"
	"errors"
	"testing"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// hangingPages is a page store whose process does not answer.
type hangingPages struct {
	tree.Pages
	asked chan struct{}
}

func (p hangingPages) Spill(ctx context.Context, _ map[tree.Name][]byte) error {
	close(p.asked)
	<-ctx.Done()
	return ctx.Err()
}

// Pages that are on their way to another process are read from memory, and the wait for it
// ends with the context of the write.
func TestSpillHangs(t *testing.T) {
	below := hangingPages{asked: make(chan struct{})}
	o := New(below, 10)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	name := tree.Name{1}
	go func() { done <- o.PutPage(ctx, name, make([]byte, 20)) }()
	<-below.asked
	if page, err := o.GetPage(context.Background(), name); len(page) != 20 || err != nil {
		t.Errorf("%d bytes, %v", len(page), err)
	}
	spared := 0
	o.EachSpilled(func(tree.Name) { spared++ })
	if spared != 1 {
		t.Errorf("a collection spares %d pages", spared)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	o.Forget()
}
