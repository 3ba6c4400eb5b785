package pack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

// Options of [Open].
type Options struct {
	// FS holds the directory; nil is the operating system.
	FS vfs.FS
	// ReadOnly opens without a single write.
	ReadOnly bool
	// Incarnation is the first half of the IDs of new packs. Packs of other
	// incarnations are only read.
	Incarnation [8]byte
	// Table is the index's record of packs.
	Table []Info

	// MaxPackBytes is the size at which a pack is sealed; 0 is a 64th of the
	// space of all packs on disk, at least 16 MiB and at most 4 GiB. A larger
	// payload gets a pack of its own.
	MaxPackBytes uint64
	// NotRemoved, if set, is called with the error if a file could not be removed that is
	// of no use any more.
	NotRemoved func(error)
	// Writers bounds the packs that grow at one time; 0 is the number of
	// processors, at most 4. A second one is begun only while the first is
	// busy with a large write: writes to one file wait for each other in the
	// kernel.
	Writers int
	// OpenFiles bounds files and maps that are kept open for reading; 0 is
	// 512. Files in use are never closed, so that there may be more for a
	// moment.
	OpenFiles int
	// VerifyReads compares every block that is read with its checksum, and not only the first
	// time in the life of a map; see [Store.View].
	VerifyReads bool
	// MapBytes bounds the address space of maps; 0 is 256 GiB, or no maps on
	// 32-bit machines. Beyond it, packs are read with pread. A negative value
	// disables maps.
	MapBytes int64
	// Scratch is for packs that may be lost at any time, and are imported again then: nothing is synced, and an
	// import refuses a record where other bytes are ([ErrTaken]), such as those that a crash has left.
	Scratch bool

	borrow   func(ctx context.Context, a Address) (Borrowed, error) // see Borrow
	punch    func(f vfs.File, off, n int64) error                   // tests have file systems of their own
	smallest uint64                                                 // and small stores
}

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.FS == nil {
		c.FS = osfs.FS
	}
	if c.smallest == 0 {
		c.smallest = smallestPack
	}
	if c.Writers == 0 {
		c.Writers = min(runtime.GOMAXPROCS(0), 4)
	}
	if c.OpenFiles == 0 {
		c.OpenFiles = 512
	}
	if c.MapBytes == 0 {
		c.MapBytes = 256 << 30
	}
	if math.MaxInt == math.MaxInt32 || !mmap.Supported {
		c.MapBytes = -1
	}
	return c
}

// Store is an open directory of packs. All methods are safe for concurrent
// use.
type Store struct {
	dir string
	fs  vfs.FS
	o   Options

	closed atomic.Bool
	// packs is replaced as a whole, so that readers look up without a lock.
	packs atomic.Pointer[map[ID]*pack]
	files handles

	sync sync.Mutex // one Sync at a time
	// reclaim is held by Reclaim, and shared by Imports, of which there is one at
	// a time for each pack.
	reclaim   sync.RWMutex
	importing sync.Map // ID → *sync.Mutex

	mu       sync.Mutex // below sync, above pack.mu
	active   []*pack    // packs that grow, at most o.Writers
	unsealed []*pack    // these, and full ones that no Sync has sealed
	counter  uint64     // of the next pack
	failed   error      // until Resume
	changed  map[ID]struct{}
}

// A pack may be written anew when space is given back, which takes the space of
// its live bytes for that time. So it is a small part of all of them, and a
// store of any size has some hundreds.
const (
	packShare    = 64
	smallestPack = 16 << 20
	largestPack  = 4 << 30
)

const (
	packSuffix = ".pack"
	// goneSuffix marks an empty file that keeps the number of a removed pack
	// from being used again.
	goneSuffix = ".gone"
	// rewriteSuffix marks a pack that is being rewritten.
	rewriteSuffix = ".rewrite"
)

// Open opens the packs in dir, which is made if it does not exist. It reads no
// payloads, and only headers of packs that may grow or whose length differs from
// the table.
func Open(dir string, o *Options) (*Store, error) {
	opts := o.withDefaults()
	s := &Store{dir: dir, fs: opts.FS, o: opts, changed: map[ID]struct{}{}}
	s.files.init(s)
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("pack: open %s: %w", dir, err)
	}
	return s, nil
}

func (s *Store) load() error {
	if !s.o.ReadOnly {
		if err := s.makeDir(); err != nil {
			return err
		}
	}
	names, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	packs, unknown := map[ID]*pack{}, map[ID]bool{}
	var gone []ID
	for _, name := range names {
		if strings.HasSuffix(name, rewriteSuffix) && !s.o.ReadOnly {
			s.discard(s.fs.PathJoin(s.dir, name)) // of a process that crashed
		}
		id, suffix, ok := parseName(name)
		if !ok || suffix != packSuffix && suffix != goneSuffix {
			continue
		}
		s.used(id)
		if suffix == goneSuffix {
			gone = append(gone, id)
			continue
		}
		fi, err := s.fs.Stat(s.path(id))
		if err != nil {
			return err
		}
		p := newPack(s, id, uint64(fi.Size()))
		p.onDisk.Store(allocated(fi))
		packs[id] = p
		unknown[id] = true
	}
	for _, info := range s.o.Table {
		s.used(info.ID)
		p := packs[info.ID]
		if p == nil {
			p = newPack(s, info.ID, 0)
			p.missing = true
			packs[info.ID] = p
		}
		p.durable, p.named = info.End, true
		if p.tail == info.End {
			delete(unknown, info.ID)
		}
		if info.Sealed || s.o.ReadOnly || info.ID.Incarnation() != s.o.Incarnation {
			continue
		}
		if p.linked() {
			s.changed[info.ID] = struct{}{}
			continue
		}
		// Only a file with exactly the length in the index may grow. A longer
		// one has bytes that may still be referenced.
		if !p.missing && !unknown[info.ID] && p.tail >= fileHeaderSize && len(s.active) < s.o.Writers && !p.rewritten() {
			p.sealed = false
			p.onDisk.Store(0) // it changes now
			s.active, s.unsealed = append(s.active, p), append(s.unsealed, p)
			continue
		}
		s.changed[info.ID] = struct{}{}
		if !p.missing {
			s.trim(info.ID)
		}
	}
	// A file with another length may have been rewritten.
	for id := range unknown {
		packs[id].rewritten()
	}
	s.packs.Store(&packs)
	for _, p := range s.active {
		p.limit = s.packLimit()
	}
	for _, id := range gone {
		// A mark below the last number is of no use any more.
		if !s.o.ReadOnly && id.Incarnation() == s.o.Incarnation && id.Counter()+1 < s.counter {
			s.discard(s.goneMark(id))
		}
	}
	return nil
}

// discard removes a file that is of no use any more.
func (s *Store) discard(path string) {
	if err := s.fs.Remove(path); err != nil && s.o.NotRemoved != nil {
		s.o.NotRemoved(err)
	}
}

// rewritten reports whether the file is one that was rewritten, and takes the
// logical size from its header then. Errors of the file are returned when the
// pack is read.
func (p *pack) rewritten() bool {
	lay := p.layout()
	if lay == nil {
		return false
	}
	p.setTail(lay.size)
	return true
}

// linked reports whether the file has another name. Exported references then rely on the
// file, and take it for changed if it grows.
func (p *pack) linked() bool {
	f, err := p.s.fs.Open(p.s.path(p.id))
	if err != nil {
		return false
	}
	defer f.Close()
	return osfs.Links(f) > 1
}

// packLimit is the size at which a pack that begins now is sealed.
func (s *Store) packLimit() uint64 {
	if s.o.MaxPackBytes > 0 {
		return s.o.MaxPackBytes
	}
	var all uint64
	for _, p := range *s.packs.Load() {
		if n := p.onDisk.Load(); n > 0 {
			all += n
		} else {
			all += p.size.Load()
		}
	}
	return min(max(all/packShare, s.o.smallest), largestPack)
}

// trim frees blocks that a crashed process had preallocated.
func (s *Store) trim(id ID) {
	if f, err := s.fs.OpenReadWrite(s.path(id), vfs.WriteCategoryUnspecified); err == nil {
		trim(f)
		_ = f.Close()
	}
}

// used notes the number of a pack.
func (s *Store) used(id ID) {
	if id.Incarnation() == s.o.Incarnation && id.Counter() >= s.counter {
		s.counter = id.Counter()
		if s.counter < math.MaxUint64 {
			s.counter++
		}
	}
}

func (s *Store) makeDir() error {
	if _, err := s.fs.Stat(s.dir); err == nil {
		return nil
	}
	if err := s.fs.MkdirAll(s.dir, 0o777); err != nil {
		return err
	}
	return syncDir(s.fs, s.fs.PathDir(s.dir))
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// FileName is the name of a pack's file.
func FileName(id ID) string { return id.String() + packSuffix }

func (s *Store) path(id ID) string { return s.fs.PathJoin(s.dir, FileName(id)) }

func (s *Store) lookup(id ID) *pack { return (*s.packs.Load())[id] }

// setPack adds p, or removes id if p is nil. s.mu is held.
func (s *Store) setPack(id ID, p *pack) {
	m := maps.Clone(*s.packs.Load())
	if p == nil {
		delete(m, id)
	} else {
		m[id] = p
	}
	s.packs.Store(&m)
}

// Infos returns the state of all packs, ordered by ID: packs with a file, and
// packs of Options.Table without one.
func (s *Store) Infos() []Info {
	var list []Info
	for _, p := range *s.packs.Load() {
		list = append(list, p.info())
	}
	slices.SortFunc(list, func(a, b Info) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return list
}

// Files returns what [Store.Infos] does, as the files are now: if another program removed a file, its pack is Missing, and if
// another program cut it, Size is where the pack ends now. It looks at each file once. The error is about a file that
// cannot be looked at, or ctx.
func (s *Store) Files(ctx context.Context) ([]Info, error) {
	list := s.Infos()
	for k := range list {
		i := &list[k]
		if i.Missing {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p := s.lookup(i.ID)
		fi, err := s.fs.Stat(s.path(i.ID))
		switch {
		case p == nil || err != nil && s.lookup(i.ID) != p: // a collection has removed it meanwhile
		case errors.Is(err, os.ErrNotExist):
			i.Missing = true
		case err != nil:
			return nil, fmt.Errorf("pack: %w", err)
		case uint64(fi.Size()) < i.Size:
			i.Size = min(i.Size, p.fileEnd(uint64(fi.Size())))
		}
	}
	return list, nil
}

// fileEnd returns where a pack ends whose file has so many bytes. A rewritten file is shorter than its pack.
func (p *pack) fileEnd(size uint64) uint64 {
	lay := p.layout()
	if lay == nil {
		return size
	}
	for _, e := range lay.extents {
		if e.at+e.n > size {
			return e.from
		}
	}
	return lay.size
}

// layout reads the layout of a file that was rewritten; it is nil for others, and for files that cannot be read.
func (p *pack) layout() *layout {
	f, err := p.s.openPack(p.id)
	if err != nil {
		return nil
	}
	defer f.Close()
	lay, err := readLayout(f, p.id, p.salt)
	if err != nil {
		return nil
	}
	return lay
}

// Recorded reports that infos returned by Sync are durable in the index. Sync
// returns unrecorded infos again; without Recorded, all that changed since Open.
func (s *Store) Recorded(infos []Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, info := range infos {
		p := s.lookup(info.ID)
		if p == nil {
			continue
		}
		p.mu.Lock()
		same := p.durable == info.End && p.sealed == info.Sealed
		p.mu.Unlock()
		if same {
			delete(s.changed, info.ID)
		}
	}
}

// Resume lets the store write again after a failure, into new packs. Failed
// packs are not changed; their payloads behind the durable end are lost. Call it
// when the owners of these payloads know: later Syncs do not report the loss.
func (s *Store) Resume() {
	s.sync.Lock()
	defer s.sync.Unlock()
	s.mu.Lock()
	s.active = slices.DeleteFunc(s.active, (*pack).isFailed)
	s.failed = nil
	s.mu.Unlock()
	for _, p := range *s.packs.Load() {
		if p.isFailed() {
			// An error of a file that is already lost is ignored.
			_ = p.closeWriter()
		}
	}
}

// Position is a moment in the life of a store: everything that is appended
// later lies behind it.
type Position struct {
	incarnation [8]byte
	next        uint64 // number of the next pack
	growing     map[ID]uint64
}

// Position returns the present moment.
func (s *Store) Position() Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := Position{incarnation: s.o.Incarnation, next: s.counter, growing: make(map[ID]uint64, len(s.active))}
	for _, a := range s.active {
		p.growing[a.id] = a.size.Load()
	}
	return p
}

// End is the end of a pack at that moment: 0 if it did not exist, math.MaxUint64
// if it was sealed.
func (p Position) End(id ID) uint64 {
	if n, ok := p.growing[id]; ok {
		return n
	}
	if id.Incarnation() == p.incarnation && id.Counter() >= p.next {
		return 0
	}
	return math.MaxUint64
}

// Failed returns nil, or the failure that keeps the store from writing until
// Resume.
func (s *Store) Failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Durable reports whether the payload at a survives a crash.
func (s *Store) Durable(a Address) bool {
	p := s.lookup(a.Pack)
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return a.Length <= p.durable && a.Offset <= p.durable-a.Length
}

// Pending reports whether the payload at a waits for the next Sync.
func (s *Store) Pending(a Address) bool {
	p := s.lookup(a.Pack)
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.sealed && p.failure == nil && a.Offset+a.Length > p.durable
}

// fail marks the store failed because of a pack. Locks of packs are not held.
func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
	}
}

// Remove deletes packs. A pack that may still grow is ErrInUse, also a failed
// one before Resume; one that does not exist is no error. Reads that have begun
// end well.
func (s *Store) Remove(ids ...ID) error {
	if s.o.ReadOnly {
		return kv.ErrReadOnly
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return kv.ErrClosed
	}
	for _, id := range ids {
		if err := s.remove(id); err != nil {
			return fmt.Errorf("pack: remove %v: %w", id, err)
		}
	}
	if err := syncDir(s.fs, s.dir); err != nil {
		return fmt.Errorf("pack: remove: %w", err)
	}
	return nil
}

func (s *Store) remove(id ID) error {
	p := s.lookup(id)
	if p == nil {
		return nil
	}
	if p.inUse() {
		return errInUse
	}
	if id.Incarnation() == s.o.Incarnation {
		if err := s.keepNumber(id); err != nil {
			return err
		}
	}
	if err := s.fs.Remove(s.path(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	s.setPack(id, nil)
	delete(s.changed, id)
	p.drop()
	return nil
}

func (s *Store) goneMark(id ID) string { return s.fs.PathJoin(s.dir, id.String()+goneSuffix) }

// keepNumber leaves a mark if id is the last pack of its incarnation, because
// the next Open counts on from what it finds.
func (s *Store) keepNumber(id ID) error {
	if id.Counter()+1 != s.counter {
		return nil
	}
	f, err := s.fs.Create(s.goneMark(id), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	// The mark must be there before the file goes.
	return errors.Join(f.Sync(), f.Close(), syncDir(s.fs, s.dir))
}

// Close ends reading and writing. Calls that are running end well. Payloads
// appended after the last Sync are dropped.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return kv.ErrClosed
	}
	s.sync.Lock()
	defer s.sync.Unlock()
	var errs []error
	for _, p := range *s.packs.Load() {
		errs = append(errs, p.closeWriter())
	}
	s.files.close()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("pack: close: %w", err)
	}
	return nil
}

// check is the beginning of every call.
func (s *Store) check(ctx context.Context) error {
	if s.closed.Load() {
		return kv.ErrClosed
	}
	return ctx.Err()
}
