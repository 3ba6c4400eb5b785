//go:build !unix

// Package mmap maps files into memory, where the system can.
package mmap

import "errors"

const Supported = false

func File(uintptr, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

func Unmap([]byte) error { return nil }
