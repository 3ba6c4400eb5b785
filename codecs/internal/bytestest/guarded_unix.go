//go:build unix

package bytestest

import (
	"os"
	"syscall"
	"testing"
)

// Guarded returns n bytes followed by an inaccessible page: touching it ends the
// test program. n is a multiple of the page size. The bytes are valid until the
// test ends. The test is skipped if the system has no such memory.
func Guarded(t *testing.T, n int) []byte {
	t.Helper()
	b, err := syscall.Mmap(-1, 0, n+os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Skipf("no memory can be mapped: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(b) })
	if err := syscall.Mprotect(b[n:], syscall.PROT_NONE); err != nil {
		t.Skipf("no page can be guarded: %v", err)
	}
	return b[:n:n]
}
