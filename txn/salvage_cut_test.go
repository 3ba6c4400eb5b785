package txn

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv/index"
)

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
