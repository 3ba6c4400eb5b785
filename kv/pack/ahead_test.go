package pack

import "testing"

// A reader that goes forward has ever more read ahead, up to a bound; one that jumps has what it
// reads and no more.
func TestAhead(t *testing.T) {
	const n = 1 << 20
	var h handle
	at := uint64(100 * n)
	h.ahead(at, at+n)
	if got := h.runs.asked.Load(); got != at+n {
		t.Errorf("a first read asks up to %d, want %d", got, at+n)
	}
	before := uint64(0)
	for range 100 {
		at += n
		h.ahead(at, at+n)
		more := h.runs.asked.Load() - at - n
		if more > aheadMost || more+n < before {
			t.Fatalf("%d bytes are read ahead after %d, the most is %d", more, before, aheadMost)
		}
		before = more
	}
	if before < aheadMost/2 {
		t.Errorf("%d bytes are read ahead of a long run", before)
	}
	for _, at := range []uint64{5 * n, 500 * n, 80 * n, 80 * n, 300 * n} {
		h.ahead(at, at+n)
		if got := h.runs.asked.Load(); got != at+n {
			t.Errorf("a read at %d asks up to %d, want %d", at, got, at+n)
		}
	}
}
