package scratch

import (
	"errors"
	"io"
	"math/bits"
	"slices"
	"sync"
)

// Buffer is a buffer from the pool. Get one with the length that is expected,
// use B[:0] with append, store the result in B, and put it back.
type Buffer struct{ B []byte }

// Buffers are pooled by size class: powers of two from 4 KiB to 64 MiB. Larger
// ones are left to the garbage collector, which also empties the pools.
const (
	minClass = 12
	maxClass = 26
)

var pools [maxClass - minClass + 1]sync.Pool

// Write appends p, for compressors that write to an [io.Writer].
func (s *Buffer) Write(p []byte) (int, error) {
	s.B = append(s.B, p...)
	return len(p), nil
}

// Get returns an empty buffer with room for n bytes. It belongs to the caller
// until Put.
func Get(n int64) *Buffer {
	class := max(0, bits.Len64(uint64(max(n, 1)-1))-minClass)
	if class >= len(pools) {
		return &Buffer{B: make([]byte, 0, n)}
	}
	if s, ok := pools[class].Get().(*Buffer); ok {
		s.B = s.B[:0]
		return s
	}
	return &Buffer{B: make([]byte, 0, 1<<(class+minClass))}
}

// Put gives the buffer back; B may have grown in the meantime. A nil Buffer is
// fine.
func (s *Buffer) Put() {
	if s == nil {
		return
	}
	// The largest class that it can serve in full.
	class := bits.Len(uint(cap(s.B))) - 1 - minClass
	if class >= 0 && class < len(pools) {
		pools[class].Put(s)
	}
}

// Grow returns b with room for n more bytes and little more, while append would
// round up.
func Grow(b []byte, n int64) []byte {
	if int64(cap(b)-len(b)) >= n {
		return b
	}
	if len(b) == 0 {
		return make([]byte, 0, n)
	}
	return slices.Grow(b, int(n))
}

// Room returns b with room for the n bytes that an encoded value of src bytes
// should decode to. It trusts the size in the metadata only up to a limit: a
// decoder that produces more grows b itself.
func Room(b []byte, n int64, src int) []byte {
	return Grow(b, min(n, 64<<20+1100*int64(src)))
}

// ErrLimit means that a reader has more bytes than allowed.
var ErrLimit = errors.New("too many bytes")

// ReadAll appends the bytes of r to dst, which may move; about hint are expected. More than
// limit are [ErrLimit]; other errors come from r.
func ReadAll(dst []byte, r io.Reader, limit, hint int64) ([]byte, error) {
	start := len(dst)
	dst = Grow(dst, min(limit, max(hint, 512)))
	for {
		have := int64(len(dst) - start)
		if len(dst) == cap(dst) && have < limit {
			dst = Grow(dst, min(limit-have, max(have, 512)))
		}
		room := dst[len(dst):min(int64(cap(dst)), int64(start)+limit)]
		full := len(room) == 0
		if full {
			// Any further byte is beyond the limit.
			room = make([]byte, 1)
		}
		n, err := r.Read(room)
		if full && n > 0 {
			return dst, ErrLimit
		}
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
}
