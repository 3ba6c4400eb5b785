package transfer

import (
	"context"
	"errors"
	"testing"
)

// filler sends numbers in batches of three and notes when it has returned.
type filler struct {
	n       int   // numbers
	failed  error // then
	ended   bool
	batches int // that were made
}

func (c *filler) fresh() []int {
	c.batches++
	return make([]int, 0, 3)
}

func (c *filler) fill(_ context.Context, pass func([]int) ([]int, error)) (err error) {
	defer func() { c.ended = true }()
	batch := c.fresh()
	for i := range c.n {
		if batch = append(batch, i); len(batch) < 3 {
			continue
		}
		if batch, err = pass(batch); err != nil {
			return err
		}
		batch = batch[:0]
	}
	if _, err := pass(batch); err != nil {
		return err
	}
	return c.failed
}

// Batches arrive whole and in their order, and few are made. An error of who
// fills them comes after them.
func TestRelay(t *testing.T) {
	boom := errors.New("boom")
	for _, n := range []int{0, 2, 3, 1000} {
		for _, failed := range []error{nil, boom} {
			c := &filler{n: n, failed: failed}
			next := 0
			err := Relay(context.Background(), c.fresh, c.fill, func(batch []int) error {
				for _, i := range batch {
					if i != next {
						t.Fatalf("%d numbers: got %d, want %d", n, i, next)
					}
					next++
				}
				clear(batch)
				return nil
			})
			if err != failed || next != n || !c.ended || c.batches > 4 {
				t.Errorf("%d numbers: %d came, %v, ended %v, %d batches", n, next, err, c.ended, c.batches)
			}
		}
	}
}

// However using ends, filling has ended too.
func TestRelayEnds(t *testing.T) {
	boom := errors.New("boom")
	c := &filler{n: 1000}
	calls := 0
	err := Relay(context.Background(), c.fresh, c.fill, func([]int) error {
		if calls++; calls == 3 {
			return boom
		}
		return nil
	})
	if err != boom || calls != 3 || !c.ended {
		t.Errorf("failed: %v after %d calls, ended %v", err, calls, c.ended)
	}

	c = &filler{n: 1000}
	func() {
		defer func() {
			if recover() != boom || !c.ended {
				t.Errorf("panicked: ended %v", c.ended)
			}
		}()
		_ = Relay(context.Background(), c.fresh, c.fill, func([]int) error { panic(boom) })
	}()

	// Filling that waits for something else is told.
	filling := make(chan struct{})
	waiting := func(ctx context.Context, pass func(int) (int, error)) error {
		_, _ = pass(0)
		close(filling)
		<-ctx.Done()
		return ctx.Err()
	}
	zero := func() int { return 0 }
	if err := Relay(context.Background(), zero, waiting, func(int) error { <-filling; return boom }); err != boom {
		t.Errorf("waiting: %v", err)
	}

	// So it is when the caller's context ends, which then is the error.
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(boom)
	for _, fill := range []func(context.Context, func(int) (int, error)) error{
		func(ctx context.Context, _ func(int) (int, error)) error {
			<-ctx.Done()
			return context.Cause(ctx)
		},
		func(_ context.Context, pass func(int) (int, error)) error {
			for {
				if _, err := pass(0); err != nil {
					return err
				}
			}
		},
	} {
		if err := Relay(ctx, zero, fill, func(int) error { return nil }); err != boom {
			t.Errorf("canceled: %v", err)
		}
	}
}
