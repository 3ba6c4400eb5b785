//go:build unix

package index

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

// identify returns the identity of a file without opening it.
func identify(path string) (fileID, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return fileID{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return fileID{uint64(st.Dev), st.Ino}, nil //nolint:unconvert // 32 bits on some systems
}

// lockFileID returns the identity of the lock file at path, which is made if it is
// missing. No process locks the new file, so that closing it releases no lock.
func lockFileID(path string) fileID {
	id, err := identify(path)
	if err == nil {
		return id
	}
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666); err == nil {
		osfs.Give(f.Fd(), path)
		_ = f.Close()
	}
	id, _ = identify(path)
	return id
}
