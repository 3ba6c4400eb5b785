package index

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

// recoverable makes an index with tables, of which some are only left behind, and
// with commits in the log. The checkpoint copy has the tables.
func recoverable(t *testing.T) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewCrashableMem()
	x := mustOpen(t, "d", small(mem))
	if err := errors.Join(put(x, SpaceRef, "gone", "old", true), put(x, SpaceRef, "kept", "old", true), x.Flush()); err != nil {
		t.Fatal(err)
	}
	left := tablesOf(t, mem)
	for _, name := range left {
		if err := mem.Link("d/"+name, "left-"+name); err != nil {
			t.Fatal(err)
		}
	}
	b := x.NewBatch()
	b.Delete(SpaceRef, []byte("gone"))
	b.Set(SpaceRef, []byte("kept"), []byte("new"))
	if err := errors.Join(b.Commit(true), x.Flush()); err != nil {
		t.Fatal(err)
	}
	b.Close()
	// The tombstone and the sequence numbers are gone from what this makes.
	if err := x.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
		t.Fatal(err)
	}
	if err := x.Checkpoint("copy"); err != nil {
		t.Fatal(err)
	}
	putLogged(t, x)
	mustClose(t, x)
	for _, name := range left {
		if slices.Contains(tablesOf(t, mem), name) {
			t.Fatalf("%s is still a table of the index", name)
		}
		if err := mem.Rename("left-"+name, "d/"+name); err != nil {
			t.Fatal(err)
		}
	}
	return mem
}

// putLogged makes three commits of 40 KiB.
func putLogged(t *testing.T, x *Index) {
	t.Helper()
	for i := range 3 {
		if err := put(x, SpaceRef, fmt.Sprint("logged", i), strings.Repeat("v", 40<<10), true); err != nil {
			t.Fatal(err)
		}
	}
}

func tablesOf(t *testing.T, fs vfs.FS) (tables []string) {
	t.Helper()
	names, err := fs.List("d")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if isTable(name) {
			tables = append(tables, name)
		}
	}
	return tables
}

func checkRecovered(t *testing.T, fs vfs.FS, dir string, logged int) {
	t.Helper()
	x := mustOpen(t, dir, &Options{FS: fs, ReserveBytes: -1})
	defer mustClose(t, x)
	if v, err := x.Get(SpaceRef, []byte("gone")); !errors.Is(err, ErrNotFound) {
		t.Errorf("what was deleted is back: %q, %v", v, err)
	}
	if v, err := x.Get(SpaceRef, []byte("kept")); err != nil || string(v) != "new" {
		t.Errorf("kept: %q, %v", v, err)
	}
	for i := range 3 {
		_, err := x.Get(SpaceRef, fmt.Append(nil, "logged", i))
		if i < logged && err != nil || i >= logged && !errors.Is(err, ErrNotFound) {
			t.Errorf("of %d commits in the log, %d: %v", logged, i, err)
		}
	}
	if err := put(x, SpaceRef, "more", "v", true); err != nil {
		t.Error(err)
	}
}

// current is the list of tables that counts, without its copy.
func current(t *testing.T, fs vfs.FS) string {
	t.Helper()
	names, err := fs.List("d")
	if err != nil {
		t.Fatal(err)
	}
	list, err := currentList(names)
	if err != nil {
		t.Fatal(err)
	}
	return "d/" + list
}

func mustRead(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	b, err := readList(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// newestLog is the path of the log with the highest number.
func newestLog(t *testing.T, fs vfs.FS) string {
	t.Helper()
	name := ""
	for _, n := range logsOf(t, fs, "d") {
		if strings.HasSuffix(n, ".log") {
			name = max(name, n)
		}
	}
	return "d/" + name
}

// Whatever small file is gone or damaged, the index comes back as it was.
func TestRecover(t *testing.T) {
	removed := func(t *testing.T, fs vfs.FS, prefix string) {
		t.Helper()
		for _, name := range mustList(t, fs, "d") {
			if strings.HasPrefix(name, prefix) {
				if err := fs.Remove("d/" + name); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for name, c := range map[string]struct {
		spoil  func(t *testing.T, fs vfs.FS)
		logged int
	}{
		"nothing":         {func(*testing.T, vfs.FS) {}, 3},
		"format":          {func(t *testing.T, fs vfs.FS) { removed(t, fs, "FORMAT") }, 3},
		"format is noise": {func(t *testing.T, fs vfs.FS) { writeWhole(t, fs, "d/FORMAT", []byte("noise")) }, 3},
		"options":         {func(t *testing.T, fs vfs.FS) { removed(t, fs, "OPTIONS") }, 3},
		"markers":         {func(t *testing.T, fs vfs.FS) { removed(t, fs, "marker.") }, 3},
		"format marker":   {func(t *testing.T, fs vfs.FS) { removed(t, fs, "marker.format-version") }, 3},
		"list is noise":   {func(t *testing.T, fs vfs.FS) { writeWhole(t, fs, current(t, fs), []byte("noise")) }, 3},
		"list is empty":   {func(t *testing.T, fs vfs.FS) { writeWhole(t, fs, current(t, fs), nil) }, 3},
		"list is gone": {func(t *testing.T, fs vfs.FS) {
			if err := fs.Remove(current(t, fs)); err != nil {
				t.Fatal(err)
			}
		}, 3},
		"list and markers": {func(t *testing.T, fs vfs.FS) {
			if err := fs.Remove(current(t, fs)); err != nil {
				t.Fatal(err)
			}
			removed(t, fs, "marker.")
		}, 3},
		"copy of the list is noise": {func(t *testing.T, fs vfs.FS) { writeWhole(t, fs, current(t, fs)+copySuffix, []byte("noise")) }, 3},
		"log": {func(t *testing.T, fs vfs.FS) {
			if err := fs.Remove(newestLog(t, fs)); err != nil {
				t.Fatal(err)
			}
		}, 0},
		"byte of the log": {func(t *testing.T, fs vfs.FS) { flipByte(t, fs, newestLog(t, fs), 60<<10) }, 1},
		"logs and their mark": {func(t *testing.T, fs vfs.FS) {
			removed(t, fs, markPrefix)
			for _, l := range logsIn(mustList(t, fs, "d")) {
				removed(t, fs, l.name())
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			mem := recoverable(t)
			c.spoil(t, mem)
			ends, err := Recover(mem, "d", "to")
			if err != nil {
				t.Fatal(err)
			}
			if (ends != nil) != (c.logged < 3) || ends != nil && !errors.Is(ends, kv.ErrCorrupt) {
				t.Errorf("it ends early: %v", ends)
			}
			checkRecovered(t, mem, "to", c.logged)
			if _, err := Recover(mem, "d", "to"); !errors.Is(err, os.ErrExist) {
				t.Errorf("onto something: %v", err)
			}
		})
	}
}

func mustList(t *testing.T, fs vfs.FS, dir string) []string {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Tables that are gone, or were cut off, are taken from a checkpoint.
func TestRecoverTakesTablesOfCopies(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(t *testing.T, fs vfs.FS)
		logged int
	}{
		"deleted": {func(t *testing.T, fs vfs.FS) {
			for _, name := range tablesOf(t, fs) {
				if err := fs.Remove("d/" + name); err != nil {
					t.Fatal(err)
				}
			}
		}, 3},
		"cut off": {func(t *testing.T, fs vfs.FS) {
			for _, name := range tablesOf(t, fs) {
				if err := fs.Remove("d/" + name); err != nil { // the copy has links
					t.Fatal(err)
				}
				writeWhole(t, fs, "d/"+name, []byte("cut"))
			}
		}, 3},
		"deleted, with the log": {func(t *testing.T, fs vfs.FS) {
			for _, name := range tablesOf(t, fs) {
				if err := fs.Remove("d/" + name); err != nil {
					t.Fatal(err)
				}
			}
			if err := fs.Remove(newestLog(t, fs)); err != nil {
				t.Fatal(err)
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			mem := recoverable(t)
			c.spoil(t, mem)
			if x, err := Open("d", &Options{FS: mem, ReadOnly: true}); !errors.Is(err, kv.ErrCorrupt) {
				t.Fatalf("%v, %v", x, err)
			}
			before := mustList(t, mem, "copy")
			ends, err := Recover(mem, "d", "to", "copy")
			if err != nil || (ends != nil) != (c.logged < 3) {
				t.Fatalf("%v, %v", ends, err)
			}
			checkRecovered(t, mem, "to", c.logged)
			if after := mustList(t, mem, "copy"); len(after) != len(before) {
				t.Errorf("the copy has %q, had %q", after, before)
			}
		})
	}
}

// A log that is not needed any more may be gone: the new index ends at the one that
// is.
func TestRecoverNeedsNoOldLog(t *testing.T) {
	mem := vfs.NewCrashableMem()
	x := mustOpen(t, "d", small(mem))
	if err := errors.Join(put(x, SpaceRef, "kept", "new", true), x.Flush()); err != nil {
		t.Fatal(err)
	}
	putLogged(t, x)
	mustClose(t, x)
	fs := mem.CrashClone(vfs.CrashCloneCfg{})
	var marks logMarks
	marks.find(mustList(t, fs, "d"))
	newest := newestLog(t, fs)
	old := 0
	for _, l := range marks.logs {
		if path := "d/" + l.name(); path != newest {
			old++
			if err := fs.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	if old += len(marks.missing); old == 0 {
		t.Fatal("the mark names no old log")
	}
	mustClose(t, mustOpen(t, "d", &Options{FS: fs, ReadOnly: true}))
	flipByte(t, fs, newest, 60<<10)
	if ends, err := Recover(fs, "d", "to"); err != nil || !errors.Is(ends, kv.ErrCorrupt) {
		t.Fatalf("%v, %v", ends, err)
	}
	checkRecovered(t, fs, "to", 1)
}

// If more is lost, it is an error, and nothing is left of the attempt.
func TestRecoverRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, fs vfs.FS)
		err   error
	}{
		"directory": {func(t *testing.T, fs vfs.FS) {
			if err := fs.RemoveAll("d"); err != nil {
				t.Fatal(err)
			}
		}, ErrNotExist},
		"newer": {func(t *testing.T, fs vfs.FS) { writeWhole(t, fs, "d/FORMAT", []byte("zarrdb index 9\n")) }, ErrFormat},
		"list and copy": {func(t *testing.T, fs vfs.FS) {
			list := current(t, fs)
			writeWhole(t, fs, list, nil)
			writeWhole(t, fs, list+copySuffix, []byte("noise"))
		}, kv.ErrCorrupt},
		"list and copy in the middle": {func(t *testing.T, fs vfs.FS) {
			list := current(t, fs)
			flipByte(t, fs, list, 20)
			flipByte(t, fs, list+copySuffix, 20)
		}, kv.ErrCorrupt},
		"all tables": {func(t *testing.T, fs vfs.FS) {
			for _, name := range tablesOf(t, fs) {
				if err := fs.Remove("d/" + name); err != nil {
					t.Fatal(err)
				}
			}
		}, kv.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			mem := recoverable(t)
			c.spoil(t, mem)
			if _, err := Recover(mem, "d", "to"); !errors.Is(err, c.err) {
				t.Error(err)
			}
			if _, err := mem.Stat("to"); err == nil {
				t.Error("something is left")
			}
		})
	}
}

// A list of tables that ends before its copy was cut off.
func TestListIsCutOff(t *testing.T) {
	mem := recoverable(t)
	list := current(t, mem)
	whole := mustRead(t, mem, list)
	if c := mustRead(t, mem, list+copySuffix); !bytes.Equal(c, whole) || len(c) < 100 {
		t.Fatalf("the list has %d bytes, the copy %d", len(whole), len(c))
	}
	opened := 0
	for size := 0; size <= len(whole); size++ {
		writeWhole(t, mem, list, whole[:size])
		x, err := Open("d", &Options{FS: mem, ReadOnly: true})
		if err == nil {
			opened++
			mustClose(t, x)
		} else if !errors.Is(err, kv.ErrCorrupt) || !strings.Contains(err.Error(), strings.TrimPrefix(list, "d/")) {
			t.Errorf("%d of %d bytes: %v", size, len(whole), err)
		}
		if (err == nil) != (size == len(whole)) {
			t.Errorf("%d of %d bytes: %v", size, len(whole), err)
		}
	}
	if opened != 1 {
		t.Errorf("opened %d times", opened)
	}
}

// Copies of lists that are gone are not left for ever.
func TestCopiesOfListsGo(t *testing.T) {
	mem := vfs.NewMem()
	for i := range 6 {
		x := mustOpen(t, "d", small(mem))
		if err := errors.Join(put(x, SpaceRef, fmt.Sprint(i), "v", true), x.Flush()); err != nil {
			t.Fatal(err)
		}
		mustClose(t, x)
	}
	writeWhole(t, mem, "d/MANIFEST-999999"+copySuffix, nil)
	mustClose(t, mustOpen(t, "d", small(mem)))
	names, err := mem.List("d")
	if err != nil {
		t.Fatal(err)
	}
	lists, copies := 0, 0
	for _, name := range names {
		if isList(name) {
			lists++
			if !slices.Contains(names, name+copySuffix) {
				t.Errorf("%s has no copy", name)
			}
		}
		if strings.HasSuffix(name, copySuffix) {
			copies++
		}
	}
	if lists != copies || lists > 3 {
		t.Errorf("%d lists, %d copies", lists, copies)
	}
}
