package txn

import (
	"errors"
	"maps"
	"slices"
	"testing"
)

func forkOf(t *testing.T, s *Session) *Session {
	t.Helper()
	f, err := s.Fork(bg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Forks write without seeing each other, and all that they write becomes one commit.
func TestFork(t *testing.T) {
	db := openTest(t, nil)
	say(t, db, "", "base", setAll("base", "0", "gone", "0"))
	s, err := db.Begin(bg, "")
	if err != nil {
		t.Fatal(err)
	}
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
	if _, err := db.GC(bg, GCOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*Session{a, b} {
		if err := s.Join(bg, f, nil); err != nil {
			t.Fatal(err)
		}
		if !f.Ended() {
			t.Error("the fork goes on")
		}
	}
	if _, err := s.Commit(bg, CommitOptions{}); err != nil {
		t.Fatal(err)
	}
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
	for _, choose := range []func(Conflict) Choice{nil, ChooseByPath(PathChoice{Path: "k", Choice: Theirs})} {
		s, err := db.Begin(bg, "")
		if err != nil {
			t.Fatal(err)
		}
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
		if err := errors.Join(f.Abort(), s.Abort()); err != nil {
			t.Fatal(err)
		}
	}
}

// A fork is a session of its own: it outlives the one it came from, and its commit
// has what that one had written.
func TestForkAlone(t *testing.T) {
	db := openTest(t, nil)
	s, err := db.Begin(bg, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Guard("read"); err != nil {
		t.Fatal(err)
	}
	set(t, s, map[string]string{"k": "1"})
	f := forkOf(t, s)
	if err := s.Join(bg, s, nil); err == nil {
		t.Error("a session was joined with itself")
	}
	if err := s.Abort(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fork(bg); !errors.Is(err, ErrSessionClosed) {
		t.Errorf("fork of a session that has ended: %v", err)
	}
	if err := f.Detach(bg); err != nil {
		t.Fatal(err)
	}
	if f, err = db.Resume(bg, f.ID()); err != nil {
		t.Fatal(err)
	}
	if got := f.guarded(); !slices.Equal(got, []string{"read"}) {
		t.Errorf("guards %q", got)
	}
	if _, err := f.Commit(bg, CommitOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := at(t, db, ""); !maps.Equal(got, map[string]string{"k": "1"}) {
		t.Errorf("main holds %v", got)
	}
}

// A fork that the session does not know any more is compared with its base.
func TestForkForgotten(t *testing.T) {
	db := openTest(t, nil)
	s, err := db.Begin(bg, "")
	if err != nil {
		t.Fatal(err)
	}
	set(t, s, map[string]string{"k": "1"})
	f := forkOf(t, s)
	set(t, f, map[string]string{"new": "1"})
	s.forks = nil
	if err := s.Join(bg, f, nil); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, s); !maps.Equal(got, map[string]string{"k": "1", "new": "1"}) {
		t.Errorf("the session holds %v", got)
	}
	if err := s.Abort(); err != nil {
		t.Fatal(err)
	}
}

// Conflicts with the branch can be decided when a session takes up what it got.
func TestRefreshChoosing(t *testing.T) {
	for _, c := range []struct {
		choice Choice
		want   string
	}{{Refuse, ""}, {Ours, "branch"}, {Theirs, "session"}} {
		db := openTest(t, nil)
		s, err := db.Begin(bg, "")
		if err != nil {
			t.Fatal(err)
		}
		set(t, s, map[string]string{"k": "session"})
		head := say(t, db, "", "branch", setAll("k", "branch"))
		err = s.RefreshChoosing(bg, ChooseByPath(PathChoice{Choice: c.choice}))
		switch {
		case c.choice == Refuse:
			if !errors.Is(err, ErrConflict) || s.Base() == head {
				t.Errorf("%v, base %v", err, s.Base())
			}
		case err != nil || s.Base() != head || contents(t, s)["k"] != c.want:
			t.Errorf("%v: %v, base %v, %v", c.choice, err, s.Base(), contents(t, s))
		}
		if err := s.Abort(); err != nil {
			t.Fatal(err)
		}
	}
}
