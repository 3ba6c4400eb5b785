package pack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/kv"
)

// handle is a pack opened for reading: a map, or a file.
type handle struct {
	refs atomic.Int32 // one for the pack while it is the pack's handle
	data []byte       // the map; its end may lie beyond the file's
	f    vfs.File     // nil if mapped
	seen seen         // blocks of the map that were compared
	runs runs         // where the map is read
	lay  *layout      // nil unless the file was rewritten
	all  *handles
	done chan struct{} // closed with the handle
}

// ref takes a reference unless the handle is closed already.
func (h *handle) ref() bool {
	for {
		n := h.refs.Load()
		if n == 0 {
			return false
		}
		if h.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (h *handle) unref() {
	if h.refs.Add(-1) > 0 {
		return
	}
	h.all.count.Add(-1)
	if h.data != nil {
		h.all.mapped.Add(-int64(len(h.data)))
		_ = mmap.Unmap(h.data)
	}
	if h.f != nil {
		_ = h.f.Close()
	}
	close(h.done)
}

// handles bounds the open files and maps by the clock algorithm: the hand passes
// handles that were read since its last pass, and closes the others. So reading
// sets one bit and takes no common lock.
type handles struct {
	s      *Store
	count  atomic.Int64
	mapped atomic.Int64

	mu     sync.Mutex
	ring   []*pack // packs with a handle
	hand   int
	closed bool
}

func (a *handles) init(s *Store) { a.s = s }

// acquire returns a handle that holds the file up to end, if the file does.
// The caller gives its reference back.
func (a *handles) acquire(p *pack, end uint64) (*handle, error) {
	for {
		h := p.handle.Load()
		if h == nil || h.data != nil && h.lay == nil && end > uint64(len(h.data)) {
			if err := a.open(p, h, end); err != nil {
				return nil, err
			}
			continue
		}
		if h.ref() {
			if !p.touch.Load() {
				p.touch.Store(true)
			}
			return h, nil
		}
	}
}

// open gives p a handle in place of old, which is nil or too short a map.
func (a *handles) open(p *pack, old *handle, end uint64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return kv.ErrClosed
	}
	if p.handle.Load() != old {
		return nil // another goroutine was faster
	}
	if old != nil {
		a.evictLocked(p)
	}
	if a.s.o.borrow != nil {
		return errReturned
	}
	length := a.mapLength(p, end)
	a.makeRoom(length)
	h, err := a.openFile(p, length)
	if err != nil {
		return err
	}
	p.touch.Store(true)
	p.handle.Store(h)
	a.ring = append(a.ring, p)
	return nil
}

// mapLength returns the length of p to map. On Linux a map may be longer than
// the file, and later appends appear in it.
func (a *handles) mapLength(p *pack, end uint64) int64 {
	length := max(p.size.Load(), end)
	if mapAhead && p.growing() {
		length = max(length, p.limit)
	}
	if length > math.MaxInt64/2 {
		return math.MaxInt64 / 2
	}
	return int64(length)
}

// openPack opens the file of a pack for reading. One that is missing is a [CorruptError].
func (s *Store) openPack(id ID) (vfs.File, error) {
	f, err := s.fs.Open(s.path(id))
	if errors.Is(err, os.ErrNotExist) {
		return nil, &CorruptError{Pack: id, Reason: "the file is missing"}
	}
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return f, nil
}

func (a *handles) openFile(p *pack, length int64) (*handle, error) {
	f, err := a.s.openPack(p.id)
	if err != nil {
		return nil, err
	}
	lay, err := p.checkFile(f)
	if err == nil && lay != nil {
		length, err = fileSize(f)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	h := a.handleOf(f, lay, length)
	a.count.Add(1)
	p.handles = append(slices.DeleteFunc(p.handles, func(h *handle) bool { return h.refs.Load() == 0 }), h)
	return h, nil
}

// handleOf makes a handle of a file, with one reference, which is mapped if there is room.
func (a *handles) handleOf(f vfs.File, lay *layout, length int64) *handle {
	h := &handle{f: f, lay: lay, all: a, done: make(chan struct{})}
	h.refs.Store(1)
	if fd := f.Fd(); fd != vfs.InvalidFd && length <= a.s.o.MapBytes-a.mapped.Load() {
		if data, err := mmap.File(fd, length); err == nil {
			h.data, h.f, h.seen = data, nil, newSeen(length)
			a.mapped.Add(length)
			_ = f.Close()
		}
	}
	return h
}

// checkFile looks at the header of a file and returns its layout. The header of
// a growing pack may still be in memory.
func (p *pack) checkFile(f vfs.File) (*layout, error) {
	if p.growing() {
		return nil, nil
	}
	lay, err := readLayout(f, p.id, p.salt)
	if errors.Is(err, errFormat) {
		return nil, fmt.Errorf("pack %v: %w", p.id, err)
	}
	if err != nil {
		return nil, p.corrupt(0, fileHeaderSize, err.Error())
	}
	return lay, nil
}

func fileSize(f vfs.File) (int64, error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("pack: %w", err)
	}
	return fi.Size(), nil
}

// drain takes the handle of p away and waits for all reads that began before.
func (a *handles) drain(ctx context.Context, p *pack) error {
	a.mu.Lock()
	a.evictLocked(p)
	open := slices.Clone(p.handles)
	a.mu.Unlock()
	for _, h := range open {
		select {
		case <-h.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// alone calls do while nothing reads p, after all reads that began before.
func (a *handles) alone(ctx context.Context, p *pack, do func() error) error {
	for {
		if err := a.drain(ctx, p); err != nil {
			return err
		}
		a.mu.Lock()
		if p.handle.Load() == nil {
			defer a.mu.Unlock()
			return do()
		}
		a.mu.Unlock()
	}
}

// makeRoom closes handles until another one fits, or all others are in use.
// a.mu is held.
func (a *handles) makeRoom(length int64) {
	over := func() bool {
		return a.count.Load() >= int64(a.s.o.OpenFiles) ||
			length <= a.s.o.MapBytes && a.mapped.Load()+length > a.s.o.MapBytes
	}
	for steps := 2 * len(a.ring); steps > 0 && len(a.ring) > 0 && over(); steps-- {
		a.hand %= len(a.ring)
		p := a.ring[a.hand]
		h := p.handle.Load()
		if p.touch.Swap(false) || h != nil && h.refs.Load() > 1 {
			a.hand++
			continue
		}
		a.evictLocked(p)
	}
}

// evict takes the handle of p away.
func (a *handles) evict(p *pack) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.evictLocked(p)
}

func (a *handles) evictLocked(p *pack) {
	for i, q := range a.ring {
		if q == p {
			last := len(a.ring) - 1
			a.ring[i] = a.ring[last]
			a.ring = a.ring[:last]
			break
		}
	}
	if h := p.handle.Swap(nil); h != nil {
		h.unref()
	}
}

// close takes all handles away, for good.
func (a *handles) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for len(a.ring) > 0 {
		a.evictLocked(a.ring[len(a.ring)-1])
	}
}

// readAt reads as much of b as the file has. A full read is no error.
func readAt(f vfs.File, b []byte, off uint64) (int, error) {
	n, err := f.ReadAt(b, int64(off))
	if n == len(b) {
		err = nil
	}
	return n, err
}
