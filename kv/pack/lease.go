package pack

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
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

// File is a pack opened for another process, and the place of a payload in it.
// Until all descriptors and maps of it are closed, the payload stays there.
type File struct {
	f     vfs.File
	place kv.Place
}

var _ kv.Lease = (*File)(nil)

// Place returns the offset of the payload.
func (f *File) Place() kv.Place { return f.place }

// Fd is the descriptor, which is the File's.
func (f *File) Fd() uintptr { return f.f.Fd() }

// ReadAt reads bytes of the file.
func (f *File) ReadAt(b []byte, off int64) (int, error) { return f.f.ReadAt(b, off) }

// Stat describes the file.
func (f *File) Stat() (os.FileInfo, error) { return f.f.Stat() }

// Close closes the descriptor. Copies of it keep the lease.
func (f *File) Close() error { return f.f.Close() }

// Place returns the file and the offset of the payload at a. The error is
// errors.ErrUnsupported if files have no descriptors.
func (s *Store) Place(a Address) (kv.Place, error) {
	r, h, err := s.inFile(context.Background(), a)
	if err != nil {
		return kv.Place{}, err
	}
	defer h.unref()
	if h.inode == 0 {
		return kv.Place{}, errNoLease
	}
	at, err := r.base(h)
	return placeOf(a.Pack, h.inode, at), err
}

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
	place, err := r.leased(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &File{f, place}, nil
}

// leased locks a file and finds the payload in it.
func (r *part) leased(f vfs.File) (kv.Place, error) {
	if f.Fd() == vfs.InvalidFd || !LockShared(f) {
		return kv.Place{}, errNoLease
	}
	// Reclaim made all holes of this file before, or will not make any.
	if r.p.isGone(&r.a) {
		return kv.Place{}, r.p.corrupt(r.a.Offset, r.a.Length, errGone)
	}
	lay, err := r.p.checkFile(f)
	if err != nil {
		return kv.Place{}, err
	}
	fi, err := f.Stat()
	if err != nil {
		return kv.Place{}, fmt.Errorf("pack: %w", err)
	}
	lead := r.sums(0)
	at, ok := lay.find(r.a.Offset-lead, lead+r.a.Length)
	if !ok {
		return kv.Place{}, r.p.corrupt(r.a.Offset, r.a.Length, errGone)
	}
	return placeOf(r.a.Pack, inode(fi), at+lead), nil
}

func placeOf(id ID, inode, at uint64) kv.Place {
	p := kv.Place{Offset: int64(at)}
	copy(p.File[:], id[:])
	for i := range 8 {
		p.File[len(id)+i] = byte(inode >> (8 * i))
	}
	return p
}
