package crashtest

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/must"
)

func write(t *testing.T, fs vfs.FS, name string, sync bool) error {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = f.Write([]byte("abc")); err == nil && sync {
		err = f.Sync()
	}
	return err
}

func exists(fs vfs.FS, name string) bool {
	_, err := fs.Stat(name)
	return err == nil
}

// Faults fails the operation At and, unless Once is set, the later ones.
func TestFaults(t *testing.T) {
	for _, once := range []bool{true, false} {
		f := Faults{Match: IsSync, At: 1, Once: once, Err: os.ErrPermission}
		fs := f.Wrap(vfs.NewMem())
		for i := range 4 {
			fails := i == 1 || i > 1 && !once
			if err := write(t, fs, "f", true); errors.Is(err, os.ErrPermission) != fails {
				t.Errorf("once %v: sync %d: %v", once, i, err)
			}
		}
		if want := map[bool]int64{true: 1, false: 3}[once]; f.Seen.Load() != 4 || f.Hits.Load() != want {
			t.Errorf("once %v: %d of %d operations failed", once, f.Hits.Load(), f.Seen.Load())
		}
		f.Off.Store(true)
		must.Do(t, write(t, fs, "f", true))
	}
}

// A file that is not there cannot be removed, nor used again as a log.
func TestWatchRemove(t *testing.T) {
	fs := Watch(vfs.NewMem(), func(errorfs.Op) error { return nil })
	if err := fs.Remove("f"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("remove: %v", err)
	}
	if _, err := fs.ReuseForWrite("f", "g", vfs.WriteCategoryUnspecified); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reuse: %v", err)
	}
}

// Flips changes one read, and says of which file.
func TestFlips(t *testing.T) {
	mem := vfs.NewMem()
	must.Do(t, write(t, mem, "f", true))
	f := Flips{At: 1}
	fs := f.Wrap(mem)
	for i := range 3 {
		file := must.Get(fs.Open("f"))(t)
		b := make([]byte, 3)
		if _, err := file.ReadAt(b, 0); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		must.Do(t, file.Close())
		if changed := string(b) != "abc"; changed != (i == 1) || (f.Path() == "f") != (i >= 1) {
			t.Errorf("read %d: %q, changed in %v", i, b, f.Path())
		}
	}
}

// A power cut takes what was not synced, and brings back files whose removal was not synced.
func TestDisk(t *testing.T) {
	var d *Disk
	var changes []errorfs.OpKind
	d = NewDisk(vfs.NewCrashableMem(), func(_ *Disk, op errorfs.Op) error {
		changes = append(changes, op.Kind)
		return nil
	})
	dir := must.Get(d.OpenDir("/"))(t)
	must.Do(t, write(t, d, "/synced", true))
	must.Do(t, dir.Sync())
	must.Do(t, write(t, d, "/unsynced", false))
	must.Do(t, d.Remove("/synced"))
	none, removed, all := d.Cut(0, 0, nil), d.Cut(0, 100, nil), d.Cut(100, 100, nil)
	for _, of := range []struct {
		what             string
		fs               vfs.FS
		synced, unsynced bool
	}{{"nothing", none, true, false}, {"the removals", removed, false, false}, {"all", all, false, true}} {
		if exists(of.fs, "/synced") != of.synced || exists(of.fs, "/unsynced") != of.unsynced {
			t.Errorf("with %s: synced file there %v, unsynced %v", of.what, exists(of.fs, "/synced"), exists(of.fs, "/unsynced"))
		}
	}
	must.Do(t, dir.Sync())
	if exists(d.Cut(0, 0, nil), "/synced") {
		t.Error("a removal that was synced came back")
	}
	n := len(changes)
	d.On(false)
	must.Do(t, write(t, d, "/other", true))
	if n == 0 || len(changes) != n {
		t.Errorf("%d changes, %d with the calls off", n, len(changes)-n)
	}
}
