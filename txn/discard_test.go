package txn

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/kv/index"
)

// A database goes if this process made it and nothing is in it.
func TestDiscard(t *testing.T) {
	for _, test := range []struct {
		name  string
		put   func(*testing.T, *DB)
		stays bool
	}{
		{"nothing", func(*testing.T, *DB) {}, false},
		{"an open session", func(t *testing.T, db *DB) {
			s, err := db.Begin(bg, "")
			if err != nil {
				t.Fatal(err)
			}
			set(t, s, map[string]string{"a": "1"})
		}, false},
		{"a session that ended", func(t *testing.T, db *DB) {
			s, err := db.Begin(bg, "")
			if err != nil {
				t.Fatal(err)
			}
			set(t, s, map[string]string{"a": string(make([]byte, 1<<20))})
			if err := errors.Join(s.Savepoint(bg), s.Abort()); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"a stored session", func(t *testing.T, db *DB) {
			s, err := db.Begin(bg, "")
			if err != nil {
				t.Fatal(err)
			}
			set(t, s, map[string]string{"a": "1"})
			if err := s.Detach(bg); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"a commit", func(t *testing.T, db *DB) { update(t, db, "", map[string]string{"a": "1"}) }, true},
		{"a branch", func(t *testing.T, db *DB) {
			head, err := db.Head("")
			if err != nil {
				t.Fatal(err)
			}
			if err := db.CreateBranch(bg, "b", head); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"a pin", func(t *testing.T, db *DB) {
			head, err := db.Head("")
			if err != nil {
				t.Fatal(err)
			}
			if err := db.CreatePin(bg, "p", head, ""); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		for _, before := range []string{"", "a", "a/b/db"} { // directories that are there
			mem := vfs.NewMem()
			if before != "" {
				if err := mem.MkdirAll(before, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			db, err := Create("a/b/db", testOptions(mem))
			if err != nil {
				t.Fatal(err)
			}
			test.put(t, db)
			removed, err := db.Discard()
			if err != nil || removed == test.stays {
				t.Errorf("%s: removed %v, %v", test.name, removed, err)
			}
			if test.stays {
				reopened(t, mem, "a/b/db")
				continue
			}
			left := "a"
			if before != "" {
				left = before
			}
			if names, err := mem.List(left); (before == "") != errors.Is(err, os.ErrNotExist) || len(names) > 0 {
				t.Errorf("%s: in %s is %q, %v", test.name, left, names, err)
			}
			if _, err := db.Discard(); !errors.Is(err, ErrClosed) {
				t.Errorf("%s: again: %v", test.name, err)
			}
		}
	}
}

// A database that another process made, or with files of others, stays.
func TestDiscardOfOthers(t *testing.T) {
	mem := vfs.NewMem()
	db, err := Create("db", testOptions(mem))
	if err != nil {
		t.Fatal(err)
	}
	closeChecked(t, db)
	if db, err = Open("db", testOptions(mem)); err != nil {
		t.Fatal(err)
	}
	if removed, err := db.Discard(); removed || err != nil {
		t.Errorf("removed %v, %v", removed, err)
	}
	reopened(t, mem, "db")

	if db, err = Create("new", testOptions(mem)); err != nil {
		t.Fatal(err)
	}
	f, err := mem.Create("new/notes", index.WriteCategory)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if removed, err := db.Discard(); removed || err != nil {
		t.Errorf("removed %v, %v", removed, err)
	}
	remove(t, mem, "new/notes")
	reopened(t, mem, "new")
}

// While a database is discarded no other process can open it, and a power cut
// leaves a database or nothing.
func TestPowerCutWhileDiscarding(t *testing.T) {
	mem := vfs.NewCrashableMem()
	var discarding atomic.Bool
	var images []crashed
	fs := crashFS(mem, func(op errorfs.Op) error {
		if !discarding.Load() {
			return nil
		}
		images = append(images, crashed{fs: mem.CrashClone(vfs.CrashCloneCfg{}), op: fmt.Sprint(op.Kind, " ", op.Path)})
		db, err := Open("db", testOptions(mem))
		if err == nil {
			err = errors.Join(errors.New("it is open"), db.Close())
		}
		if !errors.Is(err, index.ErrLocked) && !errors.Is(err, ErrNotDatabase) {
			t.Errorf("%v: %v", op, err)
		}
		return nil
	})
	db, err := Create("db", testOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	discarding.Store(true)
	if removed, err := db.Discard(); !removed || err != nil {
		t.Fatalf("removed %v, %v", removed, err)
	}
	if len(images) < 2 { // the rename, and the removal
		t.Errorf("only %d operations", len(images))
	}
	for _, image := range images {
		db, err := Open("db", testOptions(image.fs))
		if errors.Is(err, ErrNotDatabase) {
			db, err = Create("db", testOptions(image.fs))
		}
		if err != nil {
			t.Errorf("before %s: %v", image.op, err)
			continue
		}
		update(t, db, "main", map[string]string{"a": "1"})
		closeChecked(t, db)
	}
}

// A database of which nothing can be written any more is discarded all the same.
func TestDiscardAfterFailure(t *testing.T) {
	mem := vfs.NewMem()
	var failing atomic.Bool
	boom := errors.New("boom")
	db, err := Create("db", testOptions(faultFS(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			if failing.Load() {
				return boom
			}
		}
		return nil
	}))))
	if err != nil {
		t.Fatal(err)
	}
	failing.Store(true)
	s, err := db.Begin(bg, "")
	if err != nil {
		t.Fatal(err)
	}
	set(t, s, map[string]string{"a": "1"})
	if _, err := s.Commit(bg, CommitOptions{}); err == nil {
		t.Fatal("committed")
	}
	failing.Store(false)
	removed, err := db.Discard()
	if !removed || err != nil {
		t.Fatalf("removed %v, %v", removed, err)
	}
	if _, err := mem.Stat("db"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
}

// A directory that was there before is the same afterwards, also behind a link.
func TestDiscardInADirectoryOfOthers(t *testing.T) {
	above := t.TempDir()
	dir, link := filepath.Join(above, "d"), filepath.Join(above, "link")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777), os.Symlink(dir, link)); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, link} {
		db, err := Create(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if removed, err := db.Discard(); err != nil || !removed {
			t.Fatal(removed, err)
		}
		after, err := os.Stat(name)
		if err != nil || !os.SameFile(before, after) || after.Mode() != before.Mode() {
			t.Errorf("%s: %v, %v", name, after, err)
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
			t.Errorf("%s: %v are left, %v", name, names, err)
		}
	}
}

// renamedFS calls a function after a rename.
type renamedFS struct {
	vfs.FS
	after func(to string)
}

func (r renamedFS) Rename(from, to string) error {
	err := r.FS.Rename(from, to)
	if err == nil {
		r.after(to)
	}
	return err
}

// What another process makes under the name of a database that is being discarded stays.
func TestDiscardBesideANewDatabase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	holder := filepath.Join(dir, "index", "HOLDER")
	db, err := Create(dir, testOptions(renamedFS{vfs.Default, func(to string) {
		if to != dir+".removed" {
			return
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(holder), 0o777), os.WriteFile(holder, []byte("of another"), 0o666)); err != nil {
			t.Error(err)
		}
	}}))
	if err != nil {
		t.Fatal(err)
	}
	if removed, err := db.Discard(); err != nil || !removed {
		t.Fatal(removed, err)
	}
	if b, err := os.ReadFile(holder); string(b) != "of another" {
		t.Errorf("%q, %v", b, err)
	}
	if list, err := os.ReadDir(filepath.Dir(holder)); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := os.Stat(dir + ".removed"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old one: %v", err)
	}
}
