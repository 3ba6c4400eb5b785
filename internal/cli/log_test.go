package cli

import (
	"errors"
	"testing"
)

// A log of n commits asks for n commits: the next one may be at the end of a long history.
func TestFirstAsksForNoMore(t *testing.T) {
	for n := range 4 {
		asked, got := 0, 0
		seq := func(yield func(int, error) bool) {
			for asked < 3 {
				asked++
				if !yield(asked, nil) {
					return
				}
			}
		}
		if err := first(n, seq, func(int) error { got++; return nil }); err != nil || got != n || asked != n {
			t.Errorf("%d elements: asked for %d, got %d, %v", n, asked, got, err)
		}
	}
	broken := errors.New("broken")
	if err := first(2, func(yield func(int, error) bool) { yield(0, broken) }, func(int) error { return nil }); err != broken {
		t.Errorf("%v, want %v", err, broken)
	}
}
