package engine

import (
	"errors"
	"os"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// Each kind of error is found in what every layer returns, and no other kind is.
func TestErrorKinds(t *testing.T) {
	dir := t.TempDir()
	db := openAt(t, dir+"/t.zdb", &Options{Create: true})
	spec := zarr.Spec{Shape: []int64{4}, Chunks: []int64{4}, DataType: "int32"}
	first := commit(t, db, "", "first", func(s *Session) error {
		a, err := s.CreateArray(bg, "x", spec)
		return errors.Join(err, zarr.Write(bg, a, zarr.Sel(), []int32{1, 2, 3, 4}), s.Set(bg, "x/c/9", []byte("bad")))
	})
	must.Do(t, db.store.CreateTag(bg, "v1", first))
	snap := at(t, db, "")
	mine := must.Get(db.Begin(bg, ""))(t)
	theirs := must.Get(db.Begin(bg, ""))(t)
	for i, s := range []*Session{mine, theirs} {
		must.Do(t, zarr.Write(bg, array(t, s, "x"), zarr.Sel(), []int32{int32(i), 7, 7, 7}))
	}
	must.Get(theirs.Commit(bg, txn.CommitOptions{}))(t)
	_, conflict := mine.Commit(bg, txn.CommitOptions{})
	_, changed := mine.SetIf(bg, "x/zarr.json", nil, Expect{Absent: true})
	o := memOptions()
	other := openDB(t, o)
	commit(t, other, "", "x", func(s *Session) error { return create(s, "x", spec) })
	other.Close()
	reader := must.Get(Open(bg, "db", &Options{FS: o.FS, ReadOnly: true}))(t)
	defer reader.Close()
	get := func(key string) error { _, err := kv.Get(bg, snap, key); return err }
	node := func(path string) error { _, err := snap.Array(bg, path); return err }
	source := func(url string) error {
		s, err := OpenSource(bg, url, nil)
		if err != nil {
			return err
		}
		defer s.Close()
		_, err = s.Node(bg)
		return err
	}
	exported := func(dest string) error {
		src, err := OpenViewSource(snap, dir+"/t.zdb", "", nil)
		if err != nil {
			return nil
		}
		defer src.Close()
		_, err = Export(bg, src, dest, ExportOptions{})
		return err
	}
	must.Do(t, os.WriteFile(dir+"/taken", []byte("x"), 0o666))
	kinds := []error{ErrNotFound, ErrExists, ErrConflict, ErrCorrupt, ErrLocked, ErrReadOnly, ErrClosed}
	for _, c := range []struct {
		what string
		err  error
		kind error
	}{
		{"key", get("x/none"), ErrNotFound},
		{"node", node("none"), ErrNotFound},
		{"remove", mine.Remove(bg, "none"), ErrNotFound},
		{"revision", func() error { _, err := db.At(bg, "none"); return err }(), ErrNotFound},
		{"commit", func() error { _, err := db.store.Lookup(bg, txn.CommitID{1}); return err }(), ErrNotFound},
		{"session", func() error { _, err := db.Resume(bg, txn.SessionID{1}); return err }(), ErrNotFound},
		{"database", func() error { _, err := Open(bg, dir+"/none", nil); return err }(), ErrNotFound},
		{"source", source("memory:none/x|zarr3:"), ErrNotFound},
		{"tag", db.DeleteTag(bg, "none"), ErrNotFound},

		{"node", func() error { _, err := mine.CreateArray(bg, "x", spec); return err }(), ErrExists},
		{"tag", db.store.CreateTag(bg, "v1", first), ErrExists},
		{"branch", db.store.CreateBranch(bg, "main", first), ErrExists},
		{"database", func() error { _, err := Create(bg, dir, nil); return err }(), ErrExists},
		{"export", exported(dir + "/taken"), ErrExists},

		{"commit", conflict, ErrConflict},
		{"condition", changed, ErrConflict},
		{"locked", &index.LockedError{Dir: dir}, ErrLocked},
		{"read-only", func() error { _, err := reader.Begin(bg, ""); return err }(), ErrReadOnly},
		{"closed", func() error { _, err := other.At(bg, ""); return err }(), ErrClosed},
		{"session", func() error { _, err := theirs.Commit(bg, txn.CommitOptions{}); return err }(), ErrClosed},

		{"payload", &pack.CorruptError{}, ErrCorrupt},
		{"tree", tree.ErrMissing, ErrCorrupt},
		{"codec", &zarr.Error{Op: "read", Err: codecs.ErrCorrupt}, ErrCorrupt},
		{"value", &zarr.Error{Op: "read", Err: kv.ErrCorrupt}, ErrCorrupt},
		{"index", &txn.IndexLostError{Dir: dir}, ErrCorrupt},
	} {
		for _, kind := range kinds {
			if got := errors.Is(c.err, kind); got != (kind == c.kind) {
				t.Errorf("%s: errors.Is(%v, %v) = %v", c.what, c.err, kind, got)
			}
		}
	}
}
