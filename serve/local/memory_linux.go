package local

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// canShare reports that elements can be decoded into memory of the client.
const canShare = true

// shareMemory maps n bytes of a file at off if the client cannot cut them off: memory
// that is sealed against shrinking. A file that is no such memory is nil. The bytes
// are there: a page that could not be had would end the process.
func shareMemory(f *os.File, off, n int64) (b []byte, unmap func(), err error) {
	if off < 0 || n <= 0 || n > 1<<46 {
		return nil, nil, nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	page := int64(os.Getpagesize())
	first := off / page * page
	var all []byte
	failed := raw.Control(func(fd uintptr) {
		var seals int
		seals, err = unix.FcntlInt(fd, unix.F_GET_SEALS, 0)
		if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
			err = nil
			return
		}
		var st unix.Stat_t
		if err = unix.Fstat(int(fd), &st); err != nil {
			return
		}
		if st.Size-off < n {
			err = fmt.Errorf("%w: the memory has %d bytes, %d from %d on are needed", ErrRequest, st.Size, n, off)
			return
		}
		if err = unix.Fallocate(int(fd), 0, first, off-first+n); err != nil {
			return
		}
		all, err = unix.Mmap(int(fd), first, int(off-first+n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	})
	if failed != nil {
		err = failed
	}
	if err != nil || all == nil {
		return nil, nil, err
	}
	return all[off-first:], func() { _ = unix.Munmap(all) }, nil
}
