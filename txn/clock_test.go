package txn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// setClock is a clock that a test sets.
type setClock struct{ t time.Time }

func (c *setClock) day(n int) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n)
}

// commitsOn makes a commit on each of some days, by a clock that may go back.
func commitsOn(t *testing.T, days ...int) (*DB, *setClock, []*Commit) {
	t.Helper()
	c := &setClock{}
	c.t = c.day(days[0])
	o := testOptions(vfs.NewMem())
	o.Now = func() time.Time { return c.t }
	db := openTest(t, o)
	var made []*Commit
	for i, day := range days {
		c.t = c.day(day)
		made = append(made, update(t, db, "main", map[string]string{"a": fmt.Sprint(i + 1)}))
	}
	return db, c, made
}

// The clock of a machine may go back: expiry by age drops the oldest entries of a
// reflog only, so that the rest follow one another.
func TestExpireAfterTheClockWentBack(t *testing.T) {
	for _, days := range [][]int{{0, 10, 1, 2, 4}, {8, 9, -1000, 10, 11}, {0, 1, 2, 3, 4}, {9, 8, 7, 6, 5}} {
		db, c, made := commitsOn(t, days...)
		undone := made[len(made)-2].ID
		c.t = c.day(5)
		must.Get(db.Expire(bg, ExpireOptions{Before: c.day(3)}))(t)
		mustBeSound(t, db)
		if id, err := db.Resolve(bg, "main@{1}"); err != nil || id != undone {
			t.Errorf("days %v: main@{1} is %v, %v; want %v", days, id.Short(), err, undone.Short())
		}
	}
}

// Where an entry is the oldest one that is left, the place where it began has a name too.
func TestReflogNamesTheOldestPlace(t *testing.T) {
	db, c, made := commitsOn(t, 0, 1, 2)
	c.t = c.day(3)
	must.Get(db.Expire(bg, ExpireOptions{Before: c.day(2)}))(t)
	if id, err := db.Resolve(bg, "main@{1}"); err != nil || id != made[1].ID {
		t.Errorf("main@{1} is %v, %v", id.Short(), err)
	}
	if id, err := db.Resolve(bg, "main@{2}"); err == nil {
		t.Errorf("main@{2} is %v", id.Short())
	}
}

// A reflog in which an earlier version of this program left a hole is repaired.
func TestRepairJoinsAReflog(t *testing.T) {
	db, _, made := commitsOn(t, 0, 10, 1, 2, 4)
	for seq := range uint64(5) {
		if seq == 3 || seq == 4 {
			setRecord(t, db, index.SpaceReflog, catalog.MoveKey{Ref: "heads/main", Seq: seq}.Bytes(), nil)
		}
	}
	r, err := db.Check(bg, CheckOptions{})
	if err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Error(), "--repair") {
		t.Fatalf("%+v, %v", r.Problems, err)
	}
	done := repair(t, db)
	if done.After.Found != 0 || len(done.Done) != 1 || !strings.Contains(done.Done[0], "moves 3 to 4") {
		t.Errorf("%q, left %v", done.Done, done.After.Problems)
	}
	if id, err := db.Resolve(bg, "main@{1}"); err != nil || id != made[3].ID {
		t.Errorf("main@{1} is %v, %v; want %v", id.Short(), err, made[3].ID.Short())
	}
}

// A time that a record cannot hold is refused, not recorded as another one.
func TestTimesOutOfRange(t *testing.T) {
	db, c, _ := commitsOn(t, 0)
	for _, at := range []time.Time{{}, time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(1677, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2263, 1, 1, 0, 0, 0, 0, time.UTC)} {
		s := must.Get(db.Begin(bg, "main"))(t)
		set(t, s, map[string]string{"b": at.String()})
		o := CommitOptions{Time: at}
		if at.IsZero() { // the clock of the machine
			c.t = at
		}
		if _, err := s.Commit(bg, o); err == nil || !strings.Contains(err.Error(), at.Format(time.RFC3339)) {
			t.Errorf("%v: %v", at, err)
		}
		c.t = c.day(1)
		s.Abort()
	}
}

// A copy has the times of commits where its reflog does not reach back.
func TestRevisionByTimeInACopy(t *testing.T) {
	db, c, made := commitsOn(t, 0, 1, 2, 3)
	fs := db.opts.FS
	c.t = c.day(9)
	must.Get(db.Clone(bg, "copy", TransferOptions{}))(t)
	pushed := must.Get(Create("pushed", &Options{FS: fs, Now: db.opts.Now, CheckpointCommits: -1}))(t)
	defer closeChecked(t, pushed)
	must.Get(db.Push(bg, pushed, TransferOptions{Refs: []RefSpec{{From: "main", To: "other"}}}))(t)
	clone := must.Get(Open("copy", &Options{FS: fs, Now: db.opts.Now, CheckpointCommits: -1}))(t)
	defer closeChecked(t, clone)
	c.t = c.day(10)
	update(t, clone, "main", map[string]string{"a": "new"})
	for _, in := range []struct {
		db     *DB
		branch string
	}{{clone, "main"}, {pushed, "other"}} {
		for day, want := range map[int]*Commit{1: made[1], 2: made[2], 8: made[3]} {
			rev := in.branch + "@{" + c.day(day).Add(time.Hour).Format(time.RFC3339) + "}"
			if id, err := in.db.Resolve(bg, rev); err != nil || id != want.ID {
				t.Errorf("%s: %v, %v; want %v", rev, id.Short(), err, want.ID.Short())
			}
		}
		if id, err := in.db.Resolve(bg, in.branch+"@{2025-01-01}"); err == nil {
			t.Errorf("before the first commit: %v", id.Short())
		}
	}
}
