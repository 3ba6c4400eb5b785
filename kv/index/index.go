package index

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

// Space is the first byte of a stored key. Keys of one space sort together;
// 0xff is not a space.
type Space byte

// The spaces of a database. Only SpacePage means something to this package:
// [Index.GetPage], [Batch.PutPage] and [Index.Ingest] use it.
const (
	SpacePage    Space = 'p'
	SpaceCommit  Space = 'c'
	SpaceRef     Space = 'r'
	SpaceReflog  Space = 'l'
	SpaceSession Space = 's'
	SpacePack    Space = 'k'
	SpacePin     Space = 'n'
	SpaceMeta    Space = 'm'
	SpaceExpired Space = 'x'
	SpaceHole    Space = 'h'
)

// maxKeyBytes bounds a key without its space.
const maxKeyBytes = 64 << 10

// Index is an open index. All methods are safe for concurrent use.
type Index struct {
	reads
	dir   string
	fs    hereFS // as given
	opts  *pebble.Options
	ro    bool
	guard *guardFS
	disk  *diskGuard
	db    *pebble.DB
	free  func() // gives the cache of blocks back
	lock  *dirLock

	gate   gate
	quiet  sync.RWMutex // commits shared, Checkpoint exclusive
	ingest sync.Mutex   // one Ingest at a time, they share a directory

	sweepMu sync.RWMutex // above quiet: puts of pages shared, steps of a sweep exclusive
	sweep   *Sweep

	life context.Context // ends with Close or a failure
	end  context.CancelFunc

	lists  atomic.Int64 // of tables that Pebble made
	logged atomic.Int64 // bytes of batches
	wrote  atomic.Bool  // anything, since Open

	use   usage
	noted func(work string, err error)

	mu        sync.Mutex
	snapshots map[*Snapshot]struct{}
}

// Open opens the index in dir. Errors are [ErrNotExist], [LockedError], [FormatError],
// kv.ErrCorrupt for damaged files, and errors of the file system.
func Open(dir string, o *Options) (*Index, error) {
	opts := o.withDefaults()
	x, err := open(dir, &opts)
	if err != nil {
		return nil, fmt.Errorf("index: open %s: %w", dir, err)
	}
	return x, nil
}

func open(dir string, o *Options) (_ *Index, err error) {
	if o.Create && !o.ReadOnly {
		if err := MakeDir(o.FS, dir); err != nil {
			return nil, err
		}
	}
	if _, err := o.FS.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, ErrNotExist
	} else if err != nil {
		return nil, err
	}
	if dir, err = canonical(o.FS, dir); err != nil {
		return nil, err
	}
	if !o.Create {
		// Before the lock, so that a wrong directory gets no lock file.
		if missing, err := checkFormat(o.FS, dir); err != nil {
			return nil, err
		} else if missing {
			return nil, notThere(o.FS, dir)
		}
	}
	l, err := lock(o.FS, dir, o.Program, o.Socket, o.ReadOnly)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	missing, err := prepare(o, dir)
	if err == nil && missing && (o.ReadOnly || !o.Create) {
		err = notThere(o.FS, dir)
	}
	if err != nil {
		return nil, err
	}
	x, err := openPebble(o, dir, l, missing)
	if err != nil || !missing {
		return x, err
	}
	if err = finishCreate(o.FS, dir); err != nil {
		x.guard.stop()
		err = errors.Join(err, x.db.Close())
		x.free()
		return nil, err
	}
	return x, nil
}

// notThere is ErrNotExist, and kv.ErrCorrupt if an index without a format file is
// there.
func notThere(fs vfs.FS, dir string) error {
	if _, err := Begun(fs, dir); errors.Is(err, kv.ErrCorrupt) {
		return fmt.Errorf("%w: %w", ErrNotExist, err)
	}
	return ErrNotExist
}

func openPebble(o *Options, dir string, l *dirLock, create bool) (_ *Index, err error) {
	x := &Index{
		dir: dir, ro: o.ReadOnly, lock: l, noted: o.Note,
		guard:     newGuardFS(o.FS, dir, o.tablePause),
		snapshots: map[*Snapshot]struct{}{},
	}
	x.guard.lock = l.file
	x.fs = hereFS{o.FS, x.guard}
	x.disk = newDiskGuard(dir, o)
	x.disk.fs = x.fs
	x.disk.creating.Store(o.Create)
	x.use.init()
	x.gate.init(x.guard)
	x.guard.onFull = func() { x.disk.release() }
	x.life, x.end = context.WithCancel(context.Background())
	x.guard.onFail = func() {
		x.end()
		x.gate.wake()
	}

	x.opts = o.pebble()
	x.opts.FS = x.guard
	x.opts.Lock = l.Lock
	x.opts.ErrorIfNotExists = !create
	x.opts.Logger = logger{guard: x.guard}
	x.opts.EventListener = x.listener()
	x.useCache(o.CacheBytes)
	defer func() {
		if err != nil {
			x.end()
			x.free()
		}
	}()

	if !x.ro {
		x.disk.opening()
	}
	if err = checkLists(o.FS, dir); err != nil {
		return nil, err
	}
	x.db, err = callOpen(dir, x.opts)
	if failed := x.guard.err(); failed != nil && err != nil {
		return nil, failed // the cause of Pebble's error
	}
	if err != nil {
		return nil, err
	}
	x.from, x.of = x.db, x
	x.countMemtables()
	x.guard.opened()
	err = x.guard.err()
	if out := x.guard.takeOutside(); err == nil && out != nil {
		err = out
	}
	if err == nil {
		err = x.checkCount()
	}
	if err != nil {
		x.guard.stop()
		return nil, errors.Join(err, x.db.Close())
	}
	if !x.ro {
		// The reserve is made by the first check with room to spare.
		if err := x.disk.enter("open", 0, true); err == nil {
			x.disk.leave(0)
		}
	}
	return x, nil
}

// callOpen opens Pebble. It panics on some errors of the file system; nothing
// that it holds then outlives the call.
func callOpen(dir string, o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(error)
			if !ok {
				panic(r)
			}
			db, err = nil, e
		}
	}()
	db, err = pebble.Open(dir, o)
	switch {
	case errors.Is(err, pebble.ErrDBDoesNotExist): // the format file is there
		return nil, fmt.Errorf("%w: marker.manifest is missing, which names the list of tables", kv.ErrCorrupt)
	case errors.Is(err, pebble.ErrDBNotPristine):
		return nil, fmt.Errorf("%w: marker.format-version is missing", kv.ErrCorrupt)
	case err != nil && (isDamage(err) || errors.Is(err, os.ErrNotExist)):
		return nil, fmt.Errorf("%w: %w", kv.ErrCorrupt, damage{err})
	}
	return db, err
}

// MakeDir makes a directory durably unless it is there.
func MakeDir(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(dir); err == nil {
		return nil
	}
	if err := fs.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return SyncDir(fs, fs.PathDir(dir))
}

// flushAtClose bounds the bytes left in the log for the next Open, which reads
// about 0.2 GB/s.
const flushAtClose = 4 << 20

// flushForOpen flushes if the next Open would be slow: with many bytes in the
// log, or in the file that the log overwrites. The new log has a file of its
// own.
func (x *Index) flushForOpen() {
	x.guard.newLogs(true)
	if x.ro || x.Metrics().LogLiveBytes <= flushAtClose && !x.guard.overOld.Load() {
		return
	}
	// Without the table the log still has everything: a failure here costs the
	// next Open some time.
	_ = x.Flush()
}

// Close waits for calls that are running, a Scan being one until its loop
// ends, and closes the index. Open snapshots end. After a failure it returns
// ErrFailed, with everything released. A second Close returns kv.ErrClosed.
// Nothing is written or removed under the path of an index whose directory was moved,
// removed or replaced, and that is no error.
func (x *Index) Close() error {
	moved := x.Here() != nil
	if moved {
		x.lock.path = ""
	}
	x.flushForOpen()
	if !x.use.close() {
		return kv.ErrClosed
	}
	failed, err := x.shut()
	err = errors.Join(err, x.lock.Close())
	if moved || errors.Is(failed, ErrMoved) {
		return nil
	}
	if failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("index: close: %w", err)
	}
	return nil
}

// Created ends the creation that [Options.Create] began. Until then a full disk gets
// advice for a new database.
func (x *Index) Created() { x.disk.creating.Store(false) }

// shut waits for calls that are running and releases everything but the lock.
// failed is the failure that stopped all writes before.
func (x *Index) shut() (failed, err error) {
	x.end()
	x.gate.wake()
	x.use.wait()
	x.mu.Lock()
	for s := range x.snapshots {
		_ = s.s.Close()
	}
	clear(x.snapshots)
	x.mu.Unlock()
	x.witness()
	failed = x.guard.err()
	x.guard.stop()
	err = x.db.Close()
	x.free()
	return failed, err
}

// enter begins a call, leave ends it.
func (x *Index) enter() error {
	if !x.use.enter() {
		return kv.ErrClosed
	}
	return nil
}

func (x *Index) leave() { x.use.leave() }

func (x *Index) isClosed() bool { return x.use.closed() }

// enterWrite begins a writing call.
func (x *Index) enterWrite() error {
	if x.ro {
		return kv.ErrReadOnly
	}
	if err := x.enter(); err != nil {
		return err
	}
	if err := x.guard.err(); err != nil {
		x.use.leave()
		return err
	}
	return nil
}

// Writable returns the error that a batch would be refused with before it is looked at:
// kv.ErrReadOnly, kv.ErrClosed or [ErrFailed].
func (x *Index) Writable() error {
	err := x.enterWrite()
	if err == nil {
		x.use.leave()
	}
	return err
}

// Failed returns the failure after which nothing is written any more, nil if there was none.
func (x *Index) Failed() error { return x.guard.err() }

// usage counts running calls so that Close can wait for them.
type usage struct {
	state atomic.Int64 // calls, plus closedBit
	once  sync.Once
	idle  chan struct{} // closed when closed and idle
}

const closedBit = 1 << 40

func (u *usage) init() { u.idle = make(chan struct{}) }

func (u *usage) enter() bool {
	if u.state.Add(1) < closedBit {
		return true
	}
	u.leave()
	return false
}

func (u *usage) leave() {
	// A call that comes too late takes the count up and down once more.
	if u.state.Add(-1) == closedBit {
		u.once.Do(func() { close(u.idle) })
	}
}

// close makes further enters fail. The first call returns true.
func (u *usage) close() bool {
	for {
		s := u.state.Load()
		if s >= closedBit {
			return false
		}
		if u.state.CompareAndSwap(s, s+closedBit) {
			if s == 0 {
				u.once.Do(func() { close(u.idle) })
			}
			return true
		}
	}
}

func (u *usage) wait() { <-u.idle }

// logger receives Pebble's messages. A fatal error marks the index failed; the
// guard hides errors on which Pebble would exit.
type logger struct{ guard *guardFS }

func (logger) Infof(string, ...any)  {}
func (logger) Errorf(string, ...any) {}
func (l logger) Fatalf(format string, args ...any) {
	l.guard.fail("pebble", "", fmt.Errorf(format, args...))
}

func (u *usage) closed() bool { return u.state.Load() >= closedBit }
