//go:build !unix || aix

package pack

import (
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// LockShared returns false: files have no such locks here.
func LockShared(vfs.File) bool { return false }

// LockedElsewhere returns false: files have no such locks here.
func LockedElsewhere(vfs.File) (leased bool) { return false }

func inode(os.FileInfo) uint64 { return 0 }
