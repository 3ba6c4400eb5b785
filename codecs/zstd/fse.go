package zstd

import (
	"math"
	"math/bits"
)

// maxLog is the largest logarithm of the size of a table here, maxSymbols the
// most symbols: the codes of match lengths.
const (
	maxLog     = 9
	maxSymbols = 53
)

// table is an FSE table to encode with (RFC 8878, section 4.1): a finite state
// machine whose states are 1<<log to 2<<log-1. Encoding a symbol emits the low
// bits of the state, fewer for frequent symbols.
type table struct {
	log    uint
	states [1 << maxLog]uint16
	steps  [64]step // by symbol
}

// step is the effect of a symbol on the state. change is how many bits are left behind, in the
// upper half: one less where the lower half, added to the state, does not carry; find is where
// the states that follow begin in states, less the first index.
type step struct {
	change uint32
	find   int32
}

// next is the state after a symbol and how many low bits of the state before are left behind.
func (t *table) next(state uint32, symbol byte) (next uint32, bits uint32) {
	s := t.steps[symbol&63]
	bits = (state + s.change) >> 16 & 31
	return uint32(t.states[uint32(int32(state>>bits)+s.find)&(1<<maxLog-1)]), bits
}

// build makes the table of a normalized distribution; -1 is a symbol less likely
// than one state in all.
func (t *table) build(norm []int16, log uint) {
	t.log = log
	size := 1 << log
	var symbols [1 << maxLog]byte
	var next [maxSymbols]uint16
	high, total := size-1, 0
	for s, n := range norm {
		next[s] = uint16(total)
		switch {
		case n == -1:
			symbols[high] = byte(s)
			high--
			t.steps[s] = step{uint32(log<<16 - 1<<log), int32(total - 1)}
			total++
		case n == 1:
			t.steps[s] = step{uint32(log<<16 - 1<<log), int32(total - 1)}
			total++
		case n > 1:
			most := log - uint(bits.Len16(uint16(n-1))) + 1
			t.steps[s] = step{uint32(most<<16 - uint(n)<<most), int32(total - int(n))}
			total += int(n)
		}
	}
	spread(symbols[:size], norm, high)
	for i, s := range symbols[:size] {
		t.states[next[s]] = uint16(size + i)
		next[s]++
	}
}

// spread puts each symbol of a distribution into as many places of a table, up to high.
func spread(symbols []byte, norm []int16, high int) {
	size := len(symbols)
	step, pos := size>>1+size>>3+3, 0
	for s, n := range norm {
		for range n {
			symbols[pos] = byte(s)
			for pos = (pos + step) & (size - 1); pos > high; {
				pos = (pos + step) & (size - 1)
			}
		}
	}
}

// single makes the table of one symbol, which takes no bits.
func (t *table) single(symbol byte) {
	t.log, t.states[0] = 0, 0
	t.steps[symbol] = step{}
}

// first returns the state after the first symbol.
func (t *table) first(symbol byte) uint32 {
	s := t.steps[symbol]
	n := (s.change + 1<<15) >> 16
	v := n<<16 - s.change
	return uint32(t.states[int32(v>>n)+s.find])
}

// normalize scales counts, whose sum is total, to a sum of 1<<log. Each symbol
// that occurs gets one at least. There must be two of them, and no more than half
// of 1<<log.
func normalize(norm []int16, counts []uint32, total int, log uint) {
	left, most := 1<<log, 0
	for s, c := range counts {
		norm[s] = 0
		if c == 0 {
			continue
		}
		n := max(1, (int(c)<<log+total/2)/total)
		norm[s] = int16(n)
		left -= n
		if c > counts[most] {
			most = s
		}
	}
	// A remainder is distributed where it matters least.
	for left < 0 && int(norm[most])+left < int(norm[most])/2+1 {
		best := -1
		for s, n := range norm {
			if n > 1 && (best < 0 || n > norm[best]) {
				best = s
			}
		}
		norm[best]--
		left++
	}
	norm[most] += int16(left)
}

// cost estimates the bits of symbols with a distribution that has all of them.
func cost(norm []int16, counts []uint32, log uint) float64 {
	sum := 0.0
	for s, c := range counts {
		if c == 0 {
			continue
		}
		if s >= len(norm) || norm[s] == 0 {
			return math.Inf(1)
		}
		sum += float64(c) * (float64(log) - math.Log2(math.Abs(float64(norm[s]))))
	}
	return sum
}

// appendDistribution writes a normalized distribution (section 4.1.1) whose last
// symbol occurs.
func appendDistribution(dst []byte, norm []int16, log uint) []byte {
	var w bitWriter
	w.dst = dst
	w.add(uint64(log-5), 4)
	remaining, threshold, width := 1<<log+1, 1<<log, log+1
	for s := 0; s < len(norm); {
		n := int(norm[s])
		s++
		remaining -= max(n, -n)
		// Values below spare need one bit less.
		spare := 2*threshold - 1 - (remaining + max(n, -n))
		v := n + 1
		if v >= threshold {
			v += spare
		}
		short := uint(0)
		if v < spare {
			short = 1
		}
		w.add(uint64(v), width-short)
		w.flush()
		for remaining < threshold {
			width--
			threshold >>= 1
		}
		if n != 0 {
			continue
		}
		// The number of further zeros, three by three.
		zeros := 0
		for s < len(norm) && norm[s] == 0 {
			zeros++
			s++
		}
		for ; zeros >= 3; zeros -= 3 {
			w.add(3, 2)
			w.flush()
		}
		w.add(uint64(zeros), 2)
	}
	w.flush()
	if w.n > 0 {
		w.dst = append(w.dst, byte(w.bits))
	}
	return w.dst
}

// bitWriter appends bits, the lowest first.
type bitWriter struct {
	dst  []byte
	bits uint64
	n    uint
}

// add takes up to 56 bits less the bits that were not flushed; the other bits of v are 0.
func (w *bitWriter) add(v uint64, n uint) {
	w.bits |= v << w.n
	w.n += n
}

// flush leaves less than 8 bits.
func (w *bitWriter) flush() {
	for ; w.n >= 8; w.n -= 8 {
		w.dst = append(w.dst, byte(w.bits))
		w.bits >>= 8
	}
}
