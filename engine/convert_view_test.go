package engine

import (
	"errors"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// Arrays of one format are read in the other, and what has no form there says why.
func TestConverted(t *testing.T) {
	for from, to := range map[zarr.Version]zarr.Version{zarr.V2: zarr.V3, zarr.V3: zarr.V2} {
		db := openDB(t, nil)
		spec := line(6, 2)
		spec.Version = from
		commit(t, db, "", "arrays", func(s *Session) error {
			for _, path := range []string{"a", "g/h/b"} {
				if err := create(s, path, spec); err != nil {
					return err
				}
				a, err := s.Array(bg, path)
				if err != nil {
					return err
				}
				if err := zarr.Write(bg, a, zarr.Sel(), []int32{1, 2, 3, 4, 5, 6}); err != nil {
					return err
				}
			}
			return s.Set(bg, "notes.txt", []byte("x"))
		})
		s := at(t, db, "")
		session := must.Get(db.Begin(bg, ""))(t)
		defer session.Abort()
		for _, view := range []kv.ReadLister{s.Converted(to), session.Converted(to)} {
			for _, path := range []string{"a", "g/h/b"} {
				a, err := zarr.OpenArray(bg, view, path, nil)
				if err != nil || a.Meta().Version != to {
					t.Fatalf("%s: %v", path, err)
				}
				got, _, err := zarr.Read[int32](bg, a, zarr.Sel())
				if err != nil || len(got) != 6 || got[5] != 6 {
					t.Errorf("%s: %v, %v", path, got, err)
				}
			}
			n := 0
			for node, err := range zarr.Walk(bg, view, "", nil) {
				if err != nil || node.Version() != to {
					t.Errorf("walk: %v", err)
				}
				n++
			}
			if n != 5 {
				t.Errorf("%d nodes", n)
			}
			// Every key that is listed can be read, and its chunks are those of the source.
			keys, err := kv.Keys(bg, view, "")
			if err != nil || len(keys) < 2*4+3 {
				t.Fatalf("keys %q, %v", keys, err)
			}
			for _, key := range keys {
				if _, err := kv.Get(bg, view, key); err != nil {
					t.Errorf("%s: %v", key, err)
				}
			}
			for _, prefix := range []string{"a", "a/", "g/", "g/h/b/c", "g/h/b/0", "none/", "g/h/b/"} {
				var want []string
				for _, key := range keys {
					if len(key) >= len(prefix) && key[:len(prefix)] == prefix {
						want = append(want, key)
					}
				}
				got, err := kv.Keys(bg, view, prefix)
				if err != nil || len(got) != len(want) {
					t.Errorf("below %q: %q, want %q, %v", prefix, got, want, err)
				}
			}
			for _, key := range []string{"notes.txt", "none", "a/c/9", "a/9", "a/x", "x/y/z"} {
				if _, err := view.Get(bg, key, kv.All()); !errors.Is(err, kv.ErrNotFound) {
					t.Errorf("%s: %v", key, err)
				}
			}
		}
	}
}

// A shard has no form in v2; its neighbours do.
func TestConvertedRefusal(t *testing.T) {
	db := openDB(t, nil)
	commit(t, db, "", "arrays", func(s *Session) error {
		spec := line(6, 2)
		if err := create(s, "plain", spec); err != nil {
			return err
		}
		spec.Shards = []int64{6}
		return create(s, "sharded", spec)
	})
	view := at(t, db, "").Converted(zarr.V2)
	for _, key := range []string{"sharded/.zarray", "sharded/0", "sharded/.zattrs"} {
		if _, err := view.Get(bg, key, kv.All()); !errors.Is(err, ErrConvert) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := zarr.OpenArray(bg, view, "plain", nil); err != nil {
		t.Error(err)
	}
	for node, err := range zarr.Walk(bg, view, "", nil) {
		if err != nil || node.Path() == "sharded" {
			t.Errorf("walk: %v, %v", node, err)
		}
	}
}
