//go:build unix && !aix

package pack

import (
	"errors"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// lockShared locks an open file together with others. False is no: somebody has
// the lock alone, or the file system has no locks.
func lockShared(f vfs.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil
}

// lockAlone locks an open file, until it is closed, and reports whether others
// have it. What cannot be locked cannot have been leased.
func lockAlone(f vfs.File) (leased bool) {
	fd := f.Fd()
	return fd != vfs.InvalidFd && errors.Is(unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// inode is the number of a file, 0 if it has none.
func inode(fi os.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}
