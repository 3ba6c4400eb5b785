package txn

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// currentListOf is the path of the list of tables of the index that counts.
func currentListOf(t *testing.T, fs vfs.FS) string {
	t.Helper()
	markers := indexFiles(t, fs, "marker.manifest.")
	last := markers[len(markers)-1]
	return "db/index/" + last[strings.LastIndex(last, ".")+1:]
}

// What can be made again costs no version: salvage brings back the newest one, and
// finds no payloads that nobody knows.
func TestSalvageIsExact(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, fs vfs.FS){
		"format deleted": func(t *testing.T, fs vfs.FS) { remove(t, fs, "db/index/FORMAT") },
		"list deleted":   func(t *testing.T, fs vfs.FS) { remove(t, fs, currentListOf(t, fs)) },
		"list empty":     func(t *testing.T, fs vfs.FS) { overwrite(t, fs, currentListOf(t, fs), nil) },
		"list garbage": func(t *testing.T, fs vfs.FS) {
			overwrite(t, fs, currentListOf(t, fs), []byte(strings.Repeat("garbage ", 100)))
		},
		"list marker": func(t *testing.T, fs vfs.FS) { remove(t, fs, indexFiles(t, fs, "marker.manifest")...) },
		"list and marker": func(t *testing.T, fs vfs.FS) {
			remove(t, fs, append(indexFiles(t, fs, "marker.manifest"), currentListOf(t, fs))...)
		},
		"format marker":   func(t *testing.T, fs vfs.FS) { remove(t, fs, indexFiles(t, fs, "marker.format-version")...) },
		"options garbage": func(t *testing.T, fs vfs.FS) { overwrite(t, fs, indexFiles(t, fs, "OPTIONS")[0], []byte("garbage")) },
		"all but the tables": func(t *testing.T, fs vfs.FS) {
			overwrite(t, fs, indexFiles(t, fs, "OPTIONS")[0], []byte("garbage"))
			remove(t, fs, append(indexFiles(t, fs, "marker."), "db/index/FORMAT")...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			_, last := salvageHistory(t, fs)
			lose(t, fs)
			o := testOptions(fs)
			o.Policy = toyPolicy{}
			mustBeLost(t, o)
			r, err := Salvage(bg, "db", SalvageOptions{Options: *o})
			if err != nil {
				t.Fatalf("%v: %+v", err, r)
			}
			if r.Source != indexDir || r.Ends != "" || len(r.Problems) != 0 || r.Found != 0 || r.Damaged != 0 || len(r.Refused) != 1 {
				t.Errorf("%+v", r)
			}
			checkExact(t, o, last)
		})
	}
}

func mustBeLost(t *testing.T, o *Options) {
	t.Helper()
	if db, err := Open("db", o); err == nil {
		db.Close()
		t.Fatal("it opens")
	} else if !indexIsLost(err) || !strings.Contains(err.Error(), "zarrdb fsck --salvage db") {
		t.Fatal(err)
	}
}

// checkExact expects values on main, and a database that is written to.
func checkExact(t *testing.T, o *Options, want map[string]string) {
	t.Helper()
	db, err := Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	mustBeSound(t, db)
	if got := at(t, db, "main"); !maps.Equal(got, want) {
		t.Errorf("main has %d keys of %d, or others", len(got), len(want))
	}
	update(t, db, "main", map[string]string{"more": payload("more")})
	closeChecked(t, db)
	names, err := db.opts.FS.List("db")
	if err != nil || slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, indexDir+".") }) {
		t.Errorf("%q is left: %v", names, err)
	}
}

// Without its newest log the index is what it was before that, which is newer than
// the checkpoint. Payloads that only the log named are found.
func TestSalvageEndsAtTheLostLog(t *testing.T) {
	fs, before, _ := killedHistory(t, 100)
	newest := ""
	for _, path := range indexFiles(t, fs, "0") {
		if strings.HasSuffix(path, ".log") {
			newest = max(newest, path)
		}
	}
	remove(t, fs, newest)
	o := testOptions(fs)
	o.Policy = toyPolicy{}
	mustBeLost(t, o)
	r, err := Salvage(bg, "db", SalvageOptions{Options: *o})
	if err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	if r.Source != indexDir || len(r.Problems) != 0 || r.Found != 1 || !strings.Contains(r.Ends, fs.PathBase(newest)) {
		t.Errorf("%+v", r)
	}
	checkExact(t, o, before)
}

// Tables that a checkpoint has too cost nothing, one that none has costs what was
// behind the checkpoint.
func TestSalvageTakesTablesOfCheckpoints(t *testing.T) {
	for _, newer := range []bool{false, true} {
		fs := vfs.NewMem()
		old, last := salvageHistory(t, fs)
		o := testOptions(fs)
		o.Policy = toyPolicy{}
		if newer {
			db, err := Open("db", o)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.idx.Flush(), db.Close()); err != nil {
				t.Fatal(err)
			}
		}
		deleted := 0
		for _, path := range indexFiles(t, fs, "0") {
			if strings.HasSuffix(path, ".sst") {
				remove(t, fs, path)
				deleted++
			}
		}
		if deleted == 0 {
			t.Fatal("there are no tables")
		}
		mustBeLost(t, o)
		r, err := Salvage(bg, "db", SalvageOptions{Options: *o})
		if err != nil {
			t.Fatalf("%v: %+v", err, r)
		}
		if newer {
			if !strings.HasPrefix(r.Source, checkpointDir) || r.Found == 0 {
				t.Errorf("%+v", r)
			}
			checkSalvaged(t, fs, "db", o, old, last)
			continue
		}
		if r.Source != indexDir || r.Ends != "" || len(r.Problems) != 0 || r.Found != 0 || len(r.Refused) != 1 {
			t.Errorf("%+v", r)
		}
		checkExact(t, o, last)
	}
}

// A recovered index that is older than a checkpoint is refused.
func TestSalvageRefusesAnOldList(t *testing.T) {
	fs := vfs.NewMem()
	_, last := salvageHistory(t, fs)
	o := testOptions(fs)
	o.Policy = toyPolicy{}
	db, err := Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Checkpoint(bg); err != nil {
		t.Fatal(err)
	}
	list, err := db.Checkpoints()
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	remove(t, fs, indexFiles(t, fs, "marker.manifest")...)
	// It says that it had seen more.
	newest := "db/checkpoints/" + list[len(list)-1].Name
	if err := fs.Rename(newest, "db/checkpoints/ffffffff00000000-00000000"); err != nil {
		t.Fatal(err)
	}
	r, err := Salvage(bg, "db", SalvageOptions{Options: *o})
	if err != nil || r.Source != "checkpoints/ffffffff00000000-00000000" {
		t.Errorf("%+v, %v", r, err)
	}
	checkExact(t, o, last)
}
