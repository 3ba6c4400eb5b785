//go:build !unix

package local

import (
	"errors"
	"os"
)

const canMap = false

func mapFile(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmap([]byte) error { return nil }
