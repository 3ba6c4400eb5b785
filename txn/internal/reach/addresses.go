package reach

import (
	"sync"

	"github.com/zarrdb/zarrdb/kv/pack"
)

// AddressSet remembers payloads in a bit per 512 bytes of pack: two that are
// at least as long never begin in the same 512. Shorter ones are never
// remembered. The zero set is empty.
type AddressSet struct {
	mu      sync.Mutex
	regions map[addressRegion]*[addressWords]uint64
}

type addressRegion struct {
	pack pack.ID
	n    uint64
}

const (
	// addressSlot is the length from which on payloads are remembered.
	addressSlot  = 512
	addressWords = 128 // of a region: 4 MiB of pack
)

// Has reports whether a was added.
func (s *AddressSet) Has(a pack.Address) bool {
	slot := a.Offset / addressSlot
	s.mu.Lock()
	defer s.mu.Unlock()
	words := s.regions[addressRegion{a.Pack, slot / (64 * addressWords)}]
	return a.Length >= addressSlot && words != nil && words[slot/64%addressWords]&(1<<(slot%64)) != 0
}

// Add reports whether a was not there.
func (s *AddressSet) Add(a pack.Address) bool {
	if a.Length < addressSlot {
		return true
	}
	slot := a.Offset / addressSlot
	r := addressRegion{a.Pack, slot / (64 * addressWords)}
	i, bit := slot/64%addressWords, uint64(1)<<(slot%64)
	s.mu.Lock()
	defer s.mu.Unlock()
	words := s.regions[r]
	if words == nil {
		words = new([addressWords]uint64)
		if s.regions == nil {
			s.regions = map[addressRegion]*[addressWords]uint64{}
		}
		s.regions[r] = words
	}
	fresh := words[i]&bit == 0
	words[i] |= bit
	return fresh
}
