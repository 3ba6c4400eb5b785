package pack

import (
	"math"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// pack is one file. The fields after mu are its state; a pack that does not
// grow changes none of them.
type pack struct {
	s    *Store
	id   ID
	salt uint32

	handle  atomic.Pointer[handle] // for reading, nil if not open
	handles []*handle              // that were opened and may be in use; under handles.mu
	// gone are the ranges that were given back, ascending. A reader looks after
	// it took its handle.
	gone  atomic.Pointer[[]Extent]
	touch atomic.Bool // read since the last look for unused handles

	// memFrom is the offset from which on bytes may be in memory and not yet in
	// the file, MaxUint64 without such bytes.
	memFrom atomic.Uint64
	// size is tail for readers.
	size atomic.Uint64
	// onDisk is the space on disk of the file of a found or changed pack; 0
	// means its size.
	onDisk atomic.Uint64
	limit  uint64 // at which a pack that grows is sealed
	// alive is false after a failure.
	alive atomic.Bool
	// busy counts writes to the file.
	busy atomic.Int32

	mu      sync.Mutex
	cond    sync.Cond
	durable uint64 // the durable end
	tail    uint64 // the exact end of reserved bytes
	sealed  bool
	missing bool
	named   bool // the directory is synced
	full    bool // no further appends; sealed after the next Sync
	short   bool // a range was given up: the file may end before tail
	failure *FailedError

	f         vfs.File // for writing, nil until the first append
	seg       *segment // the buffer in use
	live      []*segment
	spans     []uint64 // beginnings of ranges that are being written
	allocated uint64   // the file has blocks up to here
	behind    uint64   // the kernel was asked to write up to here
}

func newPack(s *Store, id ID, size uint64) *pack {
	p := &pack{s: s, id: id, salt: crc(id[:]), tail: size, sealed: true}
	p.cond.L = &p.mu
	p.memFrom.Store(math.MaxUint64)
	p.size.Store(size)
	p.alive.Store(true)
	return p
}

func (p *pack) info() Info {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Info{
		ID: p.id, End: p.durable, Size: p.tail, Sealed: p.sealed,
		Missing: p.missing, Failed: p.failure != nil,
	}
}

// growing reports whether the pack may be appended to or needs a Sync.
func (p *pack) growing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.sealed && p.failure == nil
}

// inUse reports whether the file may still be written to.
func (p *pack) inUse() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.sealed && p.failure == nil || p.f != nil
}

func (p *pack) isFailed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure != nil
}

// setTail is the only way to change tail. p.mu is held.
func (p *pack) setTail(tail uint64) {
	p.tail = tail
	p.size.Store(tail)
}

// isGone reports whether a payload was given back.
func (p *pack) isGone(a *Address) bool {
	gone := p.gone.Load()
	if gone == nil {
		return false
	}
	i := sort.Search(len(*gone), func(i int) bool { return (*gone)[i].To > a.Offset })
	return i < len(*gone) && (*gone)[i].From < a.Offset+a.Length
}

// corrupt makes an error for a range of the pack.
func (p *pack) corrupt(off, n uint64, reason string) *CorruptError {
	return &CorruptError{Pack: p.id, Offset: off, Length: n, Reason: reason}
}

// drop gives up the handle for reading; running reads keep it.
func (p *pack) drop() { p.s.files.evict(p) }
