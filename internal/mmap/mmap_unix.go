//go:build unix

package mmap

import (
	"math"

	"golang.org/x/sys/unix"
)

// Supported reports that files can be mapped.
const Supported = true

// File maps the first n > 0 bytes of an open file for reading. The map outlives the
// descriptor; reading a page that is beyond the end of the file faults.
func File(fd uintptr, n int64) ([]byte, error) {
	if n > math.MaxInt {
		return nil, unix.ENOMEM
	}
	return unix.Mmap(int(fd), 0, int(n), unix.PROT_READ, unix.MAP_SHARED)
}

// Unmap ends a map of [File].
func Unmap(b []byte) error { return unix.Munmap(b) }
