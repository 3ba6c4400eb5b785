package serve

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

var (
	bg    = context.Background()
	owner = Owner("owner")
)

// impatient has tables look and try again at once.
func impatient(t *testing.T) {
	must.Set(t, &lookTime, 0)
}

// commit sets a key in a session of its own.
func commit(table *Table, name, key string) error {
	s, err := table.Begin(bg, owner, name, BeginOptions{Once: true})
	if err == nil {
		err = s.Engine().Set(bg, key, []byte(key))
	}
	if err == nil {
		_, err = s.Commit(bg, txn.CommitOptions{Message: key})
	}
	return err
}

func read(table *Table, name, key string) error {
	v, err := table.View(bg, owner, name, "")
	if err != nil {
		return err
	}
	defer v.Release()
	_, err = v.Get(bg, key, kv.All())
	return err
}

// After a fault that passes, commits go on, what was acknowledged is there, and a session goes on. Reading goes on
// meanwhile.
func TestOpenedAfterFault(t *testing.T) {
	impatient(t)
	writes := func(op errorfs.Op) bool { return crashtest.IsWrite(op) && filepath.Base(op.Path) != "LOCK" } // the file system has no shared locks
	makes := func(op errorfs.Op) bool { return op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpOpenDir }
	for _, c := range []struct {
		what  string
		err   error
		match func(errorfs.Op) bool
	}{
		{"disk full", syscall.ENOSPC, writes},
		{"quota used up", syscall.EDQUOT, writes},
		{"sync over quota", syscall.EDQUOT, crashtest.IsSync},
		{"no descriptors", syscall.EMFILE, makes},
		{"no descriptors in the system", syscall.ENFILE, makes},
		{"failing disk", syscall.EIO, writes},
	} {
		t.Run(c.what, func(t *testing.T) {
			fault := crashtest.Faults{Err: c.err, Match: c.match}
			fault.Off.Store(true)
			o := engine.Options{FS: fault.Wrap(vfs.NewMem()), Create: true}
			table := New(Options{})
			must.Do(t, table.Open(bg, "w", func(ctx context.Context) (db *engine.DB, lacks, err error) {
				if db, err = engine.Open(ctx, "w", &o); err != nil {
					to := o
					to.ReadOnly, lacks = true, err
					db, err = engine.Open(ctx, "w", &to)
				}
				return db, lacks, err
			}))
			must.Do(t, commit(table, "w", "before"))
			s := must.Get(table.Begin(bg, owner, "w", BeginOptions{}))(t)
			must.Do(t, s.Engine().Set(bg, "session", []byte("s")))
			fault.Off.Store(false)
			for range 5 {
				if err := commit(table, "w", "during"); err == nil && c.err != syscall.EMFILE && c.err != syscall.ENFILE {
					t.Error("a commit succeeds")
				}
				if err := read(table, "w", "before"); err != nil {
					t.Errorf("read: %v", err)
				}
			}
			if db := must.Get(table.Database(bg, "w"))(t); c.err != syscall.EMFILE && c.err != syscall.ENFILE && table.Check(bg, []string{"w"})["w"] == nil {
				t.Errorf("ready; read only %v", db.ReadOnly())
			}
			fault.Off.Store(true)
			must.Do(t, commit(table, "w", "after"))
			if err := table.Check(bg, []string{"w"})["w"]; err != nil {
				t.Errorf("check: %v", err)
			}
			s = must.Get(table.Session(bg, owner, "w", s.Engine().ID().String()))(t)
			must.Get(s.Commit(bg, txn.CommitOptions{}))(t)
			for _, key := range []string{"before", "after", "session"} {
				if err := read(table, "w", key); err != nil {
					t.Errorf("%s: %v", key, err)
				}
			}
			must.Do(t, table.Close(bg))
		})
	}
}

// A request whose context ends does not wait for a database that is being opened, and Close ends the opening.
func TestOpeningEnds(t *testing.T) {
	opening := make(chan struct{}, 1)
	table := New(Options{Look: func() map[string]Opener {
		return map[string]Opener{"w": func(ctx context.Context) (db *engine.DB, lacks, err error) {
			opening <- struct{}{}
			<-ctx.Done()
			return nil, nil, ctx.Err()
		}}
	}})
	ctx, cancel := context.WithCancel(bg)
	go func() {
		<-opening
		cancel()
	}()
	if _, err := table.Database(ctx, "w"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	must.Do(t, table.Close(bg))
}

// dirOpener opens the database in a directory.
func dirOpener(dir string) Opener {
	return func(ctx context.Context) (db *engine.DB, lacks, err error) {
		db, err = engine.Open(ctx, dir, nil)
		return db, nil, err
	}
}

// makeDatabase makes a database with a key.
func makeDatabase(t *testing.T, dir, key string) {
	t.Helper()
	db := must.Get(engine.Create(bg, dir, nil))(t)
	must.Get(db.Update(bg, "main", "", func(s *engine.Session) error { return s.Set(bg, key, []byte(key)) }))(t)
	must.Do(t, db.Close())
}

// A directory that was moved, restored or replaced is opened again under its path.
func TestOpenedInPlace(t *testing.T) {
	impatient(t)
	in := t.TempDir()
	dir, away := filepath.Join(in, "w.zdb"), filepath.Join(in, "away")
	makeDatabase(t, dir, "a")
	makeDatabase(t, filepath.Join(in, "other"), "b")
	table := New(Options{})
	must.Do(t, table.Open(bg, "w", dirOpener(dir)))
	must.Do(t, read(table, "w", "a"))
	for range 2 {
		must.Do(t, os.Rename(dir, away))
		for range 2 {
			if err := read(table, "w", "a"); !errors.Is(err, ErrUnavailable) || table.Check(bg, []string{"w"})["w"] == nil {
				t.Errorf("moved: %v", err)
			}
		}
		must.Do(t, os.Rename(away, dir))
		must.Do(t, read(table, "w", "a"))
		must.Do(t, commit(table, "w", "c"))
	}
	must.Do(t, os.Rename(dir, away))
	must.Do(t, os.Rename(filepath.Join(in, "other"), dir)) // at once
	must.Do(t, read(table, "w", "b"))
	must.Do(t, table.Close(bg))
	must.Do(t, must.Get(engine.Open(bg, away, nil))(t).Close()) // it was let go
}

// Databases that appear in a directory are served, one that is broken does not keep the others back and is served when
// it is whole, and one that was removed is not there.
func TestServedDirectory(t *testing.T) {
	impatient(t)
	in := t.TempDir()
	at := func(name string) string { return filepath.Join(in, name) }
	makeDatabase(t, at("broken.zdb"), "a")
	format := at("broken.zdb/index/ZARRDB")
	for _, name := range must.Get(filepath.Glob(at("broken.zdb/index/MANIFEST*")))(t) {
		format = name
	}
	must.Do(t, os.Rename(format, at("hidden")))
	table := New(Options{Look: func() map[string]Opener {
		all := map[string]Opener{}
		for _, e := range must.Get(os.ReadDir(in))(t) {
			if engine.IsDatabase(at(e.Name())) {
				all[e.Name()] = dirOpener(at(e.Name()))
			}
		}
		return all
	}})
	if err := read(table, "new.zdb", "a"); !errors.Is(err, ErrNoDatabase) {
		t.Errorf("a name without a database: %v", err)
	}
	makeDatabase(t, at("new.zdb"), "a")
	must.Do(t, read(table, "new.zdb", "a"))
	if err := read(table, "broken.zdb", "a"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("broken: %v", err)
	}
	if errs := table.Check(bg, table.Names()); errs["broken.zdb"] == nil || errs["new.zdb"] != nil || len(errs) != 2 {
		t.Errorf("%v", errs)
	}
	must.Do(t, os.Rename(at("hidden"), format))
	must.Do(t, read(table, "broken.zdb", "a"))
	must.Do(t, os.RemoveAll(at("new.zdb")))
	if err := read(table, "new.zdb", "a"); err == nil {
		t.Error("a removed database is read")
	}
	if err := read(table, "new.zdb", "a"); !errors.Is(err, ErrNoDatabase) {
		t.Errorf("a removed database: %v", err)
	}
	must.Do(t, table.Close(bg))
}
