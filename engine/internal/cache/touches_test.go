package cache

import "testing"

func TestTouches(t *testing.T) {
	const chunk = 64 << 10
	w := newTouches(64 * chunk)
	if w.again(1, chunk) {
		t.Error("again at the first time")
	}
	if !w.again(1, chunk) {
		t.Error("not again at the second time")
	}
	if w.again(1, chunk) {
		t.Error("not forgotten after the second time")
	}
	// Few others come between, then as many as the cache holds.
	pass := func(n int) (again int) {
		for i := range n {
			if w.again(uint64(i+100)*0x123456789abcdef1, chunk) {
				again++
			}
		}
		return again
	}
	if pass(32); pass(32) < 30 {
		t.Error("32 chunks are not known again")
	}
	pass(200)
	if n := pass(200); n > 4 {
		t.Errorf("%d chunks are known again after more than the cache holds", n)
	}
	// The table is of fixed size, and a chunk of any size can be touched.
	for _, budget := range []int64{1, 1 << 20, 1 << 50} {
		if n := len(newTouches(budget).slots); n < 1<<10 || n > 1<<16 || n&(n-1) != 0 {
			t.Errorf("%d slots for %d bytes", n, budget)
		}
	}
}
