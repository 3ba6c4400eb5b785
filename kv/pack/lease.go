package pack

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A lease keeps payloads in their file while another process has that file open,
// without any record of it:
//
//	File     opens the pack and locks it, shared: the lock belongs to the open
//	         file, and goes with its descriptor to other processes and into maps
//	Reclaim locks a pack, exclusively, before it makes holes. It makes none in
//	         a pack that a process has open for reading
//
// The system releases the lock when the last descriptor and the last map are
// closed, even if their process is killed. A removed or rewritten pack is
// unchanged for processes that have it open.

var errNoLease = fmt.Errorf("pack: no lease: %w", errors.ErrUnsupported)

// File is a pack opened for another process. Until all descriptors and maps of it are closed, its payloads stay there.
type File struct{ f vfs.File }

// Fd is the descriptor, which is the File's.
func (f *File) Fd() uintptr { return f.f.Fd() }

// ReadAt reads bytes of the file.
func (f *File) ReadAt(b []byte, off int64) (int, error) { return f.f.ReadAt(b, off) }

// Stat describes the file.
func (f *File) Stat() (os.FileInfo, error) { return f.f.Stat() }

// Close closes the descriptor. Copies of it keep the lease.
func (f *File) Close() error { return f.f.Close() }

// File opens the file with the payload at a for another process. It is
// errors.ErrUnsupported where files cannot be locked, and while space of the pack
// is given back. The payload is not verified; see [Store.View].
func (s *Store) File(a Address) (*File, error) {
	r, h, err := s.inFile(context.Background(), a)
	if err != nil {
		return nil, err
	}
	h.unref()
	f, err := s.openPack(a.Pack)
	if err != nil {
		return nil, err
	}
	if err := r.leased(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &File{f}, nil
}

// leased locks a file, and looks that the payload is in it.
func (r *part) leased(f vfs.File) error {
	if f.Fd() == vfs.InvalidFd || !LockShared(f) {
		return errNoLease
	}
	// Reclaim made all holes of this file before, or will not make any.
	if r.p.isGone(&r.a) {
		return r.p.corrupt(r.a.Offset, r.a.Length, errGone)
	}
	lay, err := r.p.checkFile(f)
	if err != nil {
		return err
	}
	lead := r.sums(0)
	if _, ok := lay.find(r.a.Offset-lead, lead+r.a.Length); !ok {
		return r.p.corrupt(r.a.Offset, r.a.Length, errGone)
	}
	return nil
}
