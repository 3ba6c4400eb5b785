//go:build !linux

package engine

// systemMemory returns the bytes of memory that the machine has, 0 if unknown.
func systemMemory() int64 { return 0 }
