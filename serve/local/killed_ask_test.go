package local

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
)

// openShared opens a database as programs do.
func openShared(dir string) (*engine.DB, error) {
	return Open(bg, dir, OpenOptions{
		Engine: engine.Options{Create: true, Author: "tester", CacheBytes: 4 << 20, PageCacheBytes: 4 << 20},
		Serve:  func(dir string) (*engine.Serving, error) { return Serving(dir, nil, nil) },
	})
}

// asks are what a process has the one do that has the database open, again and again. n is a new
// number each time. other is a second database of the process that asks.
var asks = map[string]func(db, other *engine.DB, n string) error{
	"merge": func(db, _ *engine.DB, n string) error {
		head, err := db.Head(bg, "main")
		if err == nil {
			err = db.Versions().CreateBranch(bg, "b"+n, head)
		}
		var c *txn.Commit
		if err == nil {
			c, err = db.Update(bg, "b"+n, "branch", func(s *engine.Session) error { return s.Set(bg, "merged"+n, []byte(n)) })
		}
		if err == nil {
			_, err = db.Versions().Merge(bg, "main", c.ID, txn.CommitOptions{Message: n})
		}
		return err
	},
	"gc": func(db, _ *engine.DB, _ string) error { _, err := db.GC(bg, txn.GCOptions{}); return err },
	"expire": func(db, _ *engine.DB, _ string) error {
		_, err := db.Expire(bg, txn.ExpireOptions{Keep: 2})
		return err
	},
	"checkpoint": func(db, _ *engine.DB, _ string) error { return db.Checkpoint(bg) },
	"repair":     func(db, _ *engine.DB, _ string) error { _, err := db.Repair(bg, txn.CheckOptions{}); return err },
	"pull": func(db, other *engine.DB, n string) error {
		_, err := other.Update(bg, "pulled", n, func(s *engine.Session) error { return s.Set(bg, "pulled"+n, random(3, 80_000)) })
		if err == nil {
			_, err = db.Pull(bg, other, txn.TransferOptions{Refs: []txn.RefSpec{{From: "pulled"}}})
		}
		return err
	},
}

// askForEver is a process that is to be killed: DIR OTHER WHAT FIRST. It prints what was answered.
func askForEver(args []string) error {
	db, err := openShared(args[0])
	if err != nil {
		return err
	}
	other, err := openShared(args[1])
	if err != nil {
		return err
	}
	first, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	fmt.Println("begun")
	for n := first; ; n++ {
		if err := asks[args[2]](db, other, strconv.Itoa(n)); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// A process that is killed while it waits for a merge, collection, expiry, checkpoint, repair or
// transfer leaves all that was answered, and nothing that keeps others from doing the same.
func TestKilledAskers(t *testing.T) {
	runtimeDir(t)
	dir, other := filepath.Join(shortDir(t), "t.zdb"), filepath.Join(shortDir(t), "o.zdb")
	db := must.Get(openShared(dir))(t)
	put(t, db, map[string][]byte{"k": random(1, 80_000)})
	o := must.Get(openShared(other))(t)
	head, err := o.Head(bg, "")
	if err == nil {
		err = errors.Join(o.Versions().CreateBranch(bg, "pulled", head), o.Close())
	}
	must.Do(t, err)
	keys := map[string][]byte{"k": random(1, 80_000)}
	for what := range asks {
		for round := range 3 {
			first := 1000 * (round + 1)
			child := start(t, "asker", dir, other, what, strconv.Itoa(first))
			child.line(t) // it has begun
			time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
			for _, line := range child.kill(t) {
				if _, err := strconv.Atoi(line); err != nil {
					t.Fatalf("%s: %s", what, line)
				}
				if what == "merge" {
					keys["merged"+line] = []byte(line)
				}
				if what == "pull" {
					wantKey(t, db, "pulled", "pulled"+line, random(3, 80_000))
				}
			}
			for key, want := range keys {
				wantKey(t, db, "main", key, want)
			}
			if err := again(func() error { _, err := db.GC(bg, txn.GCOptions{}); return err }); err != nil {
				t.Fatalf("after %s: %v", what, err)
			}
			for name, ask := range asks {
				if name == "pull" {
					continue // the child had the other database open
				}
				n := fmt.Sprint(what, round)
				if err := again(func() error { return ask(db, nil, n) }); err != nil {
					t.Errorf("%s after %s: %v", name, what, err)
				}
				if name == "merge" {
					keys["merged"+n] = []byte(n)
				}
			}
		}
	}
	r, err := db.Check(bg, txn.CheckOptions{Payloads: true})
	if err != nil || r.Found > 0 {
		t.Errorf("check: %v, %v", r.Problems, err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// again repeats what fails until the process that has the database open has noticed that a
// client was killed.
func again(fn func() error) (err error) {
	for range 1000 {
		if err = fn(); err == nil || !errors.Is(err, txn.ErrCollecting) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return err
}

func wantKey(t *testing.T, db *engine.DB, rev, key string, want []byte) {
	t.Helper()
	err := db.View(bg, rev, func(s *engine.Snapshot) error {
		wantValue(t, s, key, want)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A process whose database was replaced does not open the one that is there now.
func TestReplacedIsNotOpened(t *testing.T) {
	runtimeDir(t)
	dir := filepath.Join(shortDir(t), "t.zdb")
	db := must.Get(engine.Open(bg, dir, &engine.Options{Create: true}))(t)
	must.Do(t, db.Close())
	list := func() (names []string) {
		files := must.Get(os.ReadDir(filepath.Join(dir, "index")))(t)
		for _, f := range files {
			names = append(names, f.Name())
		}
		return names
	}
	before := list()
	j := &joint{dir: dir, id: txn.Identity{Name: "00", File: "1:1"}}
	if _, _, err := j.join(bg); !errors.Is(err, engine.ErrMoved) {
		t.Error(err)
	}
	if now := list(); !slices.Equal(now, before) {
		t.Errorf("the index has %q, before %q", now, before)
	}
}
