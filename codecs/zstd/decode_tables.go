package zstd

import (
	"encoding/binary"
	"math/bits"
)

// entry is a state of a table to decode with, from the lowest bits on: how many bits
// lead to the next state (8), how many bits are added to the value (8), the least next
// state (16), and the least value (32).
type entry uint64

// states are a table to decode with (RFC 8878, section 4.1), of 1<<log entries.
type states struct {
	entries [1 << maxLog]entry
	log     uint8
	known   bool // a block of the frame has had it
}

// Kinds of tables (section 3.1.1.3.2.1).
const (
	tablePredefined = iota
	tableRepeated   // one symbol
	tableDescribed
	tableKept // as in the block before
)

// alphabet is the input for one of the three tables.
type alphabet struct {
	values []entry // by symbol, without states
	most   uint8   // logarithm of the longest table
	states states  // the predefined ones
}

func value(base uint32, extra uint8) entry { return entry(base)<<32 | entry(extra)<<8 }

func newAlphabet(n int, of func(symbol int) entry, f *field) *alphabet {
	a := &alphabet{most: uint8(f.maxLog)}
	for s := range n {
		a.values = append(a.values, of(s))
	}
	a.states.build(a.values, f.norm, uint8(f.log))
	return a
}

var (
	literalAlphabet = newAlphabet(len(literalBase), func(s int) entry { return value(literalBase[s], literalBits[s]) }, &literalDefault)
	matchAlphabet   = newAlphabet(len(matchBase), func(s int) entry { return value(matchBase[s]+minMatch, matchBits[s]) }, &matchDefault)
	// Values are distances, except for the first two symbols: 0 to 2 for recent
	// distances.
	offsetAlphabet = newAlphabet(31, func(s int) entry {
		if s < 2 {
			return value(uint32(s), uint8(s))
		}
		return value(1<<s-3, uint8(s))
	}, &offsetDefault)
)

// read sets the table of a block to one of a kind, and returns the bytes behind
// its description.
func (t *states) read(src []byte, kind byte, a *alphabet) ([]byte, bool) {
	switch kind {
	case tablePredefined:
		*t = a.states
	case tableRepeated:
		if len(src) < 1 || int(src[0]) >= len(a.values) {
			return nil, false
		}
		t.log, t.entries[0] = 0, a.values[src[0]]
		src = src[1:]
	case tableDescribed:
		var norm [maxSymbols]int16
		n, log, used, ok := readDistribution(norm[:len(a.values)], src)
		if !ok || log > a.most {
			return nil, false
		}
		t.build(a.values, norm[:n], log)
		src = src[used:]
	case tableKept:
		if !t.known {
			return nil, false
		}
	}
	t.known = true
	return src, true
}

// build makes the table of a normalized distribution of the first symbols; see
// [table.build].
func (t *states) build(values []entry, norm []int16, log uint8) {
	t.log = log
	size := 1 << log
	var symbols [1 << maxLog]byte
	var next [maxSymbols]uint16
	high := size - 1
	for s, n := range norm {
		next[s] = uint16(n)
		if n == -1 {
			next[s] = 1
			symbols[high] = byte(s)
			high--
		}
	}
	spread(symbols[:size], norm, high)
	for i, s := range symbols[:size] {
		n := next[s]
		next[s]++
		width := log + 1 - uint8(bits.Len16(n))
		t.entries[i] = values[s] | entry(width) | entry(int(n)<<width-size)<<16
	}
}

// readDistribution reads a normalized distribution (section 4.1.1) of at most len(norm)
// symbols: how many there are, the logarithm of their sum, and how many bytes were used.
func readDistribution(norm []int16, src []byte) (n int, log uint8, used int, ok bool) {
	at := 0 // in bits
	peek := func() uint32 {
		from := at >> 3
		if from+8 <= len(src) {
			return uint32(binary.LittleEndian.Uint64(src[from:]) >> (at & 7))
		}
		var b [8]byte
		if from < len(src) {
			copy(b[:], src[from:])
		}
		return uint32(binary.LittleEndian.Uint64(b[:]) >> (at & 7))
	}
	log = uint8(peek()&15) + 5
	at = 4
	if log > maxLog {
		return 0, 0, 0, false
	}
	left, threshold, width := 1<<log+1, 1<<log, int(log)+1
	for left > 1 && n < len(norm) {
		spare := 2*threshold - 1 - left // values below need one bit less
		v := int(peek()) & (2*threshold - 1)
		if v&(threshold-1) < spare {
			v &= threshold - 1
			at += width - 1
		} else {
			if v >= threshold {
				v -= spare
			}
			at += width
		}
		v--
		norm[n] = int16(v)
		n++
		left -= max(v, -v)
		if left < 1 {
			return 0, 0, 0, false
		}
		for left < threshold {
			width--
			threshold >>= 1
		}
		for more := v == 0; more; {
			zeros := int(peek() & 3)
			at += 2
			if n+zeros > len(norm) {
				return 0, 0, 0, false
			}
			clear(norm[n : n+zeros])
			n += zeros
			more = zeros == 3
		}
	}
	used = (at + 7) >> 3
	return n, log, used, left == 1 && used <= len(src)
}
