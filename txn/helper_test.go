package txn

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/leaktest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn/internal/toy"
	"github.com/zarrdb/zarrdb/txn/internal/visits"
)

func TestMain(m *testing.M) {
	visits.Wait = 0
	leaktest.Main(m)
}

var bg = context.Background()

// clock is a clock that ticks a second each time that it is asked.
type clock struct{ t time.Time }

func newClock() *clock { return &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.t = c.t.Add(time.Second)
	return c.t
}

func testOptions(fs vfs.FS) *Options {
	return &Options{FS: fs, Policy: toyPolicy{}, MemTableBytes: 1 << 20, PageCacheBytes: 4 << 20, Author: "tester", CheckpointCommits: -1}
}

// someAhead makes commits put no pages, all of them or many in batches of their own.
func someAhead(seed uint64) int64 { return []int64{0, 1, 8 << 10}[seed%3] }

// openTest makes a database in memory, which is checked when the test ends.
func openTest(t *testing.T, o *Options) *DB {
	t.Helper()
	if o == nil {
		o = testOptions(vfs.NewMem())
	}
	db := must.Get(Create("db", o))(t)
	t.Cleanup(func() { closeChecked(t, db) })
	return db
}

// closeChecked verifies everything and closes.
func closeChecked(t *testing.T, db *DB) {
	t.Helper()
	if db.closed.Load() {
		return
	}
	mustBeSound(t, db)
	if err := db.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func mustBeSound(t *testing.T, db *DB) *CheckReport {
	t.Helper()
	r, err := db.Check(bg, CheckOptions{Payloads: true})
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	for _, p := range r.Problems {
		t.Errorf("check: %v", p)
	}
	return r
}

// update commits the given values, "" deletes.
func update(t *testing.T, db *DB, branch string, values map[string]string) *Commit {
	t.Helper()
	s := must.Get(db.Begin(bg, branch))(t)
	set(t, s, values)
	c := must.Get(s.Commit(bg, CommitOptions{Message: fmt.Sprint(values)}))(t)
	return c
}

func set(t *testing.T, s *Session, values map[string]string) {
	t.Helper()
	for k, v := range values {
		var err error
		if v == "" {
			err = s.Delete(bg, k)
		} else {
			err = s.Set(bg, k, []byte(v))
		}
		if err != nil {
			t.Fatalf("set %s: %v", k, err)
		}
	}
}

// branchesOf lists the branches of a database.
func branchesOf(db *DB) []Ref {
	branches, _, _ := db.Refs(bg)
	return branches
}

// tagsOf lists the tags of a database.
func tagsOf(db *DB) []Ref {
	_, tags, _ := db.Refs(bg)
	return tags
}

// contents reads everything that a view lists.
func contents(t *testing.T, v kv.ReadLister) map[string]string {
	t.Helper()
	got := map[string]string{}
	for k, err := range v.List(bg, kv.ListOptions{}) {
		must.Do(t, err)
		b, err := v.Get(bg, k, kv.All())
		if err != nil {
			t.Fatalf("get %s: %v", k, err)
		}
		got[k] = string(b)
	}
	return got
}

func at(t *testing.T, db *DB, rev string) map[string]string {
	t.Helper()
	s := must.Get(db.At(bg, rev))(t)
	defer s.Close()
	return contents(t, s)
}

type toyPolicy = toy.Policy[Form, Structure, FieldConflict]

// Detach closes the session after a savepoint, to be resumed later, perhaps by
// another process.
func (s *Session) Detach(ctx context.Context) error {
	if err := s.Savepoint(ctx); err != nil {
		return err
	}
	s.close()
	return nil
}
