//go:build amd64 && !noasm

package zstd

import "unsafe"

// state is what searchAMD64 begins with and ends with. seqs and literals point to
// where the next ones go; there is room for a sequence every four bytes, and for
// spareLiterals more than the block has.
type state struct {
	src              unsafe.Pointer
	long, short      *[1 << tableLog]uint32
	shift            uint
	ip, last, anchor int
	d1, d2           int
	seqs, literals   unsafe.Pointer
}

// searchAMD64 does what searchGeneric does. It is not interrupted, but has one
// block only.
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
