package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestRetry(t *testing.T) {
	ms := time.Millisecond
	other := errors.New("other")
	for _, c := range []struct {
		name     string
		o        RetryOptions
		errs     []error // of one call after the other; the last stands for all that follow
		stop     int     // the context ends in this pause, from 1
		calls    int
		pauses   []time.Duration
		want     []error
		conflict bool
	}{
		{name: "at once", errs: []error{nil}, calls: 1},
		{name: "another error", errs: []error{other}, calls: 1, want: []error{other}},
		{name: "two conflicts", errs: []error{&ConflictError{}, fmt.Errorf("x: %w", &ConflictError{}), nil}, calls: 3, pauses: []time.Duration{ms / 2, ms}},
		{name: "never", o: RetryOptions{Attempts: 5, First: 10 * ms, Most: 30 * ms}, errs: []error{&ConflictError{}}, calls: 5,
			pauses: []time.Duration{5 * ms, 10 * ms, 15 * ms, 15 * ms}, want: []error{ErrConflict}},
		{name: "then another error", errs: []error{&ConflictError{}, other}, calls: 2, pauses: []time.Duration{ms / 2}, want: []error{other}},
		{name: "cancelled", errs: []error{&ConflictError{}}, stop: 2, calls: 2, pauses: []time.Duration{ms / 2, ms}, want: []error{context.Canceled, ErrConflict}},
		{name: "first above most", o: RetryOptions{Attempts: 2, First: time.Hour, Most: 4 * ms}, errs: []error{&ConflictError{}}, calls: 2, pauses: []time.Duration{2 * ms}, want: []error{ErrConflict}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var pauses []time.Duration
			c.o.Rand = func() float64 { return 0.5 }
			c.o.Sleep = func(_ context.Context, d time.Duration) error {
				if pauses = append(pauses, d); len(pauses) == c.stop {
					return context.Canceled
				}
				return nil
			}
			calls := 0
			err := Retry(bg, &c.o, func() error {
				calls++
				return c.errs[min(calls, len(c.errs))-1]
			})
			for _, want := range c.want {
				if !errors.Is(err, want) {
					t.Errorf("error %v, want %v", err, want)
				}
			}
			if len(c.want) == 0 && err != nil {
				t.Errorf("error %v", err)
			}
			if calls != c.calls || !slices.Equal(pauses, c.pauses) {
				t.Errorf("%d calls with pauses %v, want %d with %v", calls, pauses, c.calls, c.pauses)
			}
		})
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	calls := 0
	err := Retry(ctx, &RetryOptions{First: time.Hour, Most: time.Hour, Rand: func() float64 { return 1 }}, func() error {
		calls++
		cancel()
		return &ConflictError{}
	})
	if calls != 1 || !errors.Is(err, context.Canceled) || !errors.Is(err, ErrConflict) {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// Sessions that read, change and write one key are one after the other when each
// is tried again.
func TestRetriedIncrementsAllCount(t *testing.T) {
	db := openTest(t, nil)
	update(t, db, "", map[string]string{"n": "0"})
	const workers, each = 4, 10
	errs := make(chan error, workers)
	for range workers {
		go func() {
			var err error
			for range each {
				err = errors.Join(err, Retry(bg, &RetryOptions{Attempts: 10_000, Most: time.Millisecond}, func() error {
					return increment(db, "n")
				}))
			}
			errs <- err
		}()
	}
	for range workers {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if got := at(t, db, ""); got["n"] != fmt.Sprint(workers*each) {
		t.Errorf("n is %s, want %d", got["n"], workers*each)
	}
}

func increment(db *DB, key string) error {
	s, err := db.Begin(bg, "")
	if err != nil {
		return err
	}
	defer s.Abort()
	var n int
	v, err := s.lookup(bg, key)
	if err != nil {
		return err
	}
	if _, err := fmt.Sscan(string(v.Inline), &n); err != nil {
		return err
	}
	if err := s.Set(bg, key, fmt.Append(nil, n+1)); err != nil {
		return err
	}
	_, err = s.Commit(bg, CommitOptions{})
	return err
}
