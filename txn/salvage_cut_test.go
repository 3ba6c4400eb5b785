package txn

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/kv/index"
)

// killed is what is there when a process is killed: all that it did.
func killed(mem *vfs.MemFS, dir string) (*vfs.MemFS, error) {
	fs := all(mem)
	return fs, prune(fs, mem, dir)
}

// prune removes from the clone of a file system what is gone in it. What was removed
// without a sync is there again in a clone.
func prune(fs, live *vfs.MemFS, dir string) error {
	names, err := fs.List(dir)
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		fi, there := fs.Stat(path)
		err = errors.Join(err, there)
		if _, gone := live.Stat(path); gone != nil {
			err = errors.Join(err, fs.RemoveAll(path))
		} else if there == nil && fi.IsDir() {
			err = errors.Join(err, prune(fs, live, path))
		}
	}
	return errors.Join(err, syncDir(fs, dir))
}

// A salvage that makes the index again of its own files ends at any moment, by a power
// cut or because it is killed. The next one brings back every version all the same.
func TestSalvagePowerCutExact(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, fs vfs.FS){
		"list": func(t *testing.T, fs vfs.FS) { overwrite(t, fs, currentListOf(t, fs), []byte("garbage")) },
		"markers": func(t *testing.T, fs vfs.FS) {
			remove(t, fs, indexFiles(t, fs, "marker.")...)
		},
		"list, markers and format": func(t *testing.T, fs vfs.FS) {
			remove(t, fs, append(indexFiles(t, fs, "marker."), currentListOf(t, fs), "db/index/FORMAT")...)
		},
		"tables that a checkpoint has": func(t *testing.T, fs vfs.FS) {
			for _, path := range indexFiles(t, fs, "0") {
				if strings.HasSuffix(path, ".sst") {
					remove(t, fs, path)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			_, last := salvageHistory(t, mem)
			lose(t, mem)
			if err := syncDir(mem, "db/index"); err != nil {
				t.Fatal(err)
			}
			cuts := salvageCuts(t, mem)
			if !slices.ContainsFunc(cuts, func(c salvageCut) bool { _, err := c.fs.Stat("db/index"); return err != nil }) {
				t.Error("no cut between the renames")
			}
			step := 1 + len(cuts)/20
			if testing.Short() || raceEnabled {
				step = 1 + len(cuts)/6
			}
			for i, c := range cuts {
				if i%step == 0 || strings.Contains(c.how, readyIndex) {
					c.verify(t, last)
				}
				if t.Failed() {
					t.Fatalf("%d of %d: %s", i, len(cuts), c.how)
				}
			}
		})
	}
}

// salvageCut is what was there when a salvage ended early.
type salvageCut struct {
	fs  *vfs.MemFS
	how string
}

// salvageCuts salvages and returns what is there before each of its operations that
// others can see, before some of the others, and after it.
func salvageCuts(t *testing.T, mem *vfs.MemFS) (cuts []salvageCut) {
	t.Helper()
	mem = all(mem)
	n := 0
	take := func(how string) {
		done, err := killed(mem, "db")
		if err != nil {
			t.Error(err)
		}
		cuts = append(cuts,
			salvageCut{mem.CrashClone(vfs.CrashCloneCfg{}), "a power cut at " + how},
			salvageCut{done, "killed at " + how})
	}
	o := testOptions(crashFS(mem, func(op errorfs.Op) error {
		inIndex := slices.ContainsFunc([]string{stagedIndex, recoveredIndex, indexDir, checkpointDir}, func(dir string) bool {
			return strings.HasPrefix(op.Path, "db/"+dir+"/")
		})
		if n++; !inIndex || n%12 == 0 {
			take(fmt.Sprint(op.Kind, " ", op.Path))
		}
		return nil
	}))
	o.Policy = toyPolicy{}
	r, err := Salvage(bg, "db", SalvageOptions{Options: *o})
	if err != nil || r.Source != indexDir || r.Ends != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	take("the end")
	return cuts
}

// verify salvages again what is not done and expects every version.
func (c *salvageCut) verify(t *testing.T, last map[string]string) {
	t.Helper()
	o := testOptions(c.fs)
	o.Policy = toyPolicy{}
	db, err := Open("db", o)
	switch {
	case err == nil:
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	case errors.Is(err, ErrIndexLost):
		if _, err := c.fs.Stat("db/" + indexDir); err != nil {
			c.verifyTo(t, o, last)
		}
		r, err := Salvage(bg, "db", SalvageOptions{Options: *o})
		if err != nil {
			t.Fatalf("again: %v: %+v", err, r)
		}
		if r.Source != indexDir && r.Source != readyIndex || r.Found != 0 || len(r.Problems) != 0 {
			t.Errorf("again: %+v", r)
		}
	default:
		t.Fatal(err)
	}
	kept, err := c.fs.List("db/quarantine")
	if !slices.ContainsFunc(kept, func(n string) bool { return strings.HasPrefix(n, "index-") }) {
		t.Errorf("the quarantine holds %v, %v", kept, err)
	}
	checkExact(t, o, last)
}

// verifyTo salvages to another directory, and changes nothing in the first.
func (c *salvageCut) verifyTo(t *testing.T, o *Options, last map[string]string) {
	t.Helper()
	before := tree0(t, c.fs, "db")
	r, err := Salvage(bg, "db", SalvageOptions{Options: *o, To: "other"})
	if err != nil || r.Source != readyIndex || r.Found != 0 || len(r.Problems) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if after := tree0(t, c.fs, "db"); !slices.Equal(before, after) {
		t.Errorf("was %q, is %q", before, after)
	}
	db, err := Open("other", o)
	if err != nil {
		t.Fatal(err)
	}
	mustBeSound(t, db)
	if got := at(t, db, "main"); !maps.Equal(got, last) {
		t.Errorf("main has %d keys of %d, or others", len(got), len(last))
	}
	closeChecked(t, db)
}

// An index that an interrupted salvage left ready, long ago, is not taken for the
// newest one, and one that cannot be opened is kept.
func TestSalvageRefusesWhatWasReady(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, fs vfs.FS, o *Options){
		"older": func(t *testing.T, fs vfs.FS, o *Options) {
			db, err := Open("db", o)
			if err != nil {
				t.Fatal(err)
			}
			update(t, db, "main", map[string]string{"later": payload("later")})
			if err := errors.Join(db.Checkpoint(bg), db.Close()); err != nil {
				t.Fatal(err)
			}
		},
		"damaged": func(t *testing.T, fs vfs.FS, o *Options) {
			names, err := fs.List("db/" + readyIndex)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if strings.HasPrefix(name, "MANIFEST") {
					remove(t, fs, "db/"+readyIndex+"/"+name)
				}
			}
			db, err := Open("db", o)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Checkpoint(bg), db.Close()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			salvageHistory(t, fs)
			o := testOptions(fs)
			o.Policy = toyPolicy{}
			if err := index.Clone(fs, "db/index", "db/"+readyIndex); err != nil {
				t.Fatal(err)
			}
			spoil(t, fs, o)
			db, err := Open("db", o)
			if err != nil {
				t.Fatal(err)
			}
			last := at(t, db, "main")
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			remove(t, fs, "db/index")
			mustBeLost(t, o)
			r, err := Salvage(bg, "db", SalvageOptions{Options: *o})
			if err != nil {
				t.Fatalf("%v: %+v", err, r)
			}
			if !strings.HasPrefix(r.Source, checkpointDir) || len(r.Refused) == 0 || !strings.HasPrefix(r.Refused[0], readyIndex) {
				t.Errorf("%+v", r)
			}
			checkExact(t, o, last)
			kept, err := fs.List("db/quarantine")
			if !slices.ContainsFunc(kept, func(n string) bool { return strings.HasPrefix(n, readyIndex) }) {
				t.Errorf("the quarantine holds %v, %v", kept, err)
			}
		})
	}
}
