package engine

import (
	"errors"
	"testing"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// draftDB returns a database with the arrays g/x and z in a layout of the early
// v3 draft, four elements each in chunks of two.
func draftDB(t *testing.T, l meta.DraftLayout) *DB {
	t.Helper()
	db := openDB(t, nil)
	commit(t, db, "", "first", func(s *Session) (err error) {
		set := func(key, value string) { err = errors.Join(err, s.Set(bg, key, []byte(value))) }
		grid, name := `{"type":"regular","chunk_shape":[2]}`, ""
		if l == meta.DraftRoot {
			set(names.V3, `{"zarr_format":"https://purl.org/zarr/spec/protocol/core/3.0","metadata_key_suffix":".json"}`)
			grid, name = `{"type":"regular","chunk_shape":[2],"separator":"/"}`, "c"
		}
		for _, path := range []string{"g/x", "z"} {
			set(l.ArrayKey(path), `{"shape":[4],"data_type":"<i4","chunk_grid":`+grid+`,"chunk_memory_layout":"C","fill_value":0}`)
			set(l.ChunkPrefix(path)+name+"0", "\x00\x00\x00\x00\x01\x00\x00\x00")
			set(l.ChunkPrefix(path)+name+"1", "\x02\x00\x00\x00\x03\x00\x00\x00")
		}
		return err
	})
	return db
}

// TestDraftReadOnly: nodes of the early v3 draft are read and exported in other
// formats; sessions change none, and take none from elsewhere.
func TestDraftReadOnly(t *testing.T) {
	for _, l := range []meta.DraftLayout{meta.DraftSuffix, meta.DraftRoot} {
		db := draftDB(t, l)
		old := at(t, db, "main")
		wantInts(t, old, "g/x", 0, 1, 2, 3)
		v3 := openDB(t, nil)
		commit(t, v3, "", "v3", func(s *Session) error { return create(s, "a", line(2, 1)) })
		for _, c := range []struct {
			what string
			db   *DB
			do   func(*Session) error
			want error
		}{
			{"write", db, func(s *Session) error { return put(s, "z", 0, 9) }, zarr.ErrDraft3},
			{"create", db, func(s *Session) error { return create(s, "g/new", line(2, 1)) }, zarr.ErrDraft3},
			{"replace", db, func(s *Session) error { _, err := s.ReplaceArray(bg, "z", line(2, 1)); return err }, zarr.ErrDraft3},
			{"rename", db, func(s *Session) error { return s.Rename(bg, "g", "h") }, zarr.ErrDraft3},
			{"copy", db, func(s *Session) error { return s.CopyNode(bg, nil, "z", "y") }, zarr.ErrDraft3},
			{"copy from a version", db, func(s *Session) error { return s.CopyNode(bg, old, "z", "y") }, zarr.ErrDraft3},
			{"copy from another database", v3, func(s *Session) error { return s.CopyNode(bg, old, "z", "z") }, zarr.ErrDraft3},
			{"copy of v3 into the draft", db, func(s *Session) error { return s.CopyNode(bg, at(t, v3, "main"), "a", "a") }, zarr.ErrKind},
			{"remove an array", db, func(s *Session) error { return s.Remove(bg, "z") }, zarr.ErrDraft3},
			{"remove a group", db, func(s *Session) error { return s.Remove(bg, "g") }, zarr.ErrDraft3},
			{"rename nothing", db, func(s *Session) error { return s.Rename(bg, "nope", "y") }, zarr.ErrNotFound},
		} {
			s := must.Get(c.db.Begin(bg, "main"))(t)
			if err := c.do(s); !errors.Is(err, c.want) {
				t.Errorf("layout %d: %s: %v, want %v", l, c.what, err, c.want)
			}
			for change, err := range s.Changes(bg, "") {
				t.Errorf("layout %d: %s changed %v, %v", l, c.what, change, err)
			}
			if err := s.Abort(); err != nil {
				t.Error(err)
			}
		}
		commit(t, db, "", "nothing", func(s *Session) error { return s.Remove(bg, "") })
		if left := contents(t, at(t, db, "main")); len(left) > 0 {
			t.Errorf("layout %d: %v are left", l, left)
		}
	}
	if !errors.Is(zarr.ErrDraft3, kv.ErrReadOnly) {
		t.Error("ErrDraft3 is not a kv.ErrReadOnly")
	}
}
