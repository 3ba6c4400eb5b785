package engine

import (
	"errors"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

func begin(t *testing.T, db *DB) *Session {
	t.Helper()
	s := must.Get(db.Begin(bg, ""))(t)
	return s
}

// A commit that is only tried leaves the session open, to be detached and resumed.
func TestDetachAfterADryRun(t *testing.T) {
	db := openDB(t, nil)
	s := begin(t, db)
	must.Do(t, s.Set(bg, "a", []byte("1")))
	must.Get(s.Commit(bg, txn.CommitOptions{DryRun: true}))(t)
	must.Do(t, s.Detach(bg))
	again := must.Get(db.Resume(bg, s.ID()))(t)
	must.Get(again.Commit(bg, txn.CommitOptions{}))(t)
}

// A session that was joined goes on until the last one leaves it, and ends for all.
func TestJoin(t *testing.T) {
	db := openDB(t, nil)
	s := begin(t, db)
	must.Do(t, s.Set(bg, "a", []byte("1")))
	h := must.Get(db.Handle(nil))(t)
	joined := must.Get(h.Resume(bg, s.ID()))(t)
	if b, err := joined.Get(bg, "a", kv.All()); err != nil || string(b) != "1" {
		t.Fatalf("%q, %v", b, err)
	}
	if err := h.Close(); err != nil { // leaves it
		t.Fatal(err)
	}
	if s.Ended() {
		t.Fatal("the session ended with a handle")
	}
	other := must.Get(db.Resume(bg, s.ID()))(t)
	must.Do(t, s.Detach(bg))
	if other.Ended() {
		t.Fatal("the session ended though somebody uses it")
	}
	must.Get(other.Commit(bg, txn.CommitOptions{}))(t)
	if _, err := db.Resume(bg, s.ID()); !errors.Is(err, txn.ErrNoRef) {
		t.Errorf("joined after the commit: %v", err)
	}
}

// Conditional writes take place where the key holds what is expected.
func TestExpect(t *testing.T) {
	db := openDB(t, nil)
	s := begin(t, db)
	defer s.Abort()
	first := must.Get(s.SetIf(bg, "a", []byte("1"), Expect{Absent: true}))(t)
	var changed *ChangedError
	if _, err := s.SetIf(bg, "a", []byte("2"), Expect{Absent: true}); !errors.As(err, &changed) || !errors.Is(err, txn.ErrConflict) {
		t.Errorf("a key that is there: %v", err)
	}
	second, err := s.SetIf(bg, "a", []byte("2"), Expect{ID: first})
	if err != nil || second == first {
		t.Fatalf("%v, %v", second, err)
	}
	if err := s.DeleteIf(bg, "a", Expect{ID: first}); !errors.As(err, &changed) || changed.Have != second {
		t.Errorf("deleted what was written since: %v", err)
	}
	if err := s.DeleteIf(bg, "a", Expect{ID: second}); err != nil {
		t.Error(err)
	}
	if _, err := s.SetIf(bg, "a", []byte("3"), Expect{ID: second}); !errors.As(err, &changed) || changed.Have != (kv.ID{}) {
		t.Errorf("written over a key that is gone: %v", err)
	}
}
