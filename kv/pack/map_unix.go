//go:build unix

package pack

import (
	"math"
	"unsafe"

	"golang.org/x/sys/unix"
)

const canMap = true

// mapFile maps the first n bytes of a file.
func mapFile(fd uintptr, n int64) ([]byte, error) {
	if n > math.MaxInt {
		return nil, unix.ENOMEM
	}
	return unix.Mmap(int(fd), 0, int(n), unix.PROT_READ, unix.MAP_SHARED)
}

func unmap(b []byte) error { return unix.Munmap(b) }

// offsetIn returns the offset of an address in a map.
func offsetIn(b []byte, addr uintptr) (uint64, bool) {
	base := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return uint64(addr - base), addr >= base && addr-base < uintptr(len(b))
}
