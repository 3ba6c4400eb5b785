//go:build !windows && (!unix || aix)

package dirkv

import (
	"errors"
	"os"
)

func openLocked(*os.Root, string, string) (*os.File, error) { return nil, errors.ErrUnsupported }
