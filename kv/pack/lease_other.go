//go:build !unix || aix

package pack

import (
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func lockShared(vfs.File) bool { return false }

func lockAlone(vfs.File) (leased bool) { return false }

func inode(os.FileInfo) uint64 { return 0 }
