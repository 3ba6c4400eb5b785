//go:build !amd64 || noasm

package kernels

import "testing"

func eachArch(t *testing.T, f func(*testing.T)) { t.Run("generic", f) }
