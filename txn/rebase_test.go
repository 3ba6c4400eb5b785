package txn

import (
	"errors"
	"github.com/zarrdb/zarrdb/internal/must"
	"maps"
	"slices"
	"testing"
	"time"
)

// messages lists the log down to the first commit.
func messages(t *testing.T, db *DB, rev string) (list []string) {
	t.Helper()
	id := must.Get(db.Resolve(bg, rev))(t)
	for c, err := range db.Log(bg, id) {
		must.Do(t, err)
		list = append(list, c.Message)
	}
	return list
}

// forked makes main: base, u1, u2 and side: base, a, b.
func forked(t *testing.T) (db *DB, base CommitID) {
	t.Helper()
	db = openTest(t, nil)
	say := func(branch, message string, values map[string]string) {
		t.Helper()
		s := must.Get(db.Begin(bg, branch))(t)
		set(t, s, values)
		must.Get(s.Commit(bg, CommitOptions{Message: message, Author: message + "'s", Time: time.Unix(1e9, 0), Properties: map[string]string{"k": message}}))(t)
	}
	say("", "base", map[string]string{"x": "0", "y": "0"})
	base, _ = db.Head(bg, "")
	must.Do(t, db.CreateBranch(bg, "side", base))
	say("", "u1", map[string]string{"x": "1"})
	say("", "u2", map[string]string{"u": "2"})
	say("side", "a", map[string]string{"y": "a", "z/a": "a"})
	say("side", "b", map[string]string{"z/b": "b"})
	return db, base
}

func TestRebase(t *testing.T) {
	db, base := forked(t)
	upstream, _ := db.Head(bg, "")
	before, _ := db.Head(bg, "side")
	must.Get(db.Rebase(bg, "side", upstream, RebaseOptions{DryRun: true}))(t)
	if head, _ := db.Head(bg, "side"); head != before {
		t.Error("a dry run moved the branch")
	}
	c := must.Get(db.Rebase(bg, "side", upstream, RebaseOptions{}))(t)
	if head, _ := db.Head(bg, "side"); head != c.ID {
		t.Errorf("the branch is at %v, not %v", head, c.ID)
	}
	if got, want := messages(t, db, "side"), []string{"b", "a", "u2", "u1", "base", "create database"}; !slices.Equal(got, want) {
		t.Errorf("history %q, want %q", got, want)
	}
	if want := map[string]string{"x": "1", "y": "a", "u": "2", "z/a": "a", "z/b": "b"}; !maps.Equal(at(t, db, "side"), want) {
		t.Errorf("holds %v, want %v", at(t, db, "side"), want)
	}
	if c.Author != "b's" || !c.Time.Equal(time.Unix(1e9, 0)) || c.Properties["k"] != "b" {
		t.Errorf("the commit is now %+v", c)
	}
	if again, err := db.Rebase(bg, "side", upstream, RebaseOptions{}); err != nil || again.ID != c.ID {
		t.Errorf("again: %v, %v", again, err)
	}
	if m, err := db.UndoBranch(bg, "side"); err != nil || m.New != before {
		t.Errorf("undo: %+v, %v", m, err)
	}
	// Onto something else than what is left out.
	b := must.Get(db.Lookup(bg, before))(t)
	must.Get(db.Rebase(bg, "side", b.Parents[0], RebaseOptions{Onto: upstream}))(t)
	if got, want := messages(t, db, "side"), []string{"b", "u2", "u1", "base", "create database"}; !slices.Equal(got, want) {
		t.Errorf("history %q, want %q", got, want)
	}
	// Nothing of its own: the branch moves forward.
	must.Do(t, db.CreateBranch(bg, "old", base))
	if c, err := db.Rebase(bg, "old", upstream, RebaseOptions{}); err != nil || c.ID != upstream {
		t.Errorf("a branch without commits of its own: %v, %v", c, err)
	}
	if len(db.roots) > 0 {
		t.Errorf("%d roots are still held", len(db.roots))
	}
}

func TestRebaseConflicts(t *testing.T) {
	db, _ := forked(t)
	update(t, db, "", map[string]string{"y": "main"})
	upstream, _ := db.Head(bg, "")
	before, _ := db.Head(bg, "side")
	_, err := db.Rebase(bg, "side", upstream, RebaseOptions{})
	var conflict *ConflictError
	if !errors.As(err, &conflict) || !errors.Is(err, ErrConflict) || len(conflict.Conflicts) != 1 || conflict.Conflicts[0].Path != "y" {
		t.Fatalf("error %v", err)
	}
	if head, _ := db.Head(bg, "side"); head != before {
		t.Error("a conflict moved the branch")
	}
	for choice, want := range map[Choice]string{Ours: "main", Theirs: "a"} {
		must.Get(db.Rebase(bg, "side", upstream, RebaseOptions{Choices: []PathChoice{{Path: "y", Choice: choice}}}))(t)
		if got := at(t, db, "side"); got["y"] != want || got["z/b"] != "b" {
			t.Errorf("chosen %v: %v", choice, got)
		}
		must.Get(db.Reset(bg, "side", before))(t)
	}
}

// What upstream has already is left out, and a merge is one commit of what it
// brought in.
func TestRebaseOfPicksAndMerges(t *testing.T) {
	db, base := forked(t)
	side, _ := db.Head(bg, "side")
	must.Get(db.CherryPick(bg, "", side, 0, CommitOptions{}))(t)
	must.Do(t, db.CreateBranch(bg, "third", base))
	third := update(t, db, "third", map[string]string{"t": "3"})
	must.Get(db.Merge(bg, "side", third.ID, CommitOptions{Message: "merge third"}))(t)
	upstream, _ := db.Head(bg, "")
	must.Get(db.Rebase(bg, "side", upstream, RebaseOptions{}))(t)
	if got, want := messages(t, db, "side"), []string{"merge third", "a", "b", "u2", "u1", "base", "create database"}; !slices.Equal(got, want) {
		t.Errorf("history %q, want %q", got, want)
	}
	if got := at(t, db, "side"); got["t"] != "3" || got["z/a"] != "a" || got["z/b"] != "b" {
		t.Errorf("holds %v", got)
	}
	if _, err := db.Rebase(bg, "side", CommitID{9}, RebaseOptions{}); !errors.Is(err, ErrNoRef) {
		t.Errorf("onto nothing: %v", err)
	}
}

func TestDryRunsAndChoices(t *testing.T) {
	db, _ := forked(t)
	update(t, db, "", map[string]string{"y": "main"})
	head, _ := db.Head(bg, "")
	side, _ := db.Head(bg, "side")
	if _, err := db.Merge(bg, "", side, CommitOptions{DryRun: true}); !errors.Is(err, ErrConflict) {
		t.Errorf("a dry run of a merge with conflicts: %v", err)
	}
	asked := 0
	c, err := db.Merge(bg, "", side, CommitOptions{DryRun: true, choose: func(c Conflict) Choice { asked++; return Theirs }})
	if err != nil || asked != 1 || len(c.Parents) != 2 {
		t.Errorf("a dry run that chooses: %+v, %v, asked %d times", c, err, asked)
	}
	if now, _ := db.Head(bg, ""); now != head {
		t.Error("a dry run moved the branch")
	}
	if _, err := db.Lookup(bg, c.ID); !errors.Is(err, ErrNoRef) {
		t.Errorf("the commit of a dry run: %v", err)
	}
	// Both sides are older than what they are compared with, if that is forced: nothing of ours
	// is left to conflict with.
	if _, err := db.Merge(bg, "", side, CommitOptions{Base: head, ForceBase: true}); err != nil {
		t.Errorf("with a base that was chosen: %v", err)
	}
	if got := at(t, db, ""); got["y"] != "a" {
		t.Errorf("holds %v", got)
	}
	s := must.Get(db.Begin(bg, "side"))(t)
	set(t, s, map[string]string{"y": "mine"})
	update(t, db, "side", map[string]string{"y": "other"})
	if _, err := s.Commit(bg, CommitOptions{DryRun: true, Choices: []PathChoice{{Path: "", Choice: Ours}}}); err != nil {
		t.Errorf("a dry run of a session: %v", err)
	}
	if _, err := s.Commit(bg, CommitOptions{}); !errors.Is(err, ErrConflict) {
		t.Errorf("a session: %v", err)
	}
	if _, err := s.Commit(bg, CommitOptions{Choices: []PathChoice{{Path: "", Choice: Theirs}}}); err != nil {
		t.Errorf("a session that chooses: %v", err)
	}
	if got := at(t, db, "side"); got["y"] != "mine" {
		t.Errorf("holds %v", got)
	}
	pick, err := db.CherryPick(bg, "", side, 0, CommitOptions{choose: func(Conflict) Choice { return Ours }, DryRun: true})
	if err != nil {
		t.Errorf("a dry pick: %+v, %v", pick, err)
	}
}
