//go:build !unix

package pack

import "errors"

const canMap = false

func mapFile(uintptr, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmap([]byte) error { return nil }

func offsetIn([]byte, uintptr) (uint64, bool) { return 0, false }
