package pack

import (
	"errors"
	"syscall"

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

// punchHole gives back the blocks of a range, which then reads as zeros.
func punchHole(f vfs.File, off, n int64) error {
	fd := f.Fd()
	if fd == vfs.InvalidFd {
		return errors.ErrUnsupported
	}
	err := unix.Fallocate(int(fd), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}

// links is how many names a file has, 1 if nobody can tell.
func links(f vfs.File) uint64 {
	var st unix.Stat_t
	if fd := f.Fd(); fd == vfs.InvalidFd || unix.Fstat(int(fd), &st) != nil {
		return 1
	}
	return uint64(st.Nlink)
}

// allocated is what the blocks of a file take.
func allocated(fi vfs.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Blocks) * 512
	}
	return uint64(fi.Size())
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
