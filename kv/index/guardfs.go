package index

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

// guardFS stands between Pebble and the file system because Pebble cannot
// survive errors of its log and its manifest: it panics with locks held, loops
// or hangs (docs/design/pebble-failures.md has the experiments). So it never
// sees one. At the first such error the guard marks the index failed and from
// then on
//
//   - nothing is written, renamed or removed below dir: the disk stays what a
//     power loss at that moment would have left, which Pebble can recover;
//   - Pebble gets the answer that its log, manifest, marker and directory writes
//     succeeded, so that its commit pipeline drains and Close ends;
//   - tables that Pebble still flushes go to memory, where Pebble can read them;
//     compactions wait for Close, so that memory stays bounded by the
//     memtables that existed.
//
// Commit looks at the failure after Pebble has returned and acknowledges
// nothing that was committed after it.
//
// Errors of table files are no failure, Pebble tries again with a new file.
// The guard adds the back-off that Pebble lacks, and gives up after
// maxTableErrors in a row.
//
// A directory that was moved, removed or replaced is such a failure too. The guard looks for it
// before a file is made, renamed or removed: the path may lead to another index by then.
type guardFS struct {
	vfs.FS                        // the real file system
	dir    string                 // the directory that Pebble owns
	lock   fileID                 // of its lock file, zero if unknown
	whole  atomic.Pointer[string] // see Index.PartOf
	mem    *vfs.MemFS
	pause  time.Duration // first back-off

	// onFull is called when the disk turned out to be full, onFail once at the
	// failure. Both may be called with locks of Pebble held.
	onFull, onFail func()

	failed  chan struct{} // closed by fail
	closing chan struct{} // closed by stop

	overOld atomic.Bool // the last log is written over a large old one

	logMu sync.Mutex
	logs  map[string]*logFile // logs on disk that Pebble made since Open, by path
	fresh bool                // new logs are not written over old ones

	mu        sync.Mutex
	opening   bool // compactions do not wait, Open waits for them
	failure   *failure
	tableErrs int   // table files in a row that could not be written
	outside   error // first error of a directory sync outside dir
}

// maxTableErrors with a first pause of a millisecond is about two seconds.
const maxTableErrors = 11

func newGuardFS(base vfs.FS, dir string, pause time.Duration) *guardFS {
	return &guardFS{
		FS: base, dir: dir, mem: vfs.NewMem(), pause: pause,
		onFull: func() {}, onFail: func() {}, logs: map[string]*logFile{},
		failed: make(chan struct{}), closing: make(chan struct{}),
		opening: true,
	}
}

// fail marks the index failed. Only the first call counts. It may be called
// with any lock of Pebble held.
func (g *guardFS) fail(op, path string, err error) {
	g.mu.Lock()
	first := g.failure == nil
	if first {
		g.failure = &failure{op: op, path: path, err: err}
		close(g.failed)
	}
	g.mu.Unlock()
	if first {
		g.onFail()
	}
}

// err is nil or the failure.
func (g *guardFS) err() error {
	select {
	case <-g.failed:
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.failure
	default:
		return nil
	}
}

func (g *guardFS) isFailed() bool { return g.err() != nil }

// mayNot reports whether no file below dir may be made, renamed or removed: the index is
// failed, or its directory is somewhere else.
func (g *guardFS) mayNot() bool { return g.isFailed() || g.here() != nil }

// opened ends the phase in which Open waits for compactions.
func (g *guardFS) opened() {
	g.mu.Lock()
	g.opening = false
	g.mu.Unlock()
}

// stop lets waiting compactions go.
func (g *guardFS) stop() { close(g.closing) }

// takeOutside returns and clears the first error of a directory sync outside
// dir. Pebble panics at such errors, so they are not returned to Pebble.
func (g *guardFS) takeOutside() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.outside
	g.outside = nil
	return err
}

// tableDone counts table files that could not be written, in a row.
func (g *guardFS) tableDone(path string, err error) {
	g.mu.Lock()
	if err == nil {
		g.tableErrs = 0
	} else {
		g.tableErrs++
	}
	give := g.tableErrs >= maxTableErrors
	g.mu.Unlock()
	if isFull(err) {
		g.onFull()
	}
	if give {
		g.fail("write table", path, err)
	}
}

// backOff waits before a table file is created after failed ones.
func (g *guardFS) backOff() {
	g.mu.Lock()
	n, opening := g.tableErrs, g.opening
	g.mu.Unlock()
	if n == 0 || opening {
		return
	}
	t := time.NewTimer(g.pause << min(n-1, 10))
	defer t.Stop()
	select {
	case <-t.C:
	case <-g.failed:
	case <-g.closing:
	}
}

// isFull reports whether err means that no space is left.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func isTable(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

func (g *guardFS) inside(name string) bool { return g.FS.PathDir(name) == g.dir }

func (g *guardFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !g.inside(name) {
		return g.FS.Create(name, category)
	}
	if isTable(name) {
		return g.createTable(name, category)
	}
	return g.createLog(name, func() (vfs.File, error) { return g.FS.Create(name, category) })
}

// ReuseForWrite implements vfs.FS. Pebble uses it for logs only. The old file may
// have been removed by trim.
func (g *guardFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.createLog(newname, func() (vfs.File, error) {
		g.logMu.Lock()
		defer g.logMu.Unlock()
		delete(g.logs, oldname)
		g.overOld.Store(false)
		if g.fresh {
			_ = g.FS.Remove(oldname) // garbage, as Pebble knows
			return g.FS.Create(newname, category)
		}
		f, err := g.FS.ReuseForWrite(oldname, newname, category)
		if errors.Is(err, os.ErrNotExist) {
			return g.FS.Create(newname, category)
		}
		if err == nil {
			old, err := f.Stat()
			g.overOld.Store(err != nil || old.Size() > flushAtClose)
		}
		return f, err
	})
}

// newLogs sets whether the next logs get files of their own. An old one may have the
// size of a memtable: the next Open would read it, and it takes space.
func (g *guardFS) newLogs(fresh bool) {
	g.logMu.Lock()
	g.fresh = fresh
	g.logMu.Unlock()
}

// logPaths returns the paths of the logs that Pebble made since Open.
func (g *guardFS) logPaths() []string {
	g.logMu.Lock()
	defer g.logMu.Unlock()
	return slices.Collect(maps.Keys(g.logs))
}

// trim removes the logs at paths that Pebble has closed. The contents of their
// memtables must be in tables. Pebble keeps such files to write later logs over them.
func (g *guardFS) trim(paths []string) (err error) {
	g.logMu.Lock()
	defer g.logMu.Unlock()
	for _, path := range paths {
		if f := g.logs[path]; f != nil && f.closed && !g.isFailed() {
			delete(g.logs, path)
			err = errors.Join(err, g.FS.Remove(path))
		}
	}
	return err
}

func (g *guardFS) createLog(name string, create func() (vfs.File, error)) (vfs.File, error) {
	if !g.mayNot() {
		f, err := create()
		if err == nil {
			file := &logFile{File: f, g: g, name: name, named: !isList(g.FS.PathBase(name))}
			if strings.HasSuffix(name, ".log") {
				g.logMu.Lock()
				g.logs[name] = file
				g.logMu.Unlock()
			}
			return file, nil
		}
		g.fail("create", name, err)
	}
	return &logFile{File: vfs.NewMemFile(nil), g: g, name: name}, nil
}

func (g *guardFS) createTable(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	g.backOff()
	if g.mayNot() {
		if category == "pebble-memtable-flush" {
			return g.mem.Create(g.FS.PathBase(name), category)
		}
		g.mu.Lock()
		opening := g.opening
		g.mu.Unlock()
		if category == "pebble-compaction" && !opening {
			<-g.closing
		}
		return nil, g.err()
	}
	f, err := g.FS.Create(name, category)
	if err != nil {
		g.tableDone(name, err)
		return nil, err
	}
	return &tableFile{File: f, g: g, name: name}, nil
}

func (g *guardFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if g.inside(name) && isTable(name) && g.isFailed() {
		if f, err := g.mem.Open(g.FS.PathBase(name)); err == nil {
			return f, nil
		}
	}
	f, err := g.FS.Open(name, opts...)
	g.logMu.Lock()
	defer g.logMu.Unlock()
	if log := g.logs[name]; log != nil && err == nil {
		return &logPart{f, log.written.Load()}, nil
	}
	return f, err
}

func (g *guardFS) Stat(name string) (vfs.FileInfo, error) {
	if g.inside(name) && isTable(name) && g.isFailed() {
		if fi, err := g.mem.Stat(g.FS.PathBase(name)); err == nil {
			return fi, nil
		}
	}
	return g.FS.Stat(name)
}

// List implements vfs.FS. Pebble lists its directory when it opens, and if its
// last listing fails, it does not stop its goroutines. So a failed index is
// listed as empty.
func (g *guardFS) List(dir string) ([]string, error) {
	names, err := g.FS.List(dir)
	if err != nil && dir == g.dir {
		if g.here() == nil {
			g.fail("list", dir, err)
		}
		return nil, nil
	}
	return names, err
}

func (g *guardFS) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &guardDir{File: f, g: g, name: name}, nil
}

// OpenReadWrite implements vfs.FS. Pebble does not use it in its directory.
func (g *guardFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if g.inside(name) {
		return nil, fmt.Errorf("index: open %s for update: %w", name, errors.ErrUnsupported)
	}
	return g.FS.OpenReadWrite(name, category, opts...)
}

func (g *guardFS) Link(oldname, newname string) error {
	if g.inside(newname) && g.mayNot() {
		return g.err()
	}
	return linkFS{g.FS}.Link(oldname, newname)
}

// Remove implements vfs.FS. A file that could not be removed is garbage and no
// failure.
func (g *guardFS) Remove(name string) error {
	if g.inside(name) && g.mayNot() {
		if isTable(name) {
			_ = g.mem.Remove(g.FS.PathBase(name))
		}
		return nil
	}
	g.logMu.Lock()
	delete(g.logs, name)
	g.logMu.Unlock()
	return g.FS.Remove(name)
}

func (g *guardFS) RemoveAll(name string) error {
	if (g.inside(name) || name == g.dir) && g.mayNot() {
		return nil
	}
	return g.FS.RemoveAll(name)
}

// Rename implements vfs.FS. Pebble renames only files that it never opens
// again.
func (g *guardFS) Rename(oldname, newname string) error {
	if !g.inside(newname) {
		return g.FS.Rename(oldname, newname)
	}
	if g.mayNot() {
		return nil
	}
	if err := g.FS.Rename(oldname, newname); err != nil {
		g.fail("rename", oldname, err)
	}
	return nil
}

func (g *guardFS) MkdirAll(dir string, perm os.FileMode) error {
	if dir == g.dir && g.mayNot() {
		return nil
	}
	if err := g.here(); err != nil { // a checkpoint in a removed database
		return err
	}
	return g.mkdirAll(dir, perm)
}

// mkdirAll is MkdirAll that does not make the directory of the database again if somebody
// removes it meanwhile.
func (g *guardFS) mkdirAll(dir string, perm os.FileMode) error {
	if g.lock == (fileID{}) {
		return g.FS.MkdirAll(dir, perm)
	}
	return osfs.MkdirBelow(g.FS, g.FS.PathDir(g.dir), dir, perm)
}

func (g *guardFS) Unwrap() vfs.FS { return g.FS }
