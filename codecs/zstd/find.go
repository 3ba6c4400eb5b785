package zstd

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"
)

const (
	// Tables have 1<<tableLog places at most.
	tableLog = 17
	// Matches begin early enough before the end of a block that whole words can
	// be loaded.
	blockTail = 16
	// shortest is the least length of a match.
	shortest = 4
	// spareLiterals is the number of bytes copied beyond the end of a run of
	// literals.
	spareLiterals = 32
	// After 1<<patience bytes without a match the steps get longer by one.
	patience = 8
)

// finder finds matches: for each position the last one that began with the same
// eight bytes, and the last one that began with the same four or five.
type finder struct {
	long, short [1 << tableLog]uint32
	log         uint      // of the used length of the tables
	recent      [2]uint32 // distances of the last matches
}

// reset clears the tables for an input of n bytes.
func (f *finder) reset(n int) {
	// Clearing them must cost little compared with the search.
	f.log = tableLog
	if n <= blockBytes {
		f.log = uint(min(bits.Len(uint(n)), tableLog-1))
	}
	clear(f.long[:1<<f.log])
	clear(f.short[:1<<f.log])
	f.recent = [2]uint32{1, 4}
}

func load32(p unsafe.Pointer, i int) uint32 {
	return binary.LittleEndian.Uint32((*[4]byte)(unsafe.Add(p, i))[:])
}

func load64(p unsafe.Pointer, i int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, i))[:])
}

// hashLong is of eight bytes, hashShort of four; shift is 32 less the logarithm
// of the size of the table.
func hashLong(v uint64, shift uint) uint32 {
	return uint32(v*0xcf1bbcdcb7a56463>>32) >> (shift & 31) & (1<<tableLog - 1)
}

func hashShort(v uint64, shift uint) uint32 {
	return uint32(v) * 2654435761 >> (shift & 31) & (1<<tableLog - 1)
}

// search fills e.seqs and e.literals with the block that begins at from and ends
// where src ends.
func (e *Encoder) search(src []byte, from int) {
	n := len(src) - from
	e.seqs = slices.Grow(e.seqs[:0], n/shortest+1)
	e.literals = slices.Grow(e.literals[:0], n+spareLiterals)
	anchor := from
	if e.plain {
		anchor = e.searchGeneric(src, from)
	} else {
		anchor = e.searchArch(src, from)
	}
	e.literals = append(e.literals, src[anchor:]...)
}

// searchGeneric is search without the literals behind the last match. It returns the position
// of these literals. The caller has made room for all sequences.
func (e *Encoder) searchGeneric(src []byte, from int) (anchor int) {
	f := &e.find
	p := unsafe.Pointer(unsafe.SliceData(src))
	anchor = from
	ip, last := max(from, 1), len(src)-blockTail
	d1, d2 := int(f.recent[0]), int(f.recent[1])
	shift := 32 - f.log
	for ip < last {
		v := load64(p, ip)
		hl, hs := hashLong(v, shift), hashShort(v, shift)
		m, ms := int(f.long[hl]), int(f.short[hs])
		f.long[hl], f.short[hs] = uint32(ip), uint32(ip)
		at := ip
		if load32(p, ip+1-d1) == uint32(v>>8) {
			ip++
			n := 4 + forwards(p, ip+4, ip+4-d1, len(src))
			e.add(src, anchor, ip, n, 1)
			ip += n
		} else {
			switch {
			case load64(p, m) == v:
			case load32(p, ms) == uint32(v):
				// Perhaps a long match begins one later.
				w := load64(p, ip+1)
				hl = hashLong(w, shift)
				m = int(f.long[hl])
				f.long[hl] = uint32(ip + 1)
				if load64(p, m) == w {
					ip++
				} else {
					m = ms
				}
			default:
				ip += (ip-anchor)>>patience + 1
				continue
			}
			n := 4 + forwards(p, ip+4, m+4, len(src))
			back := backwards(p, ip, m, anchor)
			d2, d1 = d1, ip-m
			e.add(src, anchor, ip-back, n+back, uint32(d1+minMatch))
			ip += n
		}
		anchor = ip
		if ip >= last {
			break
		}
		// Some of the positions that were skipped.
		v = load64(p, at+2)
		f.long[hashLong(v, shift)], f.short[hashShort(v, shift)] = uint32(at+2), uint32(at+2)
		f.long[hashLong(load64(p, ip-2), shift)] = uint32(ip - 2)
		f.short[hashShort(load64(p, ip-1), shift)] = uint32(ip - 1)
		for ip < last {
			v = load64(p, ip)
			if load32(p, ip-d2) != uint32(v) {
				break
			}
			n := 4 + forwards(p, ip+4, ip+4-d2, len(src))
			f.long[hashLong(v, shift)], f.short[hashShort(v, shift)] = uint32(ip), uint32(ip)
			d1, d2 = d2, d1
			e.add(src, anchor, ip, n, 1)
			ip += n
			anchor = ip
		}
	}
	f.recent = [2]uint32{uint32(d1), uint32(d2)}
	return anchor
}

// add notes a match of n bytes at ip after the literals from anchor on.
func (e *Encoder) add(src []byte, anchor, ip, n int, offset uint32) {
	lits := ip - anchor
	e.seqs = append(e.seqs, sequence{uint32(lits), uint32(n), offset})
	at := len(e.literals)
	if lits <= spareLiterals && anchor+spareLiterals <= len(src) {
		*(*[spareLiterals]byte)(e.literals[at : at+spareLiterals : cap(e.literals)]) = *(*[spareLiterals]byte)(src[anchor:])
		e.literals = e.literals[:at+lits]
		return
	}
	e.literals = append(e.literals, src[anchor:ip]...)
}

// backwards returns by how many bytes a match of ip with m can be extended to
// the front.
func backwards(p unsafe.Pointer, ip, m, anchor int) int {
	n := 0
	for most := min(ip-anchor, m); n < most && *(*byte)(unsafe.Add(p, ip-n-1)) == *(*byte)(unsafe.Add(p, m-n-1)); {
		n++
	}
	return n
}

// forwards returns the length of the common bytes from ip, up to end, and from m
// on.
func forwards(p unsafe.Pointer, ip, m, end int) int {
	start := ip
	for ; ip+8 <= end; ip, m = ip+8, m+8 {
		if d := load64(p, ip) ^ load64(p, m); d != 0 {
			return ip - start + bits.TrailingZeros64(d)>>3
		}
	}
	for ip < end && *(*byte)(unsafe.Add(p, ip)) == *(*byte)(unsafe.Add(p, m)) {
		ip++
		m++
	}
	return ip - start
}
