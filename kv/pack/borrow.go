package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A store that borrows reads the packs of another process, without its index. It asks
// that process for the file of a pack when a payload in it is read first, and again when
// a payload lies beyond the end that the file had:
//
//	View ──▶ known pack, old end ──▶ handle
//	  └────▶ unknown, or longer ───▶ Borrow: a descriptor with a lease ──▶ new handle
//
// A pack that was borrowed again, because it had grown, is mapped beyond its end. Payloads there
// are read through the map; only if they are not sound the file is borrowed again.
//
// A file that was leased gets no holes, so payloads stay where they are until the handle
// is closed.

// Borrowed is the file of a pack of another process: a [File], or an *os.File with the
// descriptor of one. The store closes it.
type Borrowed interface {
	io.ReaderAt
	io.Closer
	Stat() (os.FileInfo, error)
	Fd() uintptr
}

// ErrNotLent means that the file of a pack cannot be lent to another process.
var ErrNotLent = errors.New("pack: the file cannot be lent")

// Borrow returns a store that reads packs in dir, which another process has open. borrow opens
// the file of a pack that holds the payload at an address, with a lease (see [Store.File]);
// its error is errors.ErrUnsupported if files cannot be leased, and View then returns
// [ErrNotLent]. borrow is called by several goroutines at a time. The store is read-only.
// [Store.Import] from it opens the files in dir without a lease: the payloads must be kept
// from being collected. FS and VerifyReads of the options count; o may be nil.
func Borrow(o *Options, dir string, borrow func(ctx context.Context, a Address) (Borrowed, error)) *Store {
	opts := o.withDefaults()
	opts.ReadOnly = true
	opts.borrow = borrow
	s := &Store{fs: opts.FS, dir: dir, o: opts, changed: map[ID]struct{}{}}
	s.files.init(s)
	s.packs.Store(&map[ID]*pack{})
	return s
}

// errReturned means that the handle of a borrowed pack was closed, or that its file is too
// short.
var errReturned = errors.New("pack: the file was given back")

// borrow asks for the file of a pack that holds the payload at a. Readers that ask at the same
// time share the first map, unless anew is set.
func (s *Store) borrow(ctx context.Context, a Address, anew bool) (*pack, error) {
	before := s.handleNow(a.Pack)
	b, err := s.o.borrow(ctx, a)
	if errors.Is(err, errors.ErrUnsupported) {
		err = fmt.Errorf("%w: %v", ErrNotLent, err)
	}
	if err != nil {
		return nil, err
	}
	f := borrowedFile{Borrowed: b}
	p, err := s.lend(a, f, func(now *handle) bool { return anew || now == before })
	if err != nil {
		_ = f.Close()
	}
	return p, err
}

// handleNow is the handle of a pack, nil if it has none.
func (s *Store) handleNow(id ID) *handle {
	if p := s.lookup(id); p != nil {
		return p.handle.Load()
	}
	return nil
}

// viewBorrowed is View of a borrowed pack. If a payload is damaged, the file is borrowed again
// and the payload read once more: the other process may have had the payload in memory when
// the file was borrowed first, and writes it to the file before it lends the file again.
func (s *Store) viewBorrowed(ctx context.Context, a Address, off, n uint64, all bool, fn func([]byte) error) error {
	begun := false
	once := func(b []byte) error {
		begun = true
		return fn(b)
	}
	err := s.view(ctx, a, off, n, all, once)
	var damage *CorruptError
	if begun || !errors.As(err, &damage) {
		return err
	}
	if _, err := s.borrow(ctx, a, true); err != nil {
		return err
	}
	return s.view(ctx, a, off, n, all, fn)
}

// lend gives a pack a new handle, of a file that holds the payload at a, unless the pack has one
// that is not to be replaced and reaches as far.
func (s *Store) lend(a Address, f vfs.File, replace func(*handle) bool) (*pack, error) {
	p := newPack(s, a.Pack, 0)
	lay, err := p.checkFile(f)
	if err != nil {
		return nil, err
	}
	length, err := fileSize(f)
	if err != nil {
		return nil, err
	}
	size, err := logicalSize(f, lay)
	if err != nil {
		return nil, err
	}
	if a.Length > size || a.Offset > size-a.Length {
		return nil, p.corrupt(a.Offset, a.Length, "no payload can be here")
	}
	return s.files.lend(a.Pack, f, lay, length, size, replace)
}

// logicalSize returns the size of the pack in a file.
func logicalSize(f vfs.File, lay *layout) (uint64, error) {
	if lay != nil {
		return lay.size, nil
	}
	n, err := fileSize(f)
	return uint64(n), err
}

// lend is [Store.lend] for a file of length bytes, with the logical size of the pack.
func (a *handles) lend(id ID, f vfs.File, lay *layout, length int64, size uint64, replace func(*handle) bool) (*pack, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.s.check(context.Background()); err != nil {
		return nil, err
	}
	a.s.mu.Lock()
	p := a.s.lookup(id)
	if p == nil {
		p = newPack(a.s, id, 0)
		a.s.setPack(id, p)
	}
	a.s.mu.Unlock()
	if now := p.handle.Load(); now != nil && size <= p.size.Load() && !replace(now) {
		_ = f.Close()
		return p, nil
	}
	if known := p.size.Load(); size > known {
		if mapAhead && lay == nil && known > 0 && length+lendAhead <= a.s.o.MapBytes/4 {
			length += lendAhead
		}
		p.mu.Lock()
		p.setTail(size)
		p.mu.Unlock()
	}
	a.evictLocked(p)
	a.makeRoom(length)
	h := a.handleOf(f, lay, length)
	a.count.Add(1)
	p.touch.Store(true)
	p.handle.Store(h)
	a.ring = append(a.ring, p)
	return p, nil
}

// lendAhead is how far the map of a pack that grows reaches beyond the end of its file.
const lendAhead = 64 << 20

// mapped reports whether the map of a borrowed pack covers a payload behind the known end of
// the pack. The payload then counts as part of the pack.
func (p *pack) mapped(a *Address) bool {
	h, end := p.handle.Load(), a.Offset+a.Length
	if h == nil || h.data == nil || h.lay != nil || end < a.Offset || end > uint64(len(h.data)) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setTail(max(p.tail, end))
	return true
}

// Release gives all files back. It returns when the reads that use them have ended, or when
// ctx is done. Later reads borrow the files again.
func (s *Store) Release(ctx context.Context) {
	s.files.mu.Lock()
	var open []*handle
	for len(s.files.ring) > 0 {
		p := s.files.ring[len(s.files.ring)-1]
		if h := p.handle.Load(); h != nil {
			open = append(open, h)
		}
		s.files.evictLocked(p)
	}
	s.files.mu.Unlock()
	for _, h := range open {
		select {
		case <-h.done:
		case <-ctx.Done():
			return
		}
	}
}

// borrowedFile is a file that is only read.
type borrowedFile struct {
	vfs.File // nil: the methods that write
	Borrowed
}

func (f borrowedFile) Close() error                            { return f.Borrowed.Close() }
func (f borrowedFile) ReadAt(b []byte, off int64) (int, error) { return f.Borrowed.ReadAt(b, off) }
func (f borrowedFile) Fd() uintptr                             { return f.Borrowed.Fd() }

func (f borrowedFile) Stat() (vfs.FileInfo, error) {
	fi, err := f.Borrowed.Stat()
	return borrowedInfo{fi}, err
}

type borrowedInfo struct{ os.FileInfo }

func (borrowedInfo) DeviceID() (id vfs.DeviceID) { return id }
