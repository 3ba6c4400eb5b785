package txn

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
)

func forkOf(t *testing.T, s *Session) *Session {
	t.Helper()
	f := must.Get(s.Fork(bg))(t)
	return f
}

// Forks write without seeing each other, and all that they write becomes one commit.
func TestFork(t *testing.T) {
	db := openTest(t, nil)
	say(t, db, "", "base", setAll("base", "0", "gone", "0"))
	s := must.Get(db.Begin(bg, ""))(t)
	set(t, s, map[string]string{"mine": "1", "twice": "1"})
	a, b := forkOf(t, s), forkOf(t, s)
	set(t, s, map[string]string{"twice": "2", "gone": ""})
	set(t, a, map[string]string{"a": "1"})
	set(t, b, map[string]string{"b": "1", "base": "1"})
	want := map[string]string{"base": "0", "gone": "0", "mine": "1", "twice": "1", "a": "1"}
	if got := contents(t, a); !maps.Equal(got, want) {
		t.Errorf("the fork holds %v, want %v", got, want)
	}
	// What others commit in between, and a collection, change nothing.
	say(t, db, "", "other", setAll("other", "1"))
	must.Get(db.GC(bg, GCOptions{}))(t)
	for _, f := range []*Session{a, b} {
		must.Do(t, s.Join(bg, f, nil))
		if !f.Ended() {
			t.Error("the fork goes on")
		}
	}
	must.Get(s.Commit(bg, CommitOptions{}))(t)
	want = map[string]string{"base": "1", "mine": "1", "twice": "2", "a": "1", "b": "1", "other": "1"}
	if got := at(t, db, ""); !maps.Equal(got, want) {
		t.Errorf("main holds %v, want %v", got, want)
	}
	if list, err := db.Sessions(bg); err != nil || len(list) > 0 || len(db.roots) > 0 {
		t.Errorf("left: sessions %v, %d roots, %v", list, len(db.roots), err)
	}
}

// Two that changed the same are a conflict, which changes neither.
func TestForkConflict(t *testing.T) {
	db := openTest(t, nil)
	for _, choose := range [][]PathChoice{nil, {{Path: "k", Choice: Theirs}}} {
		s, err := db.Begin(bg, "")
		must.Do(t, err)
		set(t, s, map[string]string{"k": "0"})
		f := forkOf(t, s)
		set(t, s, map[string]string{"k": "1"})
		set(t, f, map[string]string{"k": "1", "new": "1"})
		err = s.Join(bg, f, choose)
		var conflict *ConflictError
		switch {
		case choose != nil && err != nil:
			t.Error(err)
		case choose == nil && (!errors.As(err, &conflict) || len(conflict.Conflicts) != 1 || conflict.Conflicts[0].Path != "k"):
			t.Errorf("equal changes: %v", err)
		case choose == nil && (f.Ended() || !maps.Equal(contents(t, s), map[string]string{"k": "1"})):
			t.Error("the conflict has changed something")
		}
		must.Do(t, errors.Join(f.Abort(), s.Abort()))
	}
}

// A fork is a session of its own: it outlives the one it came from, also across a
// savepoint, and its commit has what it wrote itself.
func TestForkAlone(t *testing.T) {
	db := openTest(t, nil)
	s, err := db.Begin(bg, "")
	must.Do(t, err)
	must.Do(t, s.Guard(bg, "read"))
	set(t, s, map[string]string{"k": "1"})
	f := forkOf(t, s)
	set(t, f, map[string]string{"f": "1"})
	if err := s.Join(bg, s, nil); err == nil {
		t.Error("a session was joined with itself")
	}
	must.Do(t, s.Abort())
	if _, err := s.Fork(bg); !errors.Is(err, ErrSessionClosed) {
		t.Errorf("fork of a session that has ended: %v", err)
	}
	must.Do(t, f.Detach(bg))
	must.Get(db.GC(bg, GCOptions{}))(t)
	mustBeSound(t, db)
	if f, err = db.Resume(bg, f.ID()); err != nil {
		t.Fatal(err)
	}
	if got := f.guarded(); !slices.Equal(got, []string{"read"}) {
		t.Errorf("guards %q", got)
	}
	if got := contents(t, f); !maps.Equal(got, map[string]string{"k": "1", "f": "1"}) {
		t.Errorf("the fork holds %v", got)
	}
	must.Get(f.Commit(bg, CommitOptions{}))(t)
	if got := at(t, db, ""); !maps.Equal(got, map[string]string{"f": "1"}) {
		t.Errorf("main holds %v", got)
	}
}

// The commit of a fork has no changes of its parent, and each may be committed first.
// What both changed, or a change of what only the parent has written, is a conflict.
func TestForkCommits(t *testing.T) {
	for _, c := range []struct {
		name         string
		parent, fork map[string]string // written after the fork began
		forkFirst    bool
		conflict     bool // of the second one; of the fork if it is the first
		want         map[string]string
	}{
		{"fork first", map[string]string{"p": "1"}, map[string]string{"f": "1"}, true, false, map[string]string{"base": "0", "k": "1", "p": "1", "f": "1"}},
		{"parent first", map[string]string{"p": "1"}, map[string]string{"f": "1"}, false, false, map[string]string{"base": "0", "k": "1", "p": "1", "f": "1"}},
		{"parent first, what it wrote is changed", nil, map[string]string{"k": "2"}, false, false, map[string]string{"base": "0", "k": "2"}},
		{"fork first, what the parent wrote is changed", nil, map[string]string{"k": "2"}, true, true, map[string]string{"base": "0"}},
		{"the same is changed", map[string]string{"base": "1"}, map[string]string{"base": "1"}, true, true, map[string]string{"base": "1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := openTest(t, nil)
			say(t, db, "", "base", setAll("base", "0"))
			s := must.Get(db.Begin(bg, ""))(t)
			set(t, s, map[string]string{"k": "1"})
			f := forkOf(t, s)
			set(t, s, c.parent)
			set(t, f, c.fork)
			order := []*Session{s, f}
			if c.forkFirst {
				order = []*Session{f, s}
			}
			var errs []error
			for _, one := range order {
				_, err := one.Commit(bg, CommitOptions{})
				if err != nil {
					errs = append(errs, err, one.Abort())
				}
				if err != nil && one == f {
					errs = append(errs, s.Abort())
					break
				}
			}
			if err := errors.Join(errs...); errors.Is(err, ErrConflict) != c.conflict || err != nil && !c.conflict {
				t.Error(err)
			}
			if got := at(t, db, ""); !maps.Equal(got, c.want) {
				t.Errorf("main holds %v, want %v", got, c.want)
			}
		})
	}
}

// After a kill at any moment of Join, either the fork is there, or the session has its changes.
func TestJoinIsKilled(t *testing.T) {
	mem := vfs.NewCrashableMem()
	var images []*vfs.MemFS
	disk := crashtest.NewDisk(mem, func(d *crashtest.Disk, _ errorfs.Op) error {
		images = append(images, d.Cut(100, 100, nil))
		return nil
	})
	disk.On(false)
	db := openTest(t, testOptions(disk))
	s := mustBegin(t, db)
	must.Do(t, s.Log(bg))
	set(t, s, map[string]string{"s": "1"})
	f := forkOf(t, s)
	must.Do(t, f.Log(bg))
	set(t, f, map[string]string{"f": "1"})
	disk.On(true)
	must.Do(t, s.Join(bg, f, nil))
	disk.On(false)
	before, after := 0, 0
	for i, image := range append(images, all(mem)) {
		db := must.Get(Open("db", testOptions(image)))(t)
		s := must.Get(db.Resume(bg, s.ID()))(t)
		_, joined := contents(t, s)["f"]
		f, err := db.Resume(bg, f.ID())
		if joined != errors.Is(err, ErrNoRef) {
			t.Errorf("killed at write %d: the session has the changes: %v, the fork: %v", i, joined, err)
		}
		if err == nil {
			before++
			if err := s.Join(bg, f, nil); err != nil {
				t.Errorf("killed at write %d: join again: %v", i, err)
			}
		} else {
			after++
		}
		must.Do(t, db.Close())
	}
	if before == 0 || after == 0 {
		t.Errorf("%d images from before, %d from after", before, after)
	}
}

// Of two joins of a fork at the same time, as after a request that got no answer, one takes
// the changes over, and the other finds that the fork has ended.
func TestJoinTwiceAtOnce(t *testing.T) {
	db := openTest(t, nil)
	for range 100 {
		s := must.Get(db.Begin(bg, ""))(t)
		f := must.Get(s.Fork(bg))(t)
		must.Do(t, f.Set(bg, "k", []byte("v")))
		errs := make(chan error, 2)
		for range 2 {
			go func() { errs <- s.Join(bg, f, nil) }()
		}
		a, b := <-errs, <-errs
		if a != nil {
			a, b = b, a
		}
		if a != nil || !errors.Is(b, ErrSessionClosed) {
			t.Fatalf("joins: %v, %v", a, b)
		}
		must.Do(t, s.Abort())
	}
}
