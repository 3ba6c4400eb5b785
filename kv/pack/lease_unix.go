//go:build unix && !aix

package pack

import (
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// LockShared takes a shared lock of an open file, which belongs to its descriptor and to the
// copies of that. It returns false if another process has an exclusive lock, or the file
// system has no locks.
func LockShared(f vfs.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil
}

// LockedElsewhere takes an exclusive lock of an open file, until it is closed, and reports
// whether another descriptor has a lock of the file. A file that cannot be locked cannot have
// been locked by [LockShared].
func LockedElsewhere(f vfs.File) (leased bool) {
	fd := f.Fd()
	return fd != vfs.InvalidFd && errors.Is(unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}
