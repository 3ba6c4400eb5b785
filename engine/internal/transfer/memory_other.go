//go:build !linux

package transfer

// SystemMemory returns the bytes of memory that the machine has, 0 if unknown.
func SystemMemory() int64 { return 0 }
