package txn

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetry(t *testing.T) {
	other := errors.New("other")
	for _, c := range []struct {
		name  string
		errs  []error // of one call after the other; the last stands for all that follow
		calls int
		want  error
		most  time.Duration // of all pauses
	}{
		{"at once", []error{nil}, 1, nil, 0},
		{"another error", []error{other}, 1, other, 0},
		{"two conflicts", []error{&ConflictError{}, fmt.Errorf("x: %w", &ConflictError{}), nil}, 3, nil, 3 * time.Millisecond},
		{"then another error", []error{&ConflictError{}, other}, 2, other, time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun, calls := time.Now(), 0
			err := Retry(t.Context(), func() error {
				calls++
				return c.errs[min(calls, len(c.errs))-1]
			})
			if took := time.Since(begun); err != c.want || calls != c.calls || took > c.most {
				t.Errorf("%s: %d calls in %v, %v", c.name, calls, took, err)
			}
		})
	}
}

// The pauses grow up to a second, and the last one ends with the context.
func TestRetryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		calls := 0
		err := Retry(ctx, func() error { calls++; return &ConflictError{} })
		if calls < 3600 || calls > 4*3600 || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrConflict) {
			t.Errorf("%d calls, %v", calls, err)
		}
	})
}
