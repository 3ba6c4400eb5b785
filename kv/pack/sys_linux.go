package pack

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// mapAhead says that a map may be longer than its file, and shows what is
// written later.
const mapAhead = true

// startWriting asks the kernel to begin writing a range to disk. It promises
// nothing; errors show at the next sync.
func startWriting(f vfs.File, off, n int64) {
	if fd := f.Fd(); fd != vfs.InvalidFd {
		_ = unix.SyncFileRange(int(fd), off, n, unix.SYNC_FILE_RANGE_WRITE)
	}
}

// trim gives back blocks behind the end of the file. It keeps the size.
func trim(f vfs.File) {
	fd := f.Fd()
	if fd == vfs.InvalidFd {
		return
	}
	if fi, err := f.Stat(); err == nil {
		_ = unix.Ftruncate(int(fd), fi.Size())
	}
}
