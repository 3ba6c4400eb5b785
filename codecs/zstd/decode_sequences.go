package zstd

import (
	"encoding/binary"
	"math/bits"
)

// replay carries out the sequences of a block:
//
//	states ──values──▶ literals, match, distance ──▶ copy both to out
//	   ▲                                                │
//	   └──bits, from the end of the block backwards◀────┘ next sequence
//
// replayArch does most of them. It leaves a sequence alone if something about it is
// unusual: then step does it.
type replay struct {
	literals, matches, offsets states
	recent                     [3]uint32 // distances, the last one first

	bits   []byte // of the sequences
	unread int    // number of unread bits
	// The states of the three tables.
	literal, match, offset uint32

	out   []byte // up to where it is filled; cap(out) bounds writing
	base  int    // where the frame begins in out
	end   int    // where the block ends at the latest
	lits  []byte // that are left; there are slack bytes behind them
	plain bool   // no assembly
}

// begin is for a new frame.
func (r *replay) begin() {
	r.literals.known, r.matches.known, r.offsets.known = false, false, false
	r.recent = [3]uint32{1, 4, 8}
}

// readTables reads the tables of a block, and returns the bits of its sequences.
func (r *replay) readTables(src []byte) ([]byte, bool) {
	if len(src) < 1 || src[0]&3 != 0 {
		return nil, false
	}
	kinds, src := src[0], src[1:]
	src, ok := r.literals.read(src, kinds>>6, literalAlphabet)
	if ok {
		src, ok = r.offsets.read(src, kinds>>4&3, offsetAlphabet)
	}
	if ok {
		src, ok = r.matches.read(src, kinds>>2&3, matchAlphabet)
	}
	return src, ok
}

// open begins to read the bits of sequences.
func (r *replay) open(src []byte) bool {
	if len(src) == 0 || src[len(src)-1] == 0 {
		return false
	}
	r.bits = src
	r.unread = 8*len(src) - 9 + bits.Len8(src[len(src)-1])
	r.literal, r.offset, r.match = r.read(r.literals.log), r.read(r.offsets.log), r.read(r.matches.log)
	return r.unread >= 0
}

// read reads n bits, at most 32. There are fewer if unread is negative afterwards.
func (r *replay) read(n uint8) uint32 {
	r.unread -= int(n)
	if r.unread < 0 {
		return 0
	}
	from := r.unread >> 3
	var v uint64
	if from+8 <= len(r.bits) {
		v = binary.LittleEndian.Uint64(r.bits[from:])
	} else {
		var b [8]byte
		copy(b[:], r.bits[from:])
		v = binary.LittleEndian.Uint64(b[:])
	}
	return uint32(v >> (r.unread & 7) & (1<<n - 1))
}

// value reads the value that a state stands for.
func (r *replay) value(e entry) uint32 { return uint32(e>>32) + r.read(uint8(e>>8)) }

// next reads the state that follows the state of e.
func (r *replay) next(e entry) uint32 { return uint32(uint16(e>>16)) + r.read(uint8(e)) }

// run carries out n sequences and then appends the literals that are left. Together they are
// at most room bytes.
func (r *replay) run(out []byte, start, room int, literals []byte, n int) ([]byte, bool) {
	r.out, r.base, r.end, r.lits = out, start, len(out)+room, literals
	defer func() { r.out, r.lits, r.bits = nil, nil, nil }()
	for n > 0 {
		if !r.plain {
			n -= r.replayArch(n - 1) // the last one is followed by no states
		}
		if !r.step(n == 1) {
			return out, false
		}
		n--
	}
	if r.unread != 0 || len(r.lits) > r.end-len(r.out) {
		return out, false
	}
	return append(r.out, r.lits...), true
}

// step carries out one sequence.
func (r *replay) step(last bool) bool {
	ofs, mat, lit := r.offsets.entries[r.offset], r.matches.entries[r.match], r.literals.entries[r.literal]
	offset, match, literals := r.value(ofs), int(r.value(mat)), int(r.value(lit))
	if !last {
		r.literal, r.match, r.offset = r.next(lit), r.next(mat), r.next(ofs)
	}
	if r.unread < 0 || literals > len(r.lits) || literals+match > r.end-len(r.out) {
		return false
	}
	distance := int(r.distance(offset, ofs>>8&0xff < 2, literals == 0))
	r.out = append(r.out, r.lits[:literals]...)
	r.lits = r.lits[literals:]
	if distance == 0 || distance > len(r.out)-r.base {
		return false
	}
	for match > 0 { // source and destination may overlap
		n := min(match, distance)
		r.out = append(r.out, r.out[len(r.out)-distance:][:n]...)
		match -= n
		distance += n
	}
	return true
}

// distance returns the distance for which an offset stands (section 3.1.1.5). Offsets for
// recent distances mean other recent distances if there are no literals before the match.
func (r *replay) distance(offset uint32, lately, without bool) uint32 {
	d := &r.recent
	if !lately {
		*d = [3]uint32{offset, d[0], d[1]}
		return offset
	}
	if without {
		offset++
	}
	switch offset {
	case 0:
	case 1:
		*d = [3]uint32{d[1], d[0], d[2]}
	case 2:
		*d = [3]uint32{d[2], d[0], d[1]}
	default:
		*d = [3]uint32{d[0] - 1, d[0], d[1]}
	}
	return d[0]
}
