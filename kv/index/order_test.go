package index

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/race"
	"github.com/zarrdb/zarrdb/kv"
)

// A batch without entries that is to be synced makes durable what was committed
// before it.
func TestEmptyBatchSyncs(t *testing.T) {
	mem := vfs.NewCrashableMem()
	x := mustOpen(t, "d", small(mem))
	must.Do(t, put(x, SpaceMeta, "k", "v", false))
	b := x.NewBatch()
	must.Do(t, b.Commit(true))
	b.Close()
	y := mustOpen(t, "d", &Options{FS: mem.CrashClone(vfs.CrashCloneCfg{})})
	if v, err := y.Get(SpaceMeta, []byte("k")); err != nil || string(v) != "v" {
		t.Errorf("%q, %v", v, err)
	}
	mustClose(t, y)
	mustClose(t, x)
}

// At every moment of making an index a power cut leaves an index, or what Open with
// Create makes one of. What was committed is there.
func TestPowerCutWhileMaking(t *testing.T) {
	type image struct {
		fs    *vfs.MemFS
		at    string
		stays bool // the index
		key   bool // what was committed
	}
	mem := vfs.NewCrashableMem()
	var images []image
	var made, wrote atomic.Bool
	rng := rand.New(rand.NewPCG(1, 1))
	fs := crashtest.NewDisk(mem, func(d *crashtest.Disk, op errorfs.Op) error {
		for _, percent := range []int{0, 50, 100} {
			images = append(images, image{
				d.Cut(percent, percent, rng), fmt.Sprint(op.Kind, " ", op.Path, ", ", percent, " %"),
				made.Load(), wrote.Load(),
			})
		}
		return nil
	})
	x := mustOpen(t, "d", small(fs))
	made.Store(true)
	must.Do(t, put(x, SpaceMeta, "k", "v", true))
	wrote.Store(true)
	must.Do(t, x.Flush())
	mustClose(t, x)
	if len(images) < 100 {
		t.Errorf("only %d moments", len(images))
	}
	for i, c := range images {
		if (testing.Short() || race.Enabled) && i%5 != 0 {
			continue
		}
		x, err := Open("d", &Options{FS: c.fs, MemTableBytes: 256 << 10, MinFreeBytes: 1})
		if errors.Is(err, ErrNotExist) && !c.stays {
			x, err = Open("d", small(c.fs))
		}
		if err != nil {
			t.Errorf("at %s: %v", c.at, err)
			continue
		}
		if v, err := x.Get(SpaceMeta, []byte("k")); c.key && (err != nil || string(v) != "v") {
			t.Errorf("at %s: %q, %v", c.at, v, err)
		}
		if err := errors.Join(put(x, SpaceMeta, "l", "w", true), x.Close()); err != nil {
			t.Errorf("at %s: %v", c.at, err)
		}
	}
}

// Files of others are neither removed nor built upon, and a directory that cannot
// be looked into is not an empty one.
func TestBegun(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		files string
		kind  errorfs.OpKind // that fails
		begun bool
		err   error
	}{
		{"", 0, false, nil},
		{"LOCK HOLDER", 0, false, nil},
		{"CREATING 000001.log", 0, true, nil},
		{"FORMAT", 0, true, nil},
		{"LOCK 000001.sst", 0, false, kv.ErrCorrupt},
		{"MANIFEST-000001", 0, false, kv.ErrCorrupt},
		{"marker.manifest.000001.MANIFEST-000001", 0, false, kv.ErrCorrupt},
		{"notes", 0, false, os.ErrExist},
		{"000001.sst.bak", 0, false, os.ErrExist},
		{"1.txt", 0, false, os.ErrExist},
		{"FORMAT", errorfs.OpStat, false, broken},
		{"", errorfs.OpList, false, broken},
	} {
		mem := vfs.NewMem()
		must.Do(t, mem.MkdirAll("d", 0o777))
		for _, name := range strings.Fields(c.files) {
			must.Do(t, writeSmall(mem, "d/"+name, nil))
		}
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == c.kind && c.kind != 0 {
				return broken
			}
			return nil
		}))
		begun, err := Begun(fs, "d")
		if begun != c.begun || !errors.Is(err, c.err) {
			t.Errorf("%q: %v, %v", c.files, begun, err)
		}
		if c.kind != 0 || c.err == nil {
			continue
		}
		if _, err := Open("d", small(mem)); !errors.Is(err, c.err) {
			t.Errorf("%q: open: %v", c.files, err)
		}
		for _, name := range strings.Fields(c.files) {
			if _, err := mem.Stat("d/" + name); err != nil {
				t.Errorf("%q: %v", c.files, err)
			}
		}
	}
	if begun, err := Begun(vfs.NewMem(), "nothing"); begun || err != nil {
		t.Errorf("nothing: %v, %v", begun, err)
	}
}

// A clone is not made over something, and leaves it as it is.
func TestCloneRefusesWhatIsThere(t *testing.T) {
	mem := vfs.NewMem()
	mustClose(t, mustOpen(t, "d", small(mem)))
	must.Do(t, mem.MkdirAll("to", 0o777))
	must.Do(t, writeSmall(mem, "to/notes", []byte("x")))
	if err := Clone(mem, "d", "to"); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
	if b, err := ReadSmall(mem, "to/notes"); err != nil || string(b) != "x" {
		t.Errorf("%q, %v", b, err)
	}
	if err := Clone(mem, "d", "copy"); err != nil {
		t.Error(err)
	}
	mustClose(t, mustOpen(t, "copy", &Options{FS: mem}))
}

// Whichever operation on a table of an ingest fails, Ingest says so and stores
// nothing. A full disk is ErrFull, and the index goes on.
func TestIngestFails(t *testing.T) {
	for _, broken := range []error{errors.New("broken"), syscall.ENOSPC} {
		failed := 0
		for k := int64(0); ; k++ {
			f := crashtest.Faults{Err: broken, Once: true, At: k, Match: func(op errorfs.Op) bool {
				return crashtest.IsWrite(op) && strings.HasPrefix(op.Path, "d/"+ingestDir+"/") && op.Kind != errorfs.OpRemove
			}}
			mem := vfs.NewMem()
			x := mustOpen(t, "d", small(f.Wrap(mem)))
			list := pages(0, 50)
			err := x.Ingest(seqOf(list, nil))
			if f.Hits.Load() == 0 {
				if err != nil || failed < 3 {
					t.Fatalf("after %d operations, of which %d failed: %v", k, failed, err)
				}
				mustClose(t, x)
				break
			}
			_, gerr := x.GetPage(context.Background(), list[0].Name)
			if err == nil && gerr != nil || err != nil && !errors.Is(gerr, ErrNotFound) {
				t.Errorf("operation %d: %v, and then %v", k, err, gerr)
			}
			if err != nil && (!errors.Is(err, broken) || errors.Is(err, ErrFull) != (broken == syscall.ENOSPC)) {
				t.Errorf("operation %d: %v", k, err)
			}
			if err != nil {
				failed++
			}
			if names, _ := mem.List("d/" + ingestDir); len(names) > 0 {
				t.Errorf("operation %d: %q is left", k, names)
			}
			if err := x.Ingest(seqOf(list, nil)); err != nil {
				t.Errorf("operation %d: again: %v", k, err)
			}
			mustClose(t, x)
		}
	}
	twice := append(pages(0, 1), pages(0, 1)...)
	x := mustOpen(t, "d", small(vfs.NewMem()))
	if err := x.Ingest(seqOf(twice, nil)); err == nil {
		t.Error("one page twice")
	}
	mustClose(t, x)
	// What a crash left of one is removed.
	mem := vfs.NewMem()
	mustClose(t, mustOpen(t, "d", small(mem)))
	must.Do(t, mem.MkdirAll("d/"+ingestDir, 0o777))
	mustClose(t, mustOpen(t, "d", &Options{FS: mem}))
	if _, err := mem.Stat("d/" + ingestDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}

// A copy of which something could not be written is an error and does not stay,
// and an index outside of which something failed goes on.
func TestCheckpointFails(t *testing.T) {
	broken := errors.New("broken")
	for k := int64(0); ; k++ {
		var copying atomic.Bool
		f := crashtest.Faults{Err: broken, Once: true, At: k, Match: func(op errorfs.Op) bool {
			return copying.Load() && crashtest.IsWrite(op) && !strings.HasPrefix(op.Path, "d") && op.Kind != errorfs.OpRemoveAll
		}}
		mem := vfs.NewMem()
		x := mustOpen(t, "d", small(f.Wrap(mem)))
		must.Do(t, errors.Join(put(x, SpaceMeta, "k", "v", true), x.Flush(), put(x, SpaceMeta, "l", "w", true)))
		copying.Store(true)
		err := x.Checkpoint("copy")
		if f.Hits.Load() == 0 {
			if err != nil || k < 5 {
				t.Fatalf("after %d operations: %v", k, err)
			}
			y := mustOpen(t, "copy", &Options{FS: mem})
			if v, err := y.Get(SpaceMeta, []byte("l")); err != nil || string(v) != "w" {
				t.Errorf("%q, %v", v, err)
			}
			mustClose(t, y)
			mustClose(t, x)
			break
		}
		if !errors.Is(err, broken) {
			t.Errorf("operation %d: %v", k, err)
		}
		if Complete(mem, "copy") {
			t.Errorf("operation %d: the copy is there", k)
		}
		if err := x.guard.err(); err != nil {
			t.Errorf("operation %d: %v", k, err)
		}
		if err := x.Checkpoint("another"); err != nil {
			t.Errorf("operation %d: another: %v", k, err)
		}
		mustClose(t, x)
	}
}

// Commits wait for a checkpoint, and checkpoints and sweeps for what is put.
func TestLocksAreHeld(t *testing.T) {
	var x *Index
	var inLog, inCopy, inTables func()
	call := func(fn *func()) {
		if f := *fn; f != nil {
			*fn = nil
			f()
		}
	}
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch {
		case op.Kind == errorfs.OpLink && strings.HasPrefix(op.Path, "d/"+ingestDir):
			call(&inTables)
		case op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".log") && strings.HasPrefix(op.Path, "d/"):
			call(&inLog)
		case op.Kind == errorfs.OpMkdirAll && op.Path == "copy":
			call(&inCopy)
		}
		return nil
	}))
	x = mustOpen(t, "d", small(fs))
	seen := 0
	inCopy = func() {
		seen++
		if x.quiet.TryRLock() {
			t.Error("commits go on beside a checkpoint")
			x.quiet.RUnlock()
		}
	}
	must.Do(t, x.Checkpoint("copy"))
	held := func() {
		seen++
		if x.quiet.TryLock() {
			x.quiet.Unlock()
			t.Error("a checkpoint goes on beside a commit")
		}
		if x.sweepMu.TryLock() {
			x.sweepMu.Unlock()
			t.Error("a sweep begins or deletes beside a commit")
		}
	}
	inLog = held
	putPages(t, x, 0, 3)
	inTables = held
	must.Do(t, x.Ingest(seqOf(pages(10, 20), nil)))
	if seen != 3 {
		t.Errorf("looked %d times", seen)
	}
	mustClose(t, x)
}

// What Pebble tells opens and closes the gate of writers.
func TestPebbleIsHeard(t *testing.T) {
	x := mustOpen(t, "d", small(vfs.NewMem()))
	defer mustClose(t, x)
	x.gate.check.Store(false)
	x.opts.EventListener.FlushEnd(pebble.FlushInfo{})
	if !x.gate.check.Load() {
		t.Error("a flush is not noticed")
	}
	x.gate.mu.Lock()
	turn := x.gate.turn
	x.gate.mu.Unlock()
	x.opts.EventListener.CompactionEnd(pebble.CompactionInfo{})
	x.gate.mu.Lock()
	if x.gate.turn == turn {
		t.Error("a compaction is not noticed")
	}
	x.gate.mu.Unlock()
	x.opts.EventListener.DataCorruption(pebble.DataCorruptionInfo{}) // does not end the process
}

// A lock that cannot be made is not one that somebody holds.
func TestLockCannotBeMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	must.Do(t, os.MkdirAll(filepath.Join(dir, lockFile), 0o777))
	_, err := Open(dir, &Options{Create: true})
	if err == nil || errors.Is(err, ErrLocked) {
		t.Error(err)
	}
}

// Keys of deletes are bounded like those of values.
func TestLimitsOfDeletes(t *testing.T) {
	x := mustOpen(t, "d", small(vfs.NewMem()))
	defer mustClose(t, x)
	for n, want := range map[int]error{maxKeyBytes: nil, maxKeyBytes + 1: errTooLarge} {
		b := x.NewBatch()
		b.Delete(SpaceMeta, make([]byte, n))
		if err := b.Commit(true); !errors.Is(err, want) {
			t.Errorf("%d: %v", n, err)
		}
		b.Close()
	}
}

// A batch is committed once.
func TestBatchIsUsedUp(t *testing.T) {
	x := mustOpen(t, "d", small(vfs.NewMem()))
	defer mustClose(t, x)
	b := x.NewBatch()
	b.Set(SpaceMeta, []byte("k"), []byte("v"))
	must.Do(t, b.Commit(false))
	if err := b.Commit(false); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("again: %v", err)
	}
	b.Set(SpaceMeta, []byte("l"), []byte("v"))
	if err := b.Commit(false); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("with more: %v", err)
	}
	b.Close()
	if err := b.Commit(true); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// stepsFS does something before each look at the file system.
type stepsFS struct {
	vfs.FS
	before func()
}

func (f stepsFS) Stat(name string) (vfs.FileInfo, error) {
	f.before()
	return f.FS.Stat(name)
}

func (f stepsFS) List(dir string) ([]string, error) {
	f.before()
	return f.FS.List(dir)
}

// An index that another process makes meanwhile is not taken for a damaged one.
func TestBegunBesideCreation(t *testing.T) {
	for looks := range 3 {
		for first := range 5 {
			for then := first; then < 5; then++ {
				fs := vfs.NewMem()
				must.Do(t, fs.MkdirAll("d", 0o755))
				steps := []func() error{
					func() error { return writeSmall(fs, "d/LOCK", nil) },
					func() error { return writeSmall(fs, "d/CREATING", nil) },
					func() error { return writeSmall(fs, "d/MANIFEST-000001", nil) },
					func() error { return finishCreate(fs, "d") },
				}
				done := 0
				to := func(n int) {
					for ; done < n; done++ {
						must.Do(t, steps[done]())
					}
				}
				to(first)
				look := 0
				begun, err := Begun(stepsFS{fs, func() {
					if look == looks {
						to(then)
					}
					look++
				}}, "d")
				if err != nil || first >= 2 && !begun {
					t.Errorf("%d steps of a creation were done, %d from look %d on: %v, %v", first, then, looks, begun, err)
				}
			}
		}
	}
}
