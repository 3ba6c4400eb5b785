//go:build unix

package lz4

import (
	"math/rand/v2"
	"testing"

	"github.com/zarrdb/zarrdb/codecs/internal/bytestest"
)

// Behind the input is a page that must not be touched.
func TestReadsInputOnly(t *testing.T) {
	const size = 256 << 10
	b := bytestest.Guarded(t, size)
	var e Encoder
	r := rand.New(rand.NewPCG(12, 13))
	for i := range 120 {
		n := i
		if i >= 100 {
			n = 1 + r.IntN(size)
		}
		src := b[size-n : size : size]
		copy(src, mixed(r, n))
		same(t, &e, src, Bound(n), 1+i%5)
	}
}

// Behind the block and the output are pages that must not be touched.
func TestDecodeTouchesOnlyItsOwn(t *testing.T) {
	const size = 64 << 10
	in, out := bytestest.Guarded(t, size), bytestest.Guarded(t, size)
	var e Encoder
	r := rand.New(rand.NewPCG(14, 15))
	for i := range 2000 {
		n := 1 + r.IntN(400)
		if i%20 == 0 {
			n = 1 + r.IntN(size/2)
		}
		src := mixed(r, n)
		block := make([]byte, Bound(n))
		block = block[:e.Encode(block, src, 1)]
		b := in[size-len(block):]
		copy(b, block)
		for damaged := range 3 {
			if damaged > 0 {
				b[r.IntN(len(b))] = byte(r.Uint32())
			}
			_, _ = Decode(out[size-n:], b)
		}
	}
}
