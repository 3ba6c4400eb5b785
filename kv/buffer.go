package kv

import (
	"fmt"
	"math"
	"math/bits"
	"sync"
)

// Buffers for View are pooled by powers of two from 4 KiB to 64 MiB: a chunk
// is read into the same memory over and over, and the page faults of fresh
// memory cost more than the read itself. Larger ones are rare and left to the
// garbage collector.
const (
	minBufferBits = 12
	maxBufferBits = 26
)

var buffers [maxBufferBits - minBufferBits + 1]sync.Pool

// MaxHeld is the most bytes of a value that a view reads into memory in one
// piece. The length of a value is a claim: a sparse file of 8 TiB takes a few
// bytes on disk. Views compare it with MaxHeld before they reserve memory; see
// [CheckHeld]. By default, the reader of arrays reads at most 2 GiB of a chunk
// or shard whole.
const MaxHeld = min(4<<30, math.MaxInt)

// CheckHeld returns an error that is [ErrTooLarge] if n bytes of a value are more
// than a view may hold in memory in one piece.
func CheckHeld(n int64) error {
	if n > MaxHeld {
		return fmt.Errorf("%w: %d bytes, over the limit of %d for a value in memory", ErrTooLarge, n, int64(MaxHeld))
	}
	return nil
}

// borrow returns a buffer of n bytes with undefined contents. The caller returns
// it with giveBack.
func borrow(n int64) (*[]byte, error) {
	if err := CheckHeld(n); err != nil {
		return nil, err
	}
	class := max(bits.Len64(uint64(max(n, 1)-1)), minBufferBits)
	if class > maxBufferBits {
		b := make([]byte, n)
		return &b, nil
	}
	if p, ok := buffers[class-minBufferBits].Get().(*[]byte); ok {
		*p = (*p)[:n]
		return p, nil
	}
	b := make([]byte, 1<<class)[:n]
	return &b, nil
}

// giveBack returns a buffer to its pool. The caller must not use it any more.
func giveBack(p *[]byte) {
	class := bits.Len64(uint64(cap(*p))) - 1
	if cap(*p) == 1<<class && class >= minBufferBits && class <= maxBufferBits {
		buffers[class-minBufferBits].Put(p)
	}
}
