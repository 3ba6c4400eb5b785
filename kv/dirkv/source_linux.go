package dirkv

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// nonBlock keeps opening a named pipe from waiting for its writer.
const nonBlock = unix.O_NONBLOCK

// source reads files with openat2: the kernel resolves the path in one call
// and keeps it beneath the base. For a key of six names that is 4 µs for open,
// stat, read and close; os.Root needs 18, os.Open 6.
//
// Kernels before 5.6 and some sandboxes lack the call; then it is os.Root.
type source struct {
	slow rootSource
	dir  string

	mu        sync.RWMutex // held while fd is in use, so that close cannot free it
	fd        int          // of the base directory; -1 when closed
	noBeneath atomic.Bool
}

func newSource(root *os.Root, dir string) *source {
	s := &source{slow: rootSource{root}, dir: dir, fd: -1}
	f, err := root.Open(".")
	if err == nil {
		// os.Root does not expose its descriptor. This one stays with the same
		// directory even if it is renamed meanwhile.
		s.fd, err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		f.Close()
	}
	if err != nil {
		s.fd = -1
		s.noBeneath.Store(true)
	}
	return s
}

func (s *source) close() error {
	s.mu.Lock()
	if s.fd >= 0 {
		unix.Close(s.fd)
		s.fd = -1
	}
	s.mu.Unlock()
	return s.slow.close()
}

// errSlow means that openat2 cannot be used.
var errSlow = errors.New("openat2 is not available")

// openat opens rel beneath the base directory.
func (s *source) openat(rel string, flags uint64) (int, error) {
	if s.noBeneath.Load() {
		return -1, errSlow
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.fd < 0 {
		return -1, os.ErrClosed
	}
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	for range 100 {
		fd, err := unix.Openat2(s.fd, rel, &how)
		switch err {
		case unix.EINTR, unix.EAGAIN:
			// EAGAIN: something was renamed while ".." of a link was resolved.
			continue
		case unix.ENOSYS, unix.EPERM:
			s.noBeneath.Store(true)
			return -1, errSlow
		case unix.EXDEV:
			return -1, ErrOutside
		}
		return fd, err
	}
	return -1, unix.EAGAIN
}

func (s *source) open(rel string) (openFile, info, error) {
	fd, err := s.openat(rel, unix.O_RDONLY|unix.O_NONBLOCK)
	if err == errSlow {
		return s.slow.open(rel)
	}
	if err != nil {
		return nil, info{}, err
	}
	in, err := statFD(fd, unix.S_IFREG)
	if err != nil {
		unix.Close(fd)
		return nil, info{}, err
	}
	return rawFile(fd), in, nil
}

func (s *source) stat(rel string) (info, error) {
	fd, err := s.openat(rel, unix.O_PATH)
	if err == errSlow {
		return s.slow.stat(rel)
	}
	if err != nil {
		return info{}, err
	}
	defer unix.Close(fd)
	return statFD(fd, unix.S_IFREG)
}

func (s *source) openDir(rel string) (*os.File, info, error) {
	if rel == "" {
		rel = "."
	}
	fd, err := s.openat(rel, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == errSlow {
		return s.slow.openDir(rel)
	}
	if err != nil {
		return nil, info{}, err
	}
	in, err := statFD(fd, unix.S_IFDIR)
	if err != nil {
		unix.Close(fd)
		return nil, info{}, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(s.dir, rel)), in, nil
}

// statFD returns the status of an open file, or errNotAFile if it is of
// another kind.
func statFD(fd int, kind uint32) (info, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstat(fd, &st)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return info{}, err
		}
		break
	}
	if st.Mode&unix.S_IFMT != kind {
		return info{}, errNotAFile
	}
	return info{size: st.Size, modified: st.Mtim.Nano(), changed: st.Ctim.Nano(), links: uint64(st.Nlink), dev: uint64(st.Dev), ino: st.Ino}, nil
}

// rawFile is a descriptor without the bookkeeping of os.File, which costs more
// than a small read.
type rawFile int

func (f rawFile) Close() error { return unix.Close(int(f)) }

func (f rawFile) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		// The kernel moves at most 2 GiB at a time.
		m, err := unix.Pread(int(f), p[n:min(len(p), n+1<<30)], off+int64(n))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return n, fmt.Errorf("read at %d: %w", off+int64(n), err)
		case m == 0:
			return n, io.EOF
		}
		n += m
	}
	return n, nil
}
