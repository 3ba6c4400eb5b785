//go:build unix

package s3

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapped calls fn with the bytes of a file.
func mapped(f *os.File, size int64, fn func([]byte) error) error {
	if size == 0 {
		return fn(nil)
	}
	if int64(int(size)) != size {
		return fmt.Errorf("map %d bytes: they do not fit", size)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("map a temporary file: %w", err)
	}
	defer func() { _ = unix.Munmap(b) }()
	return fn(b)
}
