//go:build !linux

package local

import (
	"errors"
	"os"
)

const canShare = false

func mapSealed(*os.File, int64) ([]byte, error) { return nil, errors.ErrUnsupported }
