//go:build unix

package lz4

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
)

// Behind the input is a page that must not be touched.
func TestReadsInputOnly(t *testing.T) {
	const size = 256 << 10
	b, err := syscall.Mmap(-1, 0, size+os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Skip(err)
	}
	defer syscall.Munmap(b)
	if err := syscall.Mprotect(b[size:], syscall.PROT_NONE); err != nil {
		t.Skip(err)
	}
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
