package codecs

import (
	"math/bits"
	"slices"
	"sync"
)

// scratch is a buffer for the bytes between two stages. Get one with the
// length that is expected, use b[:0] with append, store the result in b, and
// put it back.
type scratch struct{ b []byte }

// Buffers are pooled by size class: powers of two from 4 KiB to 64 MiB. Larger
// ones are left to the garbage collector, which also empties the pools.
const (
	minScratch = 12
	maxScratch = 26
)

var scratchPools [maxScratch - minScratch + 1]sync.Pool

// getScratch returns an empty buffer with room for n bytes.
func getScratch(n int64) *scratch {
	class := max(0, bits.Len64(uint64(max(n, 1)-1))-minScratch)
	if class >= len(scratchPools) {
		return &scratch{b: make([]byte, 0, n)}
	}
	if s, ok := scratchPools[class].Get().(*scratch); ok {
		s.b = s.b[:0]
		return s
	}
	return &scratch{b: make([]byte, 0, 1<<(class+minScratch))}
}

// put gives the buffer back; it may have grown in the meantime. A nil scratch
// is fine.
func (s *scratch) put() {
	if s == nil {
		return
	}
	// The largest class that it can serve in full.
	class := bits.Len(uint(cap(s.b))) - 1 - minScratch
	if class >= 0 && class < len(scratchPools) {
		scratchPools[class].Put(s)
	}
}

// grow returns b with room for n more bytes and little more, while append would
// round up.
func grow(b []byte, n int64) []byte {
	if int64(cap(b)-len(b)) >= n {
		return b
	}
	if len(b) == 0 {
		return make([]byte, 0, n)
	}
	return slices.Grow(b, int(n))
}

// room returns b with room for the n bytes that an encoded value of length src
// should decode to. It trusts the size in the metadata only up to a limit: a
// decoder that produces more grows b itself.
func room(b []byte, n int64, src int) []byte {
	return grow(b, min(n, 64<<20+1100*int64(src)))
}
