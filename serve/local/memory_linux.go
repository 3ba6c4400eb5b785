package local

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// canShare reports that elements can be decoded into memory of the client.
const canShare = true

// newSealed makes n bytes of memory that can be passed to mapSealed. The caller closes the
// file, and unmaps the memory.
func newSealed(name string, n int) (f *os.File, b []byte, err error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, os.NewSyscallError("memfd_create", err)
	}
	f = os.NewFile(uintptr(fd), name)
	if err = f.Truncate(int64(n)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK)
	}
	if err == nil {
		b, err = mapSealed(f, int64(n))
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, b, nil
}

// mapSealed maps the n bytes of a memory file that the client cannot cut off: a page
// that is not there would end the process. For the same reason all pages are made now.
func mapSealed(f *os.File, n int64) (b []byte, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	failed := raw.Control(func(fd uintptr) {
		seals, e := unix.FcntlInt(fd, unix.F_GET_SEALS, 0)
		if e != nil || seals&unix.F_SEAL_SHRINK == 0 {
			err = fmt.Errorf("%w: only memory that is sealed against shrinking becomes a block", ErrRequest)
			return
		}
		if err = unix.Fallocate(int(fd), 0, 0, n); err != nil {
			return
		}
		b, err = unix.Mmap(int(fd), 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	})
	if failed != nil {
		err = failed
	}
	return b, err
}

// messages makes a file for the messages of a process, which needs no place on a disk.
func messages() (*os.File, error) {
	fd, err := unix.MemfdCreate("zarrdb-messages", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "messages"), nil
}
