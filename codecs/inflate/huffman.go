package inflate

import "math/bits"

// A decoding table has one entry for every value of the next tableBits bits of
// the stream, followed by subtables for the codes that are longer. An entry
// describes the whole symbol, so that decoding needs one lookup:
//
//	bits 0–5    how many bits of the stream the entry takes
//	bit 6       a literal: bits 8–15 are the byte
//	lengths,    bits 8–11: the bits of the code alone; the entry takes the
//	distances   extra bits too; bits 16–30: the base value
//	bit 31      neither literal nor length nor distance, but
//	subtable    bits 8–11: log2 of its size; bits 16–30: its start
//	other       bits 8–11: 0; bit 16: end of block, else no such code
//
// The assembly knows this layout.
//
// Entries of two or three literals, where the codes are short enough, were
// tried: 3 % faster on few-valued data, where deflate finds matches instead of
// literals anyway, and no gain for the 7- and 8-bit codes of noisy floats, with
// an index of any size that fits the first-level cache.
const (
	takeMask = 63
	literal  = 1 << 6
	special  = 1 << 31

	endOfBlock = special | 1<<16
	noCode     = special

	litBits   = 11
	distBits  = 8
	clenBits  = 7
	maxLit    = 288 // symbols 286 and 287 have codes in the fixed table only
	maxDist   = 32  // likewise 30 and 31
	maxClen   = 19
	maxBits   = 15
	usableLit = 286
	usableDis = 30

	// A subtable for k more bits has at least k+1 codes, so a code costs at
	// most 2^k/(k+1) entries: 16/5 < 4 for k = 4, 128/8 = 16 for k = 7.
	litSize  = 1<<litBits + maxLit*4
	distSize = 1<<distBits + maxDist*16
)

// lengthBase and the rest are the tables of RFC 1951 section 3.2.5.
var (
	lengthBase  = [29]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthExtra = [29]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	distBase    = [30]uint16{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577}
	distExtra   = [30]uint8{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13}
	clenOrder   = [maxClen]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

	// An entry without its code: add n<<8 | n for a code of n bits, or n for a
	// literal.
	litEntry  [maxLit]uint32
	distEntry [maxDist]uint32
	clenEntry [maxClen]uint32
)

func init() {
	for s := range litEntry {
		switch {
		case s < 256:
			litEntry[s] = uint32(s)<<8 | literal
		case s == 256:
			litEntry[s] = endOfBlock
		case s < usableLit:
			litEntry[s] = uint32(lengthBase[s-257])<<16 | uint32(lengthExtra[s-257])
		default:
			litEntry[s] = noCode
		}
	}
	for s := range distEntry {
		distEntry[s] = noCode
		if s < usableDis {
			distEntry[s] = uint32(distBase[s])<<16 | uint32(distExtra[s])
		}
	}
	for s := range clenEntry {
		clenEntry[s] = uint32(s) << 16
	}
}

// subtable returns where the subtable begins that e points to and the mask of
// an index into it. The mask is 0 for an entry that points to none.
func subtable(e uint32) (start, mask uint64) {
	return uint64(e >> 16 & 0x7fff), 1<<(e>>8&15) - 1
}

// value returns the length or distance of e, with its extra bits from word,
// which still begins with the code.
func value(e uint32, word uint64) int {
	return int(e>>16) + int(word&(1<<(e&takeMask)-1)>>(e>>8&15))
}

// withCode completes the entry of a symbol whose code has n bits.
func withCode(e uint32, n int) uint32 {
	if e&(literal|special) != 0 {
		return e + uint32(n)
	}
	return e + uint32(n)<<8 + uint32(n)
}

// build makes the table of the canonical code in which symbol s has a code of
// lens[s] bits, none if 0. It reports whether the code is complete, or one of
// the two incomplete ones that deflate allows: a single code of one bit, or
// none. table has 1<<tableBits entries and room for the subtables.
func build(table []uint32, tableBits int, lens []uint8, entries []uint32) bool {
	var count [maxBits + 1]int
	for _, n := range lens {
		count[n&maxBits]++
	}
	count[0] = 0
	var first [maxBits + 2]int
	left, used := 1<<maxBits, 0
	for n := 1; n <= maxBits; n++ {
		first[n+1] = first[n] + count[n]
		left -= count[n] << (maxBits - n)
		used += count[n]
	}
	if left != 0 {
		if left < 0 || used > 1 || used != count[1] {
			return false
		}
		for i := range table[:1<<tableBits] {
			table[i] = noCode | 1
		}
		if used == 0 {
			return true
		}
	}

	// Symbols in the order of their codes.
	var sorted [maxLit]uint16
	next := first
	for s, n := range lens {
		if n != 0 {
			sorted[next[n]] = uint16(s)
			next[n]++
		}
	}
	if left != 0 {
		e := withCode(entries[sorted[0]], 1)
		for i := 0; i < 1<<tableBits; i += 2 {
			table[i] = e
		}
		return true
	}

	// The table grows with the length of codes: after codes of n bits, its first
	// 2^n entries are the pattern that longer indexes repeat.
	code, i := 0, 0 // code has its bits in the order of the stream
	n := 1
	for ; n <= tableBits && i < used; n++ {
		if n > 1 {
			copy(table[1<<(n-1):1<<n], table[:1<<(n-1)])
		}
		for range count[n] {
			table[code] = withCode(entries[sorted[i]], n)
			i++
			code = nextCode(code, n)
		}
	}
	for ; n <= tableBits; n++ {
		copy(table[1<<(n-1):1<<n], table[:1<<(n-1)])
	}
	if i < used {
		buildSub(table, tableBits, entries, sorted[i:used], &count, code, n)
	}
	return true
}

// buildSub adds the codes that are longer than tableBits: symbols in the order
// of their codes, the first of which is code, of n bits or more.
func buildSub(table []uint32, tableBits int, entries []uint32, symbols []uint16, count *[maxBits + 1]int, code, n int) {
	end := 1 << tableBits
	prefix, sub, size := -1, 0, 0
	left := count[n]
	for _, s := range symbols {
		for left == 0 {
			n++
			left = count[n]
		}
		if p := code & (1<<tableBits - 1); p != prefix {
			// As large as the codes that share the prefix need: all codes from here on are in
			// order, so the codes of n bits fill it, or longer codes do.
			prefix, sub = p, end
			k := n - tableBits
			for fill := left; fill < 1<<k; {
				k++
				fill = fill<<1 + count[tableBits+k]
			}
			size = 1 << k
			end += size
			table[p] = special | uint32(tableBits) | uint32(k)<<8 | uint32(sub)<<16
		}
		// In a subtable an entry takes the bits after the prefix.
		e := withCode(entries[s], n-tableBits)
		step := 1 << (n - tableBits)
		for i := sub + code>>tableBits; i < sub+size; i += step {
			table[i] = e
		}
		left--
		code = nextCode(code, n)
	}
}

// nextCode returns the code after code among the codes of n bits, bits reversed.
func nextCode(code, n int) int {
	// Add one at the high end: clear the ones from the top, set the next.
	free := ^code & (1<<n - 1)
	if free == 0 {
		return 0
	}
	top := 1 << (bits.Len(uint(free)) - 1)
	return code&(top-1) | top
}
