package pack

import "sync/atomic"

// seen remembers which blocks of a mapped file were compared with their checksums. It belongs to
// the map: a file that was rewritten, healed, imported into, got holes, or was given back and
// borrowed again has another map, whose blocks are all compared anew.
//
// A whole block is remembered in the slot of the 64 KiB of the file where it begins; no other whole
// block begins there. Shorter blocks share them, cost little, and are compared at every read. A
// slot has the place and the length of the payload, so that an address that is wrong finds nothing.
// It takes 8 bytes for 64 KiB of the map.
type seen []atomic.Uint64

func newSeen(length int64) seen { return make(seen, uint64(length)/blockSize+1) }

func (s seen) slot(at, length uint64) (*atomic.Uint64, uint64) {
	return &s[at/blockSize], (length*blockSize | at%blockSize) + 1
}

// has reports whether a block of n bytes at a place of the file, in a payload of that length, was
// compared.
func (s seen) has(at, n, length uint64) bool {
	if n < blockSize {
		return false
	}
	slot, mark := s.slot(at, length)
	return slot.Load() == mark
}

// add notes that a block is sound.
func (s seen) add(at, n, length uint64) {
	if n == blockSize {
		slot, mark := s.slot(at, length)
		slot.Store(mark)
	}
}

// forget has all blocks compared again: where one is damaged, others may be.
func (s seen) forget() {
	for i := range s {
		s[i].Store(0)
	}
}
