//go:build unix

package local

import (
	"os"
	"syscall"
)

// canMap reports that descriptors can be sent, and files mapped.
const canMap = true

// mapFile maps the first n bytes of a file.
func mapFile(f *os.File, n int) (b []byte, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	failed := raw.Control(func(fd uintptr) {
		b, err = syscall.Mmap(int(fd), 0, n, syscall.PROT_READ, syscall.MAP_SHARED)
	})
	if failed != nil {
		return nil, failed
	}
	return b, err
}

func unmap(b []byte) error { return syscall.Munmap(b) }
