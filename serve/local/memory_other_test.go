//go:build !linux

package local

import (
	"os"
	"testing"
)

func sealed(t *testing.T, _ int64) (*os.File, func() []byte) {
	t.Fatal("no memory that can be sealed here")
	return nil, nil
}
