package engine

import (
	"errors"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
)

// Two branches made the same array. In one of them a chunk was overwritten with the
// fill value and is not stored any more, which must not look as if it had never
// been written.
func TestTwoArraysAtOnePath(t *testing.T) {
	db := openDB(t, nil)
	base := head(t, db, "")
	must.Do(t, db.store.CreateBranch(bg, "side", base))
	made := func(s *Session) error { return create(s, "x", line(6, 2)) }
	commit(t, db, "", "main", made)
	side := commit(t, db, "side", "side", made)
	if _, err := db.store.Merge(bg, "", side, txn.CommitOptions{}); err != nil {
		t.Fatalf("equal arrays: %v", err)
	}
	must.Get(db.store.Reset(bg, "", base))(t)
	commit(t, db, "", "main again", made)
	side = commit(t, db, "side", "correct", func(s *Session) error { return put(s, "x", 2, 0, 0) })
	_, err := db.store.Merge(bg, "", side, txn.CommitOptions{})
	var conflict *txn.ConflictError
	if !errors.As(err, &conflict) {
		t.Fatalf("error %v, want a conflict", err)
	}
	if c := conflict.Conflicts[0]; len(conflict.Conflicts) != 1 || c.Kind != txn.ConflictCreate || c.Path != "x/c/1" || !slices.Equal(c.Coords, []int64{1}) {
		t.Errorf("conflicts %v", conflict.Conflicts)
	}
	theirs := txn.CommitOptions{Choices: []txn.PathChoice{{Path: "x", Choice: txn.Theirs}}}
	must.Get(db.store.Merge(bg, "", side, theirs))(t)
	wantInts(t, at(t, db, ""), "x", 0, 1, 0, 0, 4, 5)
}
