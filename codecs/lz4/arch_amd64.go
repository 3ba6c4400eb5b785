//go:build amd64 && !noasm

package lz4

import "github.com/klauspost/cpuid/v2"

// maxArch is the most that is given to the assembly, which cannot be
// interrupted, in bytes: a few milliseconds.
const maxArch = 4 << 20

// hasDecode reports whether there is a decodeArch.
var hasDecode = cpuid.CPU.Supports(cpuid.AVX2)

// The routines do the work of encodeSmall and encodeLarge; tries is the number
// that a search begins with.

//go:noescape
func encodeSmallAMD64(w *writer, table *[1 << 13]uint16, tries int) bool

//go:noescape
func encodeLargeAMD64(w *writer, table *[1 << 12]uint32, tries int) bool

// encodeArch writes all sequences but the last, if it is the one to do it.
func (e *Encoder) encodeArch(w *writer, acceleration int) (done, ok bool) {
	switch {
	case w.size < smallFrom:
		return true, encodeSmallAMD64(w, &e.small, acceleration<<patience)
	case w.size <= maxArch:
		return true, encodeLargeAMD64(w, &e.large, acceleration<<patience)
	}
	return false, false
}

// decodeArch decodes sequences to dst[di:] and from src[si:], as the loop of sequences does. It
// stops before a sequence that is damaged, that has a length of more than one extra byte, or
// that is near an end, because decodeArch may read 80 bytes and write 64 bytes behind a
// sequence. The results are the positions of the sequence that decodeArch stopped at.
//
//go:noescape
func decodeArch(dst, src []byte, di, si int) (newDi, newSi int)
