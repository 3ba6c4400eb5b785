package pack

import (
	"encoding/binary"
	"testing"
)

func numbered(s *Store, n uint64, size uint64) *pack {
	p := &pack{s: s}
	binary.BigEndian.PutUint64(p.id[8:], n)
	p.size.Store(size)
	return p
}

// A reader that goes forward has ever more read ahead, up to a bound; one that jumps has what it
// reads and no more.
func TestAhead(t *testing.T) {
	const n = 1 << 20
	var h handle
	p := numbered(&Store{}, 0, 1<<40)
	at := uint64(100 * n)
	p.ahead(&h, at, at+n)
	if got := h.runs.asked.Load(); got != at+n {
		t.Errorf("a first read asks up to %d, want %d", got, at+n)
	}
	before := uint64(0)
	for range 100 {
		at += n
		p.ahead(&h, at, at+n)
		more := h.runs.asked.Load() - at - n
		if more > aheadMost || more+n < before {
			t.Fatalf("%d bytes are read ahead after %d, the most is %d", more, before, aheadMost)
		}
		before = more
	}
	if before < aheadMost/2 {
		t.Errorf("%d bytes are read ahead of a long run", before)
	}
	for _, at := range []uint64{5 * n, 500 * n, 80 * n, 300 * n} {
		for range 2 { // the second one changes nothing
			p.ahead(&h, at, at+n)
			if got := h.runs.asked.Load(); got != at+n {
				t.Errorf("a read at %d asks up to %d, want %d", at, got, at+n)
			}
		}
	}
}

// Two readers of a run, which come to neighbours in turn, leave out nothing that neither has read.
func TestAheadOfTwo(t *testing.T) {
	const n = 1 << 20
	var h handle
	p := numbered(&Store{}, 0, 1<<40)
	p.ahead(&h, 0, n)
	for at := uint64(n); at < 40*n; at += 2 * n {
		p.ahead(&h, at+n, at+2*n)
		asked := h.runs.asked.Load()
		p.ahead(&h, at, at+n)
		if got := h.runs.asked.Load(); got != asked || h.runs.run.Load() != aheadMost {
			t.Fatalf("a read at %d begins a run at %d", at, h.runs.run.Load()-aheadMost)
		}
	}
	if more := h.runs.asked.Load() - 41*n; more < aheadMost/2 {
		t.Errorf("%d bytes are read ahead of a long run", more)
	}
}

// A run goes on in the next packs, and in no others.
func TestAheadInNextPack(t *testing.T) {
	const n, size = 1 << 20, 8 << 20
	s := &Store{}
	run := func(number uint64) uint64 {
		var h handle
		p := numbered(s, number, size)
		p.ahead(&h, 64, n)
		asked := h.runs.asked.Load()
		for at := uint64(n); at < size; at += n {
			p.ahead(&h, at, at+n)
		}
		return asked
	}
	if got := run(7); got != n {
		t.Errorf("a first read asks up to %d, want %d", got, n)
	}
	for _, next := range []uint64{8, 9, 11} {
		if got := run(next); got != n+aheadMost {
			t.Errorf("the start of pack %d after the end of one before it asks up to %d, want %d", next, got, n+aheadMost)
		}
	}
	for _, other := range []uint64{30, 3} {
		if got := run(other); got != n {
			t.Errorf("the start of pack %d asks up to %d, want %d", other, got, n)
		}
	}
}
