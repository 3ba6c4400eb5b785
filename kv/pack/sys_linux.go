package pack

import (
	"errors"
	"os"
	"sync"
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

// hasData reports whether a range of a file takes space. Blocks that reach beyond the range do not count.
func hasData(f vfs.File, from, to uint64) bool {
	fd := f.Fd()
	var st unix.Stat_t
	if fd == vfs.InvalidFd || unix.Fstat(int(fd), &st) != nil {
		return false
	}
	block := max(uint64(st.Blksize), largeAlign) //nolint:unconvert // 32 bits on some systems
	from, to = (from+block-1)/block*block, to/block*block
	if from >= to {
		return false
	}
	at, err := unix.Seek(int(fd), int64(from), unix.SEEK_DATA)
	return err == nil && uint64(at) < to
}

const (
	// aheadStep is the largest readahead of one call: the kernel limits it to the
	// readahead of the device.
	aheadStep = 1 << 20
	// hugePage is the size of a large page on most systems.
	hugePage = 2 << 20
)

// inMemory reports whether the end of a range of a map is in memory, or cannot be.
func inMemory(data []byte, from, to uint64) bool {
	to = min(to, uint64(len(data)))
	if from >= to {
		return true
	}
	var there [1]byte
	last := unsafe.Pointer(&data[(to-1)&^uint64(os.Getpagesize()-1)])
	_, _, err := unix.Syscall(unix.SYS_MINCORE, uintptr(last), 1, uintptr(unsafe.Pointer(&there[0])))
	return err != 0 || there[0]&1 != 0
}

// readAhead asks the kernel for a range of a map, unless its end is in memory, and does not
// wait. It promises nothing.
func readAhead(data []byte, from, to uint64) {
	if inMemory(data, from, to) {
		return
	}
	from, to = from&^uint64(os.Getpagesize()-1), min(to, uint64(len(data)))
	for ; from < to; from += aheadStep {
		_ = unix.Madvise(data[from:min(to, from+aheadStep)], unix.MADV_WILLNEED)
	}
}

// readLarge reads a range of a mapped file into memory, and waits; it ends early when stop
// returns true. It sends the file to the null device, because the kernel reads ahead of a
// sender in large pages: requests to the disk then have some MiB, and so have page faults.
func readLarge(f vfs.File, data []byte, from, to uint64, stop func() bool) {
	if end := min(roundUp(to, hugePage), uint64(len(data))); from < end {
		_ = unix.Madvise(data[from&^(hugePage-1):end], unix.MADV_HUGEPAGE)
	}
	nowhere, err := nowhere()
	if err != nil || f.Fd() == vfs.InvalidFd {
		readAhead(data, from, to)
		return
	}
	for at := int64(from); at < int64(to) && !stop(); {
		n, err := unix.Sendfile(int(nowhere.Fd()), int(f.Fd()), &at, int(min(to-uint64(at), hugePage)))
		if err != nil && err != unix.EINTR {
			readAhead(data, uint64(at), to)
			return
		}
		if n == 0 && err == nil {
			return // the end of the file
		}
	}
}

var nowhere = sync.OnceValues(func() (*os.File, error) { return os.OpenFile(os.DevNull, os.O_WRONLY, 0) })

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
