package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/zarr"
)

// draftLine is an array of n elements in the early v3 draft.
func draftLine(n int64) zarr.Spec {
	return zarr.Spec{Version: zarr.Draft3, Shape: []int64{n}, Chunks: []int64{2}, DataType: "int32"}
}

// draftDB returns a database with g/x, g/h/y and z in a layout.
func draftDB(t *testing.T, l zarr.DraftLayout) *DB {
	t.Helper()
	db := openDB(t, nil)
	commit(t, db, "", "first", func(s *Session) error {
		if l == zarr.DraftRoot {
			if err := zarr.InitDraft3(bg, s); err != nil {
				return err
			}
		}
		for _, path := range []string{"g/x", "g/h/y", "z"} {
			if err := create(s, path, draftLine(4)); err != nil {
				return err
			}
		}
		return nil
	})
	return db
}

// TestDraftTransfer renames, copies and removes nodes of the early v3 draft.
func TestDraftTransfer(t *testing.T) {
	for _, l := range []zarr.DraftLayout{zarr.DraftSuffix, zarr.DraftRoot} {
		db := draftDB(t, l)
		first := at(t, db, "main")
		commit(t, db, "", "move", func(s *Session) error {
			return errors.Join(s.Rename(bg, "g", "deep/down"), s.Rename(bg, "z", "a"), s.CopyNode(bg, nil, "deep/down/x", "b"),
				s.CopyNode(bg, first, "g/h", "old"), put(s, "b", 0, 9))
		})
		now := at(t, db, "main")
		var paths []string
		for n, err := range now.Walk(bg, "") {
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, n.Path())
		}
		if got := strings.Join(paths, " "); got != " a b deep deep/down deep/down/h deep/down/h/y deep/down/x old old/y" {
			t.Errorf("layout %d: %q", l, got)
		}
		for _, path := range []string{"a", "deep/down/x", "deep/down/h/y", "old/y"} {
			wantInts(t, now, path, 0, 1, 2, 3)
		}
		wantInts(t, now, "b", 9, 1, 2, 3)
		wantInts(t, first, "g/x", 0, 1, 2, 3)

		commit(t, db, "", "remove", func(s *Session) error {
			return errors.Join(s.Remove(bg, "deep"), s.Remove(bg, "a"), s.Remove(bg, "b"), s.Remove(bg, "old/y"))
		})
		for key := range contents(t, at(t, db, "main")) {
			if key != docV3 {
				t.Errorf("layout %d: %s is left", l, key)
			}
		}
		// Into a session without any key: the copy begins the store.
		if l == zarr.DraftRoot {
			commit(t, db, "", "nothing", func(s *Session) error { return s.Remove(bg, "") })
		}
		commit(t, db, "", "back", func(s *Session) error { return s.CopyNode(bg, first, "g", "g") })
		wantInts(t, at(t, db, "main"), "g/x", 0, 1, 2, 3)
	}
}

// TestDraftTransferErrors: what is refused changes nothing.
func TestDraftTransferErrors(t *testing.T) {
	suffix, root := draftDB(t, zarr.DraftSuffix), draftDB(t, zarr.DraftRoot)
	old := at(t, suffix, "main")
	for _, c := range []struct {
		what string
		db   *DB
		do   func(*Session) error
		want error
	}{
		{"to a node", suffix, func(s *Session) error { return s.Rename(bg, "z", "g/x") }, zarr.ErrExists},
		{"to a group without a document", root, func(s *Session) error { return s.Rename(bg, "z", "g") }, zarr.ErrExists},
		{"into itself", suffix, func(s *Session) error { return s.Rename(bg, "g", "g/h/i") }, zarr.ErrPath},
		{"to itself", root, func(s *Session) error { return s.CopyNode(bg, nil, "g", "g") }, zarr.ErrPath},
		{"to the root", suffix, func(s *Session) error { return s.Rename(bg, "z", "") }, zarr.ErrPath},
		{"to a name without a key", root, func(s *Session) error { return s.Rename(bg, "z", "a b") }, zarr.ErrPath},
		{"below an array", suffix, func(s *Session) error { return s.Rename(bg, "z", "g/x/z") }, zarr.ErrKind},
		{"to keys that lie about", suffix, func(s *Session) error {
			if err := s.Set(bg, "data/q.a/0", []byte("x")); err != nil {
				return err
			}
			return s.Rename(bg, "z", "q")
		}, zarr.ErrExists},
		{"to the other layout", root, func(s *Session) error { return s.CopyNode(bg, old, "z", "zz") }, zarr.ErrKind},
		{"of a node of v3 into the draft", suffix, func(s *Session) error {
			_, err := s.CreateArray(bg, "v3", zarr.Spec{Version: zarr.V3, Shape: []int64{1}, DataType: "int8"})
			return err
		}, zarr.ErrKind},
		{"of nothing", suffix, func(s *Session) error { return s.Rename(bg, "nope", "y") }, zarr.ErrNotFound},
	} {
		s, err := c.db.Begin(bg, "main")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.do(s); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
		if err := s.Abort(); err != nil {
			t.Error(err)
		}
	}
	// A database of v3 takes no draft nodes.
	db := openDB(t, nil)
	commit(t, db, "", "v3", func(s *Session) error { return create(s, "a", line(2, 1)) })
	s, err := db.Begin(bg, "main")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CopyNode(bg, old, "z", "z"); !errors.Is(err, zarr.ErrKind) {
		t.Error(err)
	}
	if err := s.Abort(); err != nil {
		t.Error(err)
	}
}
