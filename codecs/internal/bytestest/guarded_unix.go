//go:build unix

package bytestest

import (
	"os"
	"syscall"
	"testing"
)

// Guarded returns n bytes behind which lies a page that must not be touched: who
// does ends the test program. n is a multiple of the size of a page. They are
// valid until the test ends. The test is skipped where the system has no such
// memory to give.
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
