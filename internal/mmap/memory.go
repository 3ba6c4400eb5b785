package mmap

import (
	"math"
	"strings"
	"unsafe"
)

const (
	// hugePage is the size of huge pages on most machines. Where they are larger, advice
	// for whole ones of this size is right too.
	hugePage = 2 << 20
	// hugeFrom is the size from which memory is put on huge pages. NumPy has the same bound.
	hugeFrom = 4 << 20
	// clearFrom is the size from which clearing memory costs more than the detour of Make.
	clearFrom = 64 << 10
)

// Make returns memory for n elements that will all be written: it holds anything. T has no
// pointers. Clearing 1 GiB takes a third of the time in which a read fills it.
func Make[T any](n int) []T {
	size := int(unsafe.Sizeof(*new(T)))
	if n < clearFrom && n*size < clearFrom || size == 0 || n > math.MaxInt/size {
		return make([]T, n)
	}
	// The memory of a strings.Builder is not cleared, and is aligned to pages from this size on.
	var b strings.Builder
	b.Grow(n * size)
	b.WriteByte(0) // an empty string may point elsewhere
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.StringData(b.String()))), n)
}

// PreferHuge asks the system for huge pages for the part of b that has not been touched yet, if b
// is large. Memory is then populated with a fault in 2 MiB and not in 4 KiB, by the goroutines that
// write first to it. Pages that b shares with other memory are left alone.
func PreferHuge(b []byte) {
	if len(b) < hugeFrom {
		return
	}
	if from, to := inside(uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))); from < to {
		preferHuge(b[from:to])
	}
}

// inside returns the part of n bytes at an address that consists of whole huge pages, as
// offsets. It is empty if from is not below to.
func inside(at, n uintptr) (from, to uintptr) {
	from = -at & (hugePage - 1)
	return from, max(n-min(n, (at+n)&(hugePage-1)), from)
}
