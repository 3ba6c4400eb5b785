package txn

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Longest pauses of [Retry]: after the first attempt, and after many.
const (
	firstPause = time.Millisecond
	mostPause  = time.Second
)

// Retry calls fn until it returns anything but a conflict, with random pauses in
// between, whose bound doubles from 1 ms up to 1 s. fn must begin anew each time: a
// session that met a conflict has an old base. What fn writes is never lost and
// never overwrites what it did not read; for values that it only reads and relies on
// it calls [Session.Guard]. When ctx ends, the result is its error joined with the
// last conflict.
func Retry(ctx context.Context, fn func() error) error {
	for longest := firstPause; ; longest = min(2*longest, mostPause) {
		err := fn()
		if !errors.Is(err, ErrConflict) {
			return err
		}
		// Random, so that two commits that met do not meet again.
		t := time.NewTimer(rand.N(longest))
		select {
		case <-ctx.Done():
			t.Stop()
			return errors.Join(ctx.Err(), err)
		case <-t.C:
		}
	}
}
