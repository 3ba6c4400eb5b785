package txn

import (
	"errors"
	"github.com/zarrdb/zarrdb/internal/must"
	"maps"
	"testing"
)

func TestUndo(t *testing.T) {
	db := openTest(t, nil)
	update(t, db, "", map[string]string{"a": "1"})
	first, _ := db.Head(bg, "")
	update(t, db, "", map[string]string{"a": "2"})
	second, _ := db.Head(bg, "")
	must.Do(t, errors.Join(db.CreateBranch(bg, "side", first), db.CreateTag(bg, "v1", first)))
	undo := func(branch string, want CommitID) {
		t.Helper()
		m, err := db.UndoBranch(bg, branch)
		if err != nil || m.New != want || m.Op != "undo" {
			t.Fatalf("undo of %q: %+v, %v, want %s", branch, m, err, want.Short())
		}
		if id, err := db.Head(bg, branch); id != want || errors.Is(err, ErrNoRef) != want.IsZero() {
			t.Fatalf("after the undo %q is at %v, %v", branch, id, err)
		}
	}
	undo("", first)
	undo("", second)
	must.Get(db.Reset(bg, "", first))(t)
	undo("", second)
	undo("side", CommitID{})
	undo("side", first)
	must.Do(t, db.DeleteBranch(bg, "side"))
	undo("side", first)
	if _, err := db.UndoBranch(bg, "never"); !errors.Is(err, ErrNoRef) {
		t.Errorf("a branch that never was: %v", err)
	}
	must.Do(t, db.DeleteTag(bg, "v1"))
	if got := at(t, db, "v1@{1}"); !maps.Equal(got, map[string]string{"a": "1"}) {
		t.Errorf("a deleted tag by its reflog: %v", got)
	}
	if _, err := db.Resolve(bg, "v1@{0}"); !errors.Is(err, ErrNoRef) {
		t.Errorf("a deleted tag: %v", err)
	}
	if m, err := db.UndoTag(bg, "v1"); err != nil || m.New != first {
		t.Errorf("undo of a tag: %+v, %v", m, err)
	}
	if _, err := db.UndoTag(bg, "never"); !errors.Is(err, ErrNoRef) {
		t.Errorf("a tag that never was: %v", err)
	}
	if id, err := db.Resolve(bg, "v1"); err != nil || id != first {
		t.Errorf("v1 is %v, %v", id, err)
	}
}
