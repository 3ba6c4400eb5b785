//go:build !linux

package main

import "os"

// memory returns n bytes.
func memory(n int) ([]byte, error) { return make([]byte, n), nil }

// release gives back what memory returned.
func release([]byte) error { return nil }

// resident is 0: the memory of the process is not known here.
func resident() int64 { return 0 }

// mapped returns the first n bytes of a file.
func mapped(name string, n int) (data []byte, end func()) {
	data = must(os.ReadFile(name))
	return data[:n], func() {}
}

// private is 0: the memory of other processes is not known here.
func private(int) int64 { return 0 }
