package kv

import (
	"errors"
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

var errTooLarge = errors.New("kv: value does not fit into memory")

// borrow returns a buffer of n bytes with any contents, to be given back.
func borrow(n int64) (*[]byte, error) {
	if n > math.MaxInt {
		return nil, errTooLarge
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

// giveBack returns a buffer that nobody reads any more.
func giveBack(p *[]byte) {
	class := bits.Len64(uint64(cap(*p))) - 1
	if cap(*p) == 1<<class && class >= minBufferBits && class <= maxBufferBits {
		buffers[class-minBufferBits].Put(p)
	}
}
