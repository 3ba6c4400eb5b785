//go:build !windows

// Package osfs is the file system of the operating system, for stores that remove and
// replace files which they or others have open.
package osfs

import (
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// FS is the file system of the operating system. A file that is open can be removed
// and replaced: its name is free at once, and open files read the old bytes.
var FS = forRoot(vfs.Default)

// InUse reports whether a file was not removed or replaced because it is open. Here it
// never is.
func InUse(error) bool { return false }

// OnDisk returns the device and the number of a file, and the bytes of its blocks. Of a
// file of another file system it returns 0, 0, and its size.
func OnDisk(fi os.FileInfo) (device, number uint64, bytes int64) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, fi.Size()
	}
	return uint64(st.Dev), uint64(st.Ino), int64(st.Blocks) * 512
}

// Links returns the number of names of a file, 1 if unknown.
func Links(f vfs.File) uint64 {
	var st unix.Stat_t
	if fd := f.Fd(); fd == vfs.InvalidFd || unix.Fstat(int(fd), &st) != nil {
		return 1
	}
	return uint64(st.Nlink)
}
