//go:build !unix

package mmap

import "errors"

// Supported reports that files can be mapped.
const Supported = false

// File fails.
func File(uintptr, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

// Unmap does nothing.
func Unmap([]byte) error { return nil }
