//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || solaris)

package index

import (
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lockToRead is not known here, so that reading needs permission to write.
func lockToRead(_ vfs.File, name string) error {
	return &os.PathError{Op: "lock", Path: name, Err: os.ErrPermission}
}

func sharedBy(vfs.FS, string, error) (pid int, ok bool) { return 0, false }
