//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd || solaris

package index

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lockToRead locks a file that is open, until it is closed. The error is a bare
// error number if a writer has locked it.
func lockToRead(f vfs.File, name string) error {
	fd := f.Fd()
	if fd == vfs.InvalidFd { // not a file of the operating system
		return &os.PathError{Op: "lock", Path: name, Err: syscall.EACCES}
	}
	err := syscall.FcntlFlock(fd, syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart})
	if err == nil || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return err
	}
	return &os.PathError{Op: "lock", Path: name, Err: err}
}

// sharedBy reports whether a process that has locked a file for reading is why this one could
// not lock it for writing with the error held. pid is that process, 0 if it has none here. This
// process has no lock of the file: it would lose it.
func sharedBy(fs vfs.FS, name string, held error) (pid int, ok bool) {
	var no syscall.Errno
	if !errors.As(held, &no) {
		return 0, false
	}
	f, err := fs.Open(name)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if f.Fd() == vfs.InvalidFd || syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &l) != nil || l.Type != syscall.F_RDLCK {
		return 0, false
	}
	return max(int(l.Pid), 0), true
}
