package pack

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// mapAhead means that a map may be longer than its file, and shows later writes.
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

// aheadStep is the largest readahead of one call: the kernel limits it to that
// of the device.
const aheadStep = 1 << 20

// readAhead asks the kernel for a range of a map, unless its end is in memory. It
// promises nothing.
func readAhead(data []byte, from, to uint64) {
	from &^= uint64(os.Getpagesize() - 1)
	to = min(to, uint64(len(data)))
	if from >= to {
		return
	}
	var there [1]byte
	last := unsafe.Pointer(&data[(to-1)&^uint64(os.Getpagesize()-1)])
	if _, _, err := unix.Syscall(unix.SYS_MINCORE, uintptr(last), 1, uintptr(unsafe.Pointer(&there[0]))); err != 0 || there[0]&1 != 0 {
		return
	}
	for ; from < to; from += aheadStep {
		_ = unix.Madvise(data[from:min(to, from+aheadStep)], unix.MADV_WILLNEED)
	}
}

// allocated returns the bytes of a file's blocks.
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
