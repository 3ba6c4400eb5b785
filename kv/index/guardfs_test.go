package index

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
)

// oneFault fails one kind of operation on one path while it is armed, and counts
// how often it was asked for.
type oneFault struct {
	kind  errorfs.OpKind
	path  string
	err   error
	asked int
}

func (f *oneFault) guard(t *testing.T) (*guardFS, *vfs.MemFS) {
	t.Helper()
	mem := vfs.NewMem()
	for _, dir := range []string{"d", "elsewhere"} {
		must.Do(t, mem.MkdirAll(dir, 0o777))
	}
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind != f.kind || op.Path != f.path {
			return nil
		}
		f.asked++
		return f.err
	}))
	return newGuardFS(closeFS{fs, f}, "d", 1), mem
}

// closeFS fails to close files, which errorfs does not.
type closeFS struct {
	vfs.FS
	f *oneFault
}

func (c closeFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.Create(name, category)
	if err == nil && c.f.kind == errorfs.OpFileClose && c.f.path == name {
		f = closeFile{f, c.f}
	}
	return f, err
}

type closeFile struct {
	vfs.File
	f *oneFault
}

func (c closeFile) Close() error {
	c.f.asked++
	return errors.Join(c.File.Close(), c.f.err)
}

// guardOps are what Pebble does to its directory and beside it.
var guardOps = []struct {
	name  string
	kind  errorfs.OpKind
	path  string
	do    func(g *guardFS) error
	fails bool // the index; else the error is returned
	told  bool // later, by takeOutside
}{
	{"create log", errorfs.OpCreate, "d/1.log", createOf("d/1.log", nil), true, false},
	{"write log", errorfs.OpFileWrite, "d/1.log", createOf("d/1.log", func(f vfs.File) error { _, err := f.Write([]byte("x")); return err }), true, false},
	{"sync log", errorfs.OpFileSync, "d/1.log", createOf("d/1.log", vfs.File.Sync), true, false},
	{"sync data of log", errorfs.OpFileSyncData, "d/1.log", createOf("d/1.log", vfs.File.SyncData), true, false},
	{"sync log to", errorfs.OpFileSyncTo, "d/1.log", createOf("d/1.log", syncTo), true, false},
	{"close log", errorfs.OpFileClose, "d/1.log", createOf("d/1.log", nil), true, false},
	{"length of log", errorfs.OpFileStat, "d/1.log", createOf("d/1.log", func(f vfs.File) error { _, err := f.Stat(); return err }), true, false},
	{"create manifest", errorfs.OpCreate, "d/MANIFEST-000001", createOf("d/MANIFEST-000001", nil), true, false},
	{"rename", errorfs.OpRename, "d/a", func(g *guardFS) error { return g.Rename("d/a", "d/b") }, true, false},
	{"sync directory", errorfs.OpFileSync, "d", syncOf("d"), true, false},
	{"list", errorfs.OpList, "d", func(g *guardFS) error { _, err := g.List("d"); return err }, true, false},

	{"create table", errorfs.OpCreate, "d/2.sst", createOf("d/2.sst", nil), false, false},
	{"write table", errorfs.OpFileWrite, "d/2.sst", createOf("d/2.sst", func(f vfs.File) error { _, err := f.Write([]byte("x")); return err }), false, false},
	{"sync table", errorfs.OpFileSync, "d/2.sst", createOf("d/2.sst", vfs.File.Sync), false, false},
	{"sync data of table", errorfs.OpFileSyncData, "d/2.sst", createOf("d/2.sst", vfs.File.SyncData), false, false},
	{"sync table to", errorfs.OpFileSyncTo, "d/2.sst", createOf("d/2.sst", syncTo), false, false},
	{"close table", errorfs.OpFileClose, "d/2.sst", createOf("d/2.sst", nil), false, false},

	{"create elsewhere", errorfs.OpCreate, "elsewhere/1.log", createOf("elsewhere/1.log", nil), false, false},
	{"write elsewhere", errorfs.OpFileWrite, "elsewhere/1.log", createOf("elsewhere/1.log", func(f vfs.File) error { _, err := f.Write([]byte("x")); return err }), false, false},
	{"rename elsewhere", errorfs.OpRename, "elsewhere/a", func(g *guardFS) error { return g.Rename("elsewhere/a", "elsewhere/b") }, false, false},
	{"sync elsewhere", errorfs.OpFileSync, "elsewhere", syncOf("elsewhere"), false, true},
	{"list elsewhere", errorfs.OpList, "elsewhere", func(g *guardFS) error { _, err := g.List("elsewhere"); return err }, false, false},
}

func createOf(name string, do func(vfs.File) error) func(*guardFS) error {
	return func(g *guardFS) error {
		f, err := g.Create(name, "pebble-memtable-flush")
		if err != nil {
			return err
		}
		if do != nil {
			err = do(f)
		}
		return errors.Join(err, f.Close())
	}
}

func syncTo(f vfs.File) error {
	_, err := f.SyncTo(1)
	return err
}

func syncOf(dir string) func(*guardFS) error {
	return func(g *guardFS) error {
		d, err := g.OpenDir(dir)
		if err != nil {
			return err
		}
		return errors.Join(d.Sync(), d.Close())
	}
}

// Each operation reaches the file system. An error of one is a failure of the
// index, that Pebble does not see; or Pebble's to deal with; or kept for the caller
// of Pebble.
func TestGuardPassesOn(t *testing.T) {
	for _, op := range guardOps {
		f := oneFault{kind: op.kind, path: op.path}
		g, mem := f.guard(t)
		for _, dir := range []string{"d", "elsewhere"} {
			must.Do(t, writeSmall(mem, dir+"/a", nil))
		}
		if err := op.do(g); err != nil || g.err() != nil || f.asked != 1 {
			t.Errorf("%s: %v, %v, asked for %d times", op.name, err, g.err(), f.asked)
		}
		f = oneFault{kind: op.kind, path: op.path, err: errors.New("broken")}
		g, mem = f.guard(t)
		for _, dir := range []string{"d", "elsewhere"} {
			must.Do(t, writeSmall(mem, dir+"/a", nil))
		}
		told := 0
		g.onFail = func() { told++ }
		err, failed, outside := op.do(g), g.err(), g.takeOutside()
		if op.fails {
			if err != nil || !errors.Is(failed, f.err) || outside != nil || told != 1 {
				t.Errorf("%s fails: %v, %v, %v, told %d times", op.name, err, failed, outside, told)
			}
			continue
		}
		if failed != nil || told != 0 || errors.Is(outside, f.err) != op.told || errors.Is(err, f.err) == op.told {
			t.Errorf("%s fails: %v, %v, %v, told %d times", op.name, err, failed, outside, told)
		}
		if g.takeOutside() != nil {
			t.Errorf("%s: told twice", op.name)
		}
		g.mu.Lock()
		if counted := g.tableErrs == 1; counted != isTable(op.path) {
			t.Errorf("%s: %d failed tables", op.name, g.tableErrs)
		}
		g.mu.Unlock()
	}
}

// The holder of a reserve learns that the disk is full.
func TestGuardTellsOfAFullDisk(t *testing.T) {
	for _, op := range guardOps {
		if op.kind != errorfs.OpFileWrite || strings.HasPrefix(op.path, "elsewhere") {
			continue
		}
		f := oneFault{kind: op.kind, path: op.path, err: fmt.Errorf("write: %w", syscall.ENOSPC)}
		g, _ := f.guard(t)
		full := 0
		g.onFull = func() { full++ }
		_ = op.do(g)
		if full != 1 {
			t.Errorf("%s: told %d times", op.name, full)
		}
	}
}

// After a failure the directory is frozen, and what lies elsewhere is not.
func TestFrozenIsTheDirectoryAlone(t *testing.T) {
	var f oneFault
	g, mem := f.guard(t)
	g.fail("write", "d/1.log", errors.New("broken"))
	for _, name := range []string{"elsewhere/a", "elsewhere/old", "d/1.sst"} {
		must.Do(t, writeSmall(mem, name, []byte("x")))
	}
	if err := errors.Join(
		g.Rename("elsewhere/a", "elsewhere/b"), g.Remove("elsewhere/old"), g.Link("d/1.sst", "elsewhere/1.sst"),
		g.MkdirAll("elsewhere/sub", 0o777), createOf("elsewhere/2.log", func(f vfs.File) error { _, err := f.Write([]byte("y")); return err })(g),
		syncOf("elsewhere")(g), g.RemoveAll("elsewhere/sub"),
	); err != nil {
		t.Error(err)
	}
	names, err := mem.List("elsewhere")
	if err != nil || len(names) != 3 {
		t.Errorf("%q, %v", names, err)
	}
	for name, want := range map[string]string{"b": "x", "1.sst": "x", "2.log": "y"} {
		if b, err := ReadSmall(mem, "elsewhere/"+name); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if _, err := g.OpenReadWrite("d/1.sst", ""); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("for update: %v", err)
	}
	if w, err := g.OpenReadWrite("elsewhere/b", ""); err != nil {
		t.Error(err)
	} else if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// A directory that cannot be listed is not taken for an empty one, in which a new
// index would be made.
func TestListingFails(t *testing.T) {
	mem := vfs.NewMem()
	x := mustOpen(t, "d", small(mem))
	must.Do(t, put(x, SpaceMeta, "k", "v", true))
	mustClose(t, x)
	for k := int64(0); ; k++ {
		f := crashtest.Faults{Err: io.ErrUnexpectedEOF, Once: true, At: k, Match: func(op errorfs.Op) bool { return op.Kind == errorfs.OpList }}
		o := small(f.Wrap(mem))
		x, err := Open("d", o)
		if err == nil {
			err = x.Close()
		}
		if f.Hits.Load() == 0 {
			if err != nil || k == 0 {
				t.Fatalf("%d listings, %v", k, err)
			}
			break
		}
		if errors.Is(err, ErrNotExist) || errors.Is(err, os.ErrNotExist) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("listing %d: %v", k, err)
		}
		x = mustOpen(t, "d", &Options{FS: mem})
		if v, err := x.Get(SpaceMeta, []byte("k")); err != nil || string(v) != "v" {
			t.Fatalf("listing %d: %q, %v", k, v, err)
		}
		mustClose(t, x)
	}
}

// A log is written over an old one, except for the last, and a large old one is
// remembered.
func TestLastLogIsNew(t *testing.T) {
	for _, c := range []struct {
		size        int
		last, large bool
	}{{10, false, false}, {flushAtClose, false, false}, {flushAtClose + 1, false, true}, {flushAtClose + 1, true, false}} {
		var f oneFault
		g, mem := f.guard(t)
		must.Do(t, writeSmall(mem, "d/1.log", make([]byte, c.size)))
		if c.last {
			g.newLogs(true)
		}
		log := must.Get(g.ReuseForWrite("d/1.log", "d/2.log", ""))(t)
		fi, err := log.Stat()
		if err = errors.Join(err, log.Close()); err != nil || (fi.Size() == 0) != c.last || g.overOld.Load() != c.large {
			t.Errorf("%+v: %d bytes, over a large one: %v, %v", c, fi.Size(), g.overOld.Load(), err)
		}
		if names, err := mem.List("d"); err != nil || len(names) != 1 || names[0] != "2.log" {
			t.Errorf("%+v: %q, %v", c, names, err)
		}
	}
}

// The pause before the next table doubles with each that could not be written, up
// to a bound.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pause = time.Millisecond
		for errs, want := range map[int]time.Duration{0: 0, 1: pause, 2: 2 * pause, 5: 16 * pause, 11: 1024 * pause, 12: 1024 * pause} {
			g := newGuardFS(vfs.NewMem(), "d", pause)
			g.opened()
			g.tableErrs = errs
			begin := time.Now()
			g.backOff()
			if got := time.Since(begin); got != want {
				t.Errorf("after %d errors: %v, want %v", errs, got, want)
			}
		}
		g := newGuardFS(vfs.NewMem(), "d", pause)
		g.tableErrs = 5
		begin := time.Now()
		g.backOff()
		g.opened()
		g.stop()
		g.backOff()
		if got := time.Since(begin); got != 0 {
			t.Errorf("while it opens and when it ends: %v", got)
		}
	})
}
