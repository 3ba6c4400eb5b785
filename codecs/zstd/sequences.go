package zstd

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// sequence is some literals and a match that follows them.
type sequence struct {
	literals uint32
	match    uint32
	// offset is the distance plus 3, or 1 for one that was used lately (RFC 8878,
	// section 3.1.1.5).
	offset uint32
}

// Codes of lengths (section 3.1.1.3.2.1.1): the least value of each code, and the
// code of small values.
var (
	literalBase = [...]uint32{
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 28, 32, 40, 48, 64,
		128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536,
	}
	literalBits = [...]uint8{
		16: 1, 17: 1, 18: 1, 19: 1, 20: 2, 21: 2, 22: 3, 23: 3, 24: 4, 25: 6,
		26: 7, 27: 8, 28: 9, 29: 10, 30: 11, 31: 12, 32: 13, 33: 14, 34: 15, 35: 16,
	}
	// Match lengths count from the shortest match.
	matchBase = [...]uint32{
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
		32, 34, 36, 38, 40, 44, 48, 56, 64, 80, 96, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536,
	}
	matchBits = [...]uint8{
		32: 1, 33: 1, 34: 1, 35: 1, 36: 2, 37: 2, 38: 3, 39: 3, 40: 4, 41: 4, 42: 5,
		43: 7, 44: 8, 45: 9, 46: 10, 47: 11, 48: 12, 49: 13, 50: 14, 51: 15, 52: 16,
	}
	literalSmall = smallCodes(literalBase[:], 64)
	matchSmall   = smallCodes(matchBase[:], 128)
)

func smallCodes(base []uint32, n int) []byte {
	codes := make([]byte, n)
	for v := range codes {
		i, found := slices.BinarySearch(base, uint32(v))
		if !found {
			i--
		}
		codes[v] = byte(i)
	}
	return codes
}

func literalCode(v uint32) byte {
	if v < 64 {
		return literalSmall[v]
	}
	return byte(bits.Len32(v)) + 18
}

func matchCode(v uint32) byte {
	if v < 128 {
		return matchSmall[v]
	}
	return byte(bits.Len32(v)) + 35
}

const minMatch = 3 // of the format

// Predefined distributions (section 3.1.1.3.2.2).
var (
	literalDefault = field{log: 6, maxLog: 9, norm: []int16{4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1}}
	offsetDefault  = field{log: 5, maxLog: 8, norm: []int16{1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1}}
	matchDefault   = field{log: 6, maxLog: 9, norm: []int16{1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1}}
)

// field has the constants of one of the three parts of a sequence.
type field struct {
	log, maxLog uint
	norm        []int16
	table       table
}

func init() {
	for _, f := range []*field{&literalDefault, &offsetDefault, &matchDefault} {
		f.table.build(f.norm, f.log)
	}
}

// Modes of a table.
const (
	modeDefault = iota
	modeSingle
	modeOwn
)

// code has the codes of a sequence, and the bits that they leave open: 16 for literals, 16 for
// the match and less than 24 for the distance, as MaxBytes is 8 MiB.
type code struct {
	open                          uint64
	bits, literals, offset, match uint8
}

// codes has one of the three parts of all sequences of a block.
type codes struct {
	counts [64]uint32
	own    table
	table  *table
}

// choose picks the smallest table for n sequences, appends its description and returns its mode.
func (c *codes) choose(dst []byte, n int, f *field) (_ []byte, mode byte) {
	last, kinds := 0, 0
	for s, k := range c.counts {
		if k > 0 {
			last = s
			kinds++
		}
	}
	c.table = &c.own
	if kinds == 1 {
		c.own.single(byte(last))
		return append(dst, byte(last)), modeSingle
	}
	counts := c.counts[:last+1]
	// More states than the counts justify cost more than they save.
	log := min(f.maxLog, uint(max(bits.Len(uint(n-1))-2, 5)))
	log = max(log, uint(bits.Len(uint(kinds)))+1)
	var norm [maxSymbols]int16
	normalize(norm[:last+1], counts, n, log)
	start := len(dst)
	dst = appendDistribution(dst, norm[:last+1], log)
	own := cost(norm[:last+1], counts, log) + float64(8*(len(dst)-start))
	if cost(f.norm, counts, f.log) <= own {
		c.table = &f.table
		return dst[:start], modeDefault
	}
	c.own.build(norm[:last+1], log)
	return dst, modeOwn
}

// appendSequences writes the sequences section of a block (section 3.1.1.3.2).
func (e *Encoder) appendSequences(dst []byte) []byte {
	seqs := e.seqs
	switch n := len(seqs); {
	case n < 128:
		dst = append(dst, byte(n))
	case n < 0x7f00:
		dst = append(dst, byte(n>>8)+128, byte(n))
	default:
		dst = append(dst, 255, byte(n-0x7f00), byte((n-0x7f00)>>8))
	}
	if len(seqs) == 0 {
		return dst
	}
	lits, offs, matches := &e.lits, &e.offs, &e.matches
	clear(lits.counts[:])
	clear(offs.counts[:])
	clear(matches.counts[:])
	e.codes = slices.Grow(e.codes[:0], len(seqs))[:len(seqs)]
	for i := range seqs {
		s, c := &seqs[i], &e.codes[i]
		l, o, m := literalCode(s.literals)&63, byte(bits.Len32(s.offset)-1)&31, matchCode(s.match-minMatch)&63
		lits.counts[l]++
		offs.counts[o]++
		matches.counts[m]++
		open, n := uint64(s.offset&^(1<<o)), o
		if m >= firstOpenMatch {
			open, n = open<<(matchBits[m]&31)|uint64(s.match-minMatch-matchBase[m]), n+matchBits[m]
		}
		if l >= firstOpenLiterals {
			open, n = open<<(literalBits[l]&31)|uint64(s.literals-literalBase[l]), n+literalBits[l]
		}
		c.open, c.bits, c.literals, c.offset, c.match = open, n, l, o, m // one by one: not by way of the stack
	}
	at := len(dst)
	dst = append(dst, 0)
	var ml, mo, mm byte
	dst, ml = lits.choose(dst, len(seqs), &literalDefault)
	dst, mo = offs.choose(dst, len(seqs), &offsetDefault)
	dst, mm = matches.choose(dst, len(seqs), &matchDefault)
	dst[at] = ml<<6 | mo<<4 | mm<<2
	return e.appendBits(dst)
}

// The first codes that leave bits open.
const (
	firstOpenLiterals = 16
	firstOpenMatch    = 32
)

// appendBits writes the codes of the sequences, last sequence first, with the
// bits that the codes leave open between them.
func (e *Encoder) appendBits(dst []byte) []byte {
	lt, ot, mt := e.lits.table, e.offs.table, e.matches.table
	// A sequence takes 81 bits at most.
	dst = slices.Grow(dst, 11*len(e.codes)+16)
	out, at := dst[:cap(dst)], len(dst)
	var b uint64
	var n uint

	i := len(e.codes) - 1
	c := &e.codes[i]
	sl, so, sm := lt.first(c.literals), ot.first(c.offset), mt.first(c.match)
	for {
		if n+uint(c.bits) > 64 {
			binary.LittleEndian.PutUint64(out[at:], b)
			at += int(n >> 3)
			b >>= n &^ 7 & 63
			n &= 7
		}
		b |= c.open << (n & 63)
		n += uint(c.bits)
		binary.LittleEndian.PutUint64(out[at:], b)
		at += int(n >> 3)
		b = b >> (n &^ 7 & 63) & (1<<(n&7) - 1) // n may be 64
		n &= 7
		i--
		if i < 0 {
			break
		}
		c = &e.codes[i]
		o, ko := ot.next(so, c.offset)
		m, km := mt.next(sm, c.match)
		l, kl := lt.next(sl, c.literals)
		left := uint64(so&(1<<ko-1)) | uint64(sm&(1<<km-1))<<ko | uint64(sl&(1<<kl-1))<<(ko+km)
		b |= left << n
		n += uint(ko + km + kl)
		so, sm, sl = o, m, l
	}
	w := bitWriter{dst: dst[:at], bits: b, n: n}
	w.add(uint64(sm)&(1<<mt.log-1), mt.log)
	w.add(uint64(so)&(1<<ot.log-1), ot.log)
	w.add(uint64(sl)&(1<<lt.log-1), lt.log)
	w.add(1, 1) // where the reader begins
	w.n += 7 - (w.n+7)%8
	w.flush()
	return w.dst
}
