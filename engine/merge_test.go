package engine

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// Many sessions write different chunks of one array at once; all get through.
func TestConcurrentUpdatesOfDifferentChunksMerge(t *testing.T) {
	db := openDB(t, nil)
	const writers, rounds, chunk = 8, 5, 10
	commit(t, db, "", "x", func(s *Session) error { return create(s, "x", line(writers*rounds*chunk, chunk)) })
	before := head(t, db, "")
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		wg.Go(func() {
			for r := range rounds {
				at := int64(r*writers+w) * chunk
				_, err := db.Update(bg, "", fmt.Sprintf("writer %d round %d", w, r), func(s *Session) error {
					return put(s, "x", at, int32(-w), int32(-r))
				})
				errs[w] = errors.Join(errs[w], err)
			}
		})
	}
	wg.Wait()
	must.Do(t, errors.Join(errs...))
	v := ints(t, at(t, db, ""), "x")
	for w := range writers {
		for r := range rounds {
			i := (r*writers + w) * chunk
			if v[i] != int32(-w) || v[i+1] != int32(-r) || v[i+2] != int32(i+2) {
				t.Errorf("writer %d round %d: %v", w, r, v[i:i+3])
			}
		}
	}
	n := 0
	for c, err := range db.store.Log(bg, head(t, db, "")) {
		must.Do(t, err)
		if c.ID == before {
			break
		}
		n++
	}
	if n != writers*rounds {
		t.Errorf("%d commits, want %d", n, writers*rounds)
	}
}

// Two sessions begin from the same version, and ours commits first.
func TestConflictsOfSessions(t *testing.T) {
	resize := func(n int64) func(*Session) error {
		return func(s *Session) error {
			a, err := s.Array(bg, "g/x")
			if err != nil {
				return err
			}
			return a.Resize(bg, []int64{n}, zarr.ResizeOptions{})
		}
	}
	write := func(from int64, v ...int32) func(*Session) error {
		return func(s *Session) error { return put(s, "g/x", from, v...) }
	}
	attr := func(path, name string, v any) func(*Session) error {
		return func(s *Session) error { return setAttr(s, path, name, v) }
	}
	for _, c := range []struct {
		what         string
		ours, theirs func(*Session) error
		kind         txn.ConflictKind // 0 for none
		path         string
		coords       []int64
		check        func(*testing.T, *Snapshot)
	}{
		{what: "different chunks", ours: write(0, 50), theirs: write(4, 60), check: func(t *testing.T, s *Snapshot) {
			wantInts(t, s, "g/x", 50, 1, 2, 3, 60, 5)
		}},
		{what: "one chunk", ours: write(2, 50), theirs: write(3, 60), kind: txn.ConflictChunk, path: "g/x/c/1", coords: []int64{1}},
		{what: "one chunk, the same bytes", ours: write(2, 50), theirs: write(2, 50), kind: txn.ConflictChunk, path: "g/x/c/1", coords: []int64{1}},
		{what: "one chunk, the bytes that were there", ours: write(2, 50), theirs: write(2, 2, 3), check: func(t *testing.T, s *Snapshot) {
			wantInts(t, s, "g/x", 0, 1, 50, 3, 4, 5)
		}},
		{what: "the same shape", ours: resize(9), theirs: resize(9), kind: txn.ConflictDocument, path: "g/x/zarr.json"},
		{what: "the same attribute", ours: attr("g/x", "a", 1), theirs: attr("g/x", "a", 1), kind: txn.ConflictDocument, path: "g/x/zarr.json"},
		{what: "removed by both", ours: func(s *Session) error { return s.Remove(bg, "g/x") }, theirs: func(s *Session) error { return s.Remove(bg, "g/x") }, check: func(t *testing.T, s *Snapshot) {
			if _, err := s.Node(bg, "g/x"); !errors.Is(err, zarr.ErrNotFound) {
				t.Error(err)
			}
		}},
		{what: "renamed alike", ours: func(s *Session) error { return s.Rename(bg, "g/x", "y") }, theirs: func(s *Session) error { return s.Rename(bg, "g/x", "y") }, kind: txn.ConflictRename, path: "g/x"},
		{what: "created alike", ours: func(s *Session) error { return create(s, "new", line(2, 2)) }, theirs: func(s *Session) error { return create(s, "new", line(2, 2)) }, kind: txn.ConflictCreate, path: "new/zarr.json"},
		{what: "created in a group that both made", ours: func(s *Session) error { return create(s, "new/a", line(2, 2)) }, theirs: func(s *Session) error { return create(s, "new/b", line(2, 2)) }, check: func(t *testing.T, s *Snapshot) {
			wantInts(t, s, "new/a", 0, 1)
			wantInts(t, s, "new/b", 0, 1)
		}},
		{what: "a chunk that is cut off", ours: resize(4), theirs: write(4, 60), kind: txn.ConflictShrink, path: "g/x/c/2", coords: []int64{2}},
		{what: "a cut off chunk", ours: write(4, 60), theirs: resize(4), kind: txn.ConflictShrink, path: "g/x/c/2", coords: []int64{2}},
		{what: "growth and a chunk", ours: resize(9), theirs: write(0, 60), check: func(t *testing.T, s *Snapshot) {
			wantInts(t, s, "g/x", 60, 1, 2, 3, 4, 5, 0, 0, 0)
		}},
		{what: "two shapes", ours: resize(9), theirs: resize(8), kind: txn.ConflictDocument, path: "g/x/zarr.json"},
		{what: "different attributes", ours: attr("g/x", "a", 1), theirs: attr("g/x", "b", 2), check: func(t *testing.T, s *Snapshot) {
			if got := attrsOf(t, s, "g/x"); got != `{"a":1,"b":2}` {
				t.Errorf("attributes %s", got)
			}
		}},
		{what: "one attribute", ours: attr("g/x", "a", 1), theirs: attr("g/x", "a", 2), kind: txn.ConflictDocument, path: "g/x/zarr.json"},
		{what: "attributes of the group above and a chunk", ours: attr("g", "a", 1), theirs: write(0, 60), check: func(t *testing.T, s *Snapshot) {
			wantInts(t, s, "g/x", 60, 1, 2, 3, 4, 5)
		}},
		{
			what: "replaced and written", kind: txn.ConflictGone, path: "g/x",
			ours: func(s *Session) error {
				spec := line(6, 2)
				spec.DataType = "int64"
				_, err := s.ReplaceArray(bg, "g/x", spec)
				return err
			},
			theirs: write(0, 60),
		},
		{what: "removed and written", ours: func(s *Session) error { return s.Remove(bg, "g/x") }, theirs: write(0, 60), kind: txn.ConflictGone, path: "g/x"},
		{what: "renamed and written", ours: func(s *Session) error { return s.Rename(bg, "g/x", "y") }, theirs: write(0, 60), check: func(t *testing.T, s *Snapshot) {
			wantInts(t, s, "y", 60, 1, 2, 3, 4, 5)
		}},
		{what: "renamed twice", ours: func(s *Session) error { return s.Rename(bg, "g/x", "y") }, theirs: func(s *Session) error { return s.Rename(bg, "g/x", "z") }, kind: txn.ConflictRename, path: "g/x"},
		{what: "created twice", ours: func(s *Session) error { return create(s, "new", line(2, 2)) }, theirs: func(s *Session) error { return create(s, "new", line(3, 3)) }, kind: txn.ConflictCreate, path: "new/zarr.json"},
		{what: "created side by side", ours: func(s *Session) error { return create(s, "n1", line(2, 2)) }, theirs: func(s *Session) error { return create(s, "n2", line(2, 2)) }, check: func(t *testing.T, s *Snapshot) {
			wantInts(t, s, "n1", 0, 1)
			wantInts(t, s, "n2", 0, 1)
		}},
		{what: "created in a removed group", ours: func(s *Session) error { return s.Remove(bg, "g") }, theirs: func(s *Session) error { return create(s, "g/y", line(2, 2)) }, kind: txn.ConflictAncestor, path: "g/y"},
	} {
		t.Run(c.what, func(t *testing.T) {
			db := openDB(t, nil)
			commit(t, db, "", "x", func(s *Session) error { return create(s, "g/x", line(6, 2)) })
			s, err := db.Begin(bg, "")
			must.Do(t, err)
			defer s.Abort()
			must.Do(t, c.theirs(s))
			ours := commit(t, db, "", "ours", c.ours)
			_, err = s.Commit(bg, txn.CommitOptions{Message: "theirs"})
			if c.kind == 0 {
				must.Do(t, err)
				c.check(t, at(t, db, ""))
				return
			}
			var conflict *txn.ConflictError
			if !errors.As(err, &conflict) || !errors.Is(err, txn.ErrConflict) {
				t.Fatalf("error %v", err)
			}
			found := slices.ContainsFunc(conflict.Conflicts, func(got txn.Conflict) bool {
				return got.Kind == c.kind && got.Path == c.path && slices.Equal(got.Coords, c.coords)
			})
			if !found {
				t.Errorf("conflicts %+v, want a %v at %s %v", conflict.Conflicts, c.kind, c.path, c.coords)
			}
			if conflict.Branch != txn.MainBranch || conflict.Head != ours || head(t, db, "") != ours {
				t.Errorf("conflict of %s at %v, head %v", conflict.Branch, conflict.Head, head(t, db, ""))
			}
		})
	}
}

// The session that met a conflict is as it was, and can go on from the head.
func TestSessionAfterAConflict(t *testing.T) {
	db := openDB(t, nil)
	commit(t, db, "", "x", func(s *Session) error { return create(s, "x", line(6, 2)) })
	s := must.Get(db.Begin(bg, ""))(t)
	must.Do(t, put(s, "x", 0, 60))
	commit(t, db, "", "ours", func(s *Session) error { return put(s, "x", 1, 50) })
	if _, err := s.Commit(bg, txn.CommitOptions{}); !errors.Is(err, txn.ErrConflict) {
		t.Fatal(err)
	}
	if err := s.Refresh(bg, nil); !errors.Is(err, txn.ErrConflict) {
		t.Fatal(err)
	}
	wantInts(t, s, "x", 60, 1, 2, 3, 4, 5)
	if err := put(s, "x", 0, 0); err != nil { // give the change up
		t.Fatal(err)
	}
	must.Do(t, put(s, "x", 4, 70))
	must.Do(t, s.Refresh(bg, nil))
	wantInts(t, s, "x", 0, 50, 2, 3, 70, 5)
	must.Get(s.Commit(bg, txn.CommitOptions{}))(t)
	wantInts(t, at(t, db, ""), "x", 0, 50, 2, 3, 70, 5)
}

func TestBranchesMergeRevertAndPick(t *testing.T) {
	db := openDB(t, nil)
	base := commit(t, db, "", "x", func(s *Session) error { return create(s, "x", line(6, 2)) })
	must.Do(t, db.store.CreateBranch(bg, "side", base))
	commit(t, db, "", "main", func(s *Session) error { return put(s, "x", 0, 50) })
	side := commit(t, db, "side", "side", func(s *Session) error { return put(s, "x", 4, 60) })
	c, err := db.store.Merge(bg, "", side, txn.CommitOptions{})
	if err != nil || len(c.Parents) != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	wantInts(t, at(t, db, ""), "x", 50, 1, 2, 3, 60, 5)
	must.Get(db.store.Revert(bg, "", side, 0, txn.CommitOptions{}))(t)
	wantInts(t, at(t, db, ""), "x", 50, 1, 2, 3, 4, 5)
	must.Get(db.store.CherryPick(bg, "", side, 0, txn.CommitOptions{}))(t)
	wantInts(t, at(t, db, ""), "x", 50, 1, 2, 3, 60, 5)
	must.Get(db.store.Reset(bg, "", base))(t)
	wantInts(t, at(t, db, ""), "x", 0, 1, 2, 3, 4, 5)
	wantInts(t, at(t, db, "main@{1}"), "x", 50, 1, 2, 3, 60, 5)
}

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
