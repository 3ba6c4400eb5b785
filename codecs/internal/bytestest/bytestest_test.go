package bytestest

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// The length is what was asked for, the same seed gives the same bytes, and some
// of them can be encoded shorter.
func TestMixed(t *testing.T) {
	for _, n := range []int{0, 1, 7, 1000, 1 << 16} {
		b := Mixed(rand.New(rand.NewPCG(1, 2)), n, 12)
		if len(b) != n {
			t.Errorf("%d bytes, want %d", len(b), n)
		}
		if !bytes.Equal(b, Mixed(rand.New(rand.NewPCG(1, 2)), n, 12)) {
			t.Errorf("%d bytes: the same seed gives others", n)
		}
	}
	var count [256]int
	for _, c := range Mixed(rand.New(rand.NewPCG(3, 4)), 1<<16, 12) {
		count[c]++
	}
	for c, k := range count {
		if k == 0 {
			t.Errorf("byte %d does not occur", c)
		}
	}
}
