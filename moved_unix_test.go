//go:build unix

package zarrdb_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// put commits a value.
func put(db *engine.DB, value string) error {
	_, err := db.Update(bg, "", value, func(s *engine.Session) error { return s.Set(bg, "notes", []byte(value)) })
	return err
}

func wantNotes(t *testing.T, db *engine.DB, want string) {
	t.Helper()
	s := at(t, db, "main")
	got, err := s.Get(bg, "notes", kv.Range{})
	if err != nil || string(got) != want {
		t.Errorf("notes of %v: %q, %v, want %q", s.Commit().ID, got, err, want)
	}
}

// A process has a database open that is moved, and another database is made at the old path.
// Each program gets the database that is at its path, and no write goes to the other one.
func TestMovedDatabase(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	dir := filepath.Join(t.TempDir(), "weather.zdb")
	backup := filepath.Join(filepath.Dir(dir), "backup.zdb")
	first := open(t, dir, &zarrdb.Options{Create: true})
	must.Do(t, put(first, "ORIGINAL"))
	must.Do(t, first.Close())
	_, end := holder(t, dir)
	client := open(t, dir, nil) // of that process
	wantNotes(t, client, "ORIGINAL")
	old := at(t, client, "main")

	must.Do(t, os.Rename(dir, backup))
	if err := put(client, "lost"); !errors.Is(err, zarrdb.ErrMoved) && !errors.Is(err, zarrdb.ErrNotFound) {
		t.Errorf("a commit after the move: %v", err)
	}
	fresh := open(t, dir, &zarrdb.Options{Create: true})
	must.Do(t, put(fresh, "FRESH"))
	if err := put(client, "lost"); !errors.Is(err, zarrdb.ErrMoved) {
		t.Errorf("a commit beside another database: %v", err)
	}
	if _, err := client.Lookup(bg, "main"); !errors.Is(err, zarrdb.ErrMoved) {
		t.Errorf("a look-up beside another database: %v", err)
	}
	// Pages that were read before are right for ever.
	if got, err := old.Get(bg, "notes", kv.Range{}); string(got) != "ORIGINAL" && !errors.Is(err, zarrdb.ErrMoved) {
		t.Errorf("a read beside another database: %q, %v", got, err)
	}
	if _, err := old.Get(bg, "others", kv.Range{}); err == nil {
		t.Error("a read of another key beside another database")
	}
	wantNotes(t, fresh, "FRESH")
	end() // a program that is no helper keeps the database until it closes it

	moved := open(t, backup, &zarrdb.Options{Wait: time.Minute})
	wantNotes(t, moved, "ORIGINAL")
	if err := put(moved, "more"); err != nil {
		t.Error(err)
	}
	wantNotes(t, fresh, "FRESH")
}

// A database is removed or moved away right after its last commit and made again, in a loop, by the program itself and
// beside a process that serves it, while a session of it has a log. No removal fails, nothing is made behind one, and each
// database has its own commits alone.
func TestMadeAgainInALoop(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	top := t.TempDir()
	dir := filepath.Join(top, "w.zdb")
	var ended []func() error
	for n := range 24 {
		var first *engine.DB
		if n%4 < 2 {
			first = must.Get(zarrdb.Open(bg, dir, &zarrdb.Options{Create: true}))(t)
			ended = append(ended, first.Close)
		} else { // beside another process
			made := must.Get(zarrdb.Open(bg, dir, &zarrdb.Options{Create: true}))(t)
			must.Do(t, made.Close())
			_, end := holder(t, dir)
			first = must.Get(zarrdb.Open(bg, dir, nil))(t)
			ended = append(ended, first.Close, func() error { end(); return nil })
		}
		s := must.Get(first.Begin(bg, ""))(t)
		must.Do(t, s.Set(bg, "open", []byte("x")))
		value := fmt.Sprint("round ", n)
		must.Do(t, put(first, value))
		wantNotes(t, first, value)
		if n%2 == 0 {
			must.Do(t, os.RemoveAll(dir))
		} else {
			must.Do(t, os.Rename(dir, fmt.Sprintf("%s.%d", dir, n)))
		}
		if err := put(first, "behind"); err == nil {
			t.Errorf("round %d: a commit after the database has gone", n)
		}
		if n%4 < 2 || n%8 > 3 { // else the old one is open beside the next ones
			for _, end := range ended {
				_ = end()
			}
			ended = nil
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("round %d: the directory is there again: %v", n, err)
		}
	}
	for _, end := range ended {
		_ = end()
	}
	for n := 1; n < 24; n += 2 {
		db := open(t, fmt.Sprintf("%s.%d", dir, n), &zarrdb.Options{Wait: time.Minute})
		wantNotes(t, db, fmt.Sprint("round ", n))
	}
	if list, err := filepath.Glob(dir); err != nil || len(list) > 0 {
		t.Errorf("%v is there, %v", list, err)
	}
}

// The database of this process is removed, and made again.
func TestRemovedDatabase(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	dir := filepath.Join(t.TempDir(), "w.zdb")
	for n := range 3 {
		db, err := zarrdb.Open(bg, dir, &zarrdb.Options{Create: true})
		must.Do(t, err)
		for range n * 40 {
			must.Do(t, put(db, "old"))
		}
		err = os.RemoveAll(dir)
		for err != nil && errors.Is(err, syscall.ENOTEMPTY) { // a checkpoint was being made
			err = os.RemoveAll(dir)
		}
		must.Do(t, err)
		if err := put(db, "ghost"); n > 0 && !errors.Is(err, zarrdb.ErrMoved) {
			t.Errorf("a commit after the removal: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after %d commits Close makes the directory again: %v", n*40, err)
		}
	}
}

// A handle that has lost its process does not go on with another database at the path.
func TestReplacedBeforeReconnect(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	for name, replace := range map[string]func(t *testing.T, dir string){
		"made anew": func(t *testing.T, dir string) {
			db := must.Get(zarrdb.Open(bg, dir, &zarrdb.Options{Create: true}))(t)
			must.Do(t, db.Close())
		},
		"a copy": func(t *testing.T, dir string) {
			must.Do(t, os.CopyFS(dir, os.DirFS(dir+".away")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := counterDB(t)
			_, end := holder(t, dir)
			client := open(t, dir, nil)
			wantEngine := !zarrdb.Holds(client)
			end()
			must.Do(t, os.Rename(dir, dir+".away"))
			replace(t, dir)
			if err := increment(client); !wantEngine || !errors.Is(err, zarrdb.ErrMoved) {
				t.Errorf("a commit: %v", err)
			}
			again := open(t, dir, nil)
			if name == "a copy" {
				if err := increment(again); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A second Open of one process joins the first, and never waits for itself.
func TestSecondOpen(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	dir := filepath.Join(t.TempDir(), "w.zdb")
	first := open(t, dir, &zarrdb.Options{Create: true})
	second := open(t, dir, &zarrdb.Options{Wait: time.Hour})
	must.Do(t, put(second, "by the second"))
	wantNotes(t, first, "by the second")
	must.Do(t, first.Close())
	must.Do(t, put(second, "alone"))
	wantNotes(t, second, "alone")
	must.Do(t, second.Close())

	private := open(t, dir, &zarrdb.Options{Private: true})
	_, err := zarrdb.Open(bg, dir, &zarrdb.Options{Wait: time.Hour})
	var locked *engine.LockedError
	if !errors.Is(err, zarrdb.ErrLocked) || !errors.As(err, &locked) || !locked.Own {
		t.Errorf("beside a private one of this process: %v", err)
	}
	must.Do(t, private.Close())
}
