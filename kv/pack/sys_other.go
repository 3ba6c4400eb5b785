//go:build !linux

package pack

import (
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const mapAhead = false

func startWriting(vfs.File, int64, int64) {}

func trim(vfs.File) {}

func punchHole(vfs.File, int64, int64) error { return errors.ErrUnsupported }

func hasData(vfs.File, uint64, uint64) bool { return false }

func allocated(fi vfs.FileInfo) uint64 { return uint64(fi.Size()) }

func inMemory([]byte, uint64, uint64) bool { return true }

func readAhead([]byte, uint64, uint64) {}

func readLarge(vfs.File, []byte, uint64, uint64, func() bool) {}
