package txn

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// RetryOptions say how often and how fast [Retry] tries again. nil and the zero
// value work.
type RetryOptions struct {
	// Attempts is how many times at most the function is called; default 10.
	Attempts int
	// First is the longest pause before the second attempt; default 1 ms. The
	// longest pause doubles with each attempt up to Most; default 1 s.
	First, Most time.Duration
	// Sleep waits, or returns the context's error if that ends first; default
	// is the clock.
	Sleep func(context.Context, time.Duration) error
	// Rand returns a number in [0, 1), by which each pause is shortened so that
	// two commits that met do not meet again; default [rand.Float64]. Both functions
	// must be safe for concurrent use if the options are shared.
	Rand func() float64
}

func (o *RetryOptions) withDefaults() RetryOptions {
	var c RetryOptions
	if o != nil {
		c = *o
	}
	if c.Attempts <= 0 {
		c.Attempts = 10
	}
	if c.First <= 0 {
		c.First = time.Millisecond
	}
	if c.Most <= 0 {
		c.Most = time.Second
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c
}

// Retry calls fn until it returns anything but a conflict, with growing pauses
// in between. fn must begin anew each time: a session that met a conflict has
// an old base. What fn writes is never lost and never overwrites what it did not
// read; for values that it only reads and relies on it calls [Session.Guard]. When the attempts are used up, the last conflict is returned;
// when ctx ends, its error joined with that conflict.
func Retry(ctx context.Context, o *RetryOptions, fn func() error) error {
	opts := o.withDefaults()
	longest := min(opts.First, opts.Most)
	for attempt := 1; ; attempt++ {
		err := fn()
		if !errors.Is(err, ErrConflict) || attempt >= opts.Attempts {
			return err
		}
		pause := time.Duration(float64(longest) * opts.Rand())
		if ended := opts.Sleep(ctx, pause); ended != nil {
			return errors.Join(ended, err)
		}
		if longest > opts.Most/2 {
			longest = opts.Most
		} else {
			longest *= 2
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return ctx.Err()
	}
}
