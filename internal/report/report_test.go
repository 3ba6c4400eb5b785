package report

import (
	"errors"
	"github.com/zarrdb/zarrdb/internal/must"
	"testing"
)

// A log of n commits asks for n commits: the next one may be at the end of a long history.
func TestFirstAsksForNoMore(t *testing.T) {
	same := func(i int) int { return i }
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
		for _, err := range first(n, seq, same) {
			must.Do(t, err)
			got++
		}
		if got != n || asked != n {
			t.Errorf("%d elements: asked for %d, got %d", n, asked, got)
		}
	}
	broken := errors.New("broken")
	for _, err := range first(2, func(yield func(int, error) bool) { yield(0, broken) }, same) {
		if err != broken {
			t.Errorf("%v, want %v", err, broken)
		}
	}
}
