//go:build unix

package zstd

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
	d := decoder(t)
	r := rand.New(rand.NewPCG(12, 13))
	for i := range 120 {
		n := i
		if i >= 100 {
			n = 1 + r.IntN(size)
		}
		src := b[size-n : size : size]
		copy(src, mixed(r, n))
		check(t, d, &e, src)
	}
}
