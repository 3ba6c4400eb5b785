//go:build amd64 && !noasm

package zstd

import (
	"unsafe"

	"github.com/klauspost/cpuid/v2"
)

// hasReplay reports whether there is a replayArch.
var hasReplay = cpuid.CPU.Supports(cpuid.BMI2, cpuid.SSSE3)

// state is the state in which searchAMD64 begins and ends. seqs and literals
// point to where the next ones go; there is room for a sequence every four bytes,
// and for spareLiterals more than the block has.
type state struct {
	src              unsafe.Pointer
	long, short      *[1 << tableLog]uint32
	shift            uint
	ip, last, anchor int
	d1, d2           int
	seqs, literals   unsafe.Pointer
}

// searchAMD64 is searchGeneric in assembly. The runtime cannot preempt it, so a
// call searches one block only.
//
//go:noescape
func searchAMD64(s *state)

// searchArch is searchGeneric.
func (e *Encoder) searchArch(src []byte, from int) (anchor int) {
	f := &e.find
	seqs, literals := unsafe.Pointer(unsafe.SliceData(e.seqs)), unsafe.Pointer(unsafe.SliceData(e.literals))
	s := state{
		src: unsafe.Pointer(unsafe.SliceData(src)), long: &f.long, short: &f.short, shift: 32 - f.log,
		ip: max(from, 1), last: len(src) - blockTail, anchor: from,
		d1: int(f.recent[0]), d2: int(f.recent[1]), seqs: seqs, literals: literals,
	}
	searchAMD64(&s)
	f.recent = [2]uint32{uint32(s.d1), uint32(s.d2)}
	e.seqs = e.seqs[:(uintptr(s.seqs)-uintptr(seqs))/unsafe.Sizeof(sequence{})]
	e.literals = e.literals[:uintptr(s.literals)-uintptr(literals)]
	return s.anchor
}

// cursor is where replayBMI2 begins and ends, and the memory that it may use: the literals up to
// litsEnd, and the contents from base on, room bytes. left is the number of sequences.
type cursor struct {
	bits          unsafe.Pointer
	unread, left  int
	out, base     unsafe.Pointer
	room          int
	lits, litsEnd unsafe.Pointer
}

// overrun is how many bytes behind the literals replayBMI2 may read, and how many behind the
// contents it may write.
const overrun = 16

// replayBMI2 does the work of step for all sequences of a block but the last. It stops before
// a sequence that needs more checks than usual.
//
//go:noescape
func replayBMI2(r *replay, c *cursor)

// replayArch does at most n sequences and returns how many.
func (r *replay) replayArch(n int) int {
	end := min(r.end, cap(r.out)-overrun)
	if n <= 0 || end <= len(r.out) || cap(r.lits)-len(r.lits) < overrun {
		return 0
	}
	out, lits := unsafe.Pointer(unsafe.SliceData(r.out)), unsafe.Pointer(unsafe.SliceData(r.lits))
	c := cursor{
		bits: unsafe.Pointer(unsafe.SliceData(r.bits)), unread: r.unread, left: n,
		out: unsafe.Add(out, len(r.out)), base: unsafe.Add(out, r.base), room: end - r.base,
		lits: lits, litsEnd: unsafe.Add(lits, len(r.lits)),
	}
	replayBMI2(r, &c)
	r.unread = c.unread
	r.out = r.out[:uintptr(c.out)-uintptr(out)]
	r.lits = r.lits[uintptr(c.lits)-uintptr(lits):]
	return n - c.left
}
