package engine

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

func TestUpdateThatFailsChangesNothing(t *testing.T) {
	db := openDB(t, nil)
	before := head(t, db, "")
	boom := errors.New("boom")
	_, err := db.Update(bg, "", "never", func(s *Session) error {
		if err := create(s, "x", line(6, 2)); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Errorf("error %v", err)
	}
	if head(t, db, "") != before {
		t.Error("the head moved")
	}
	if list, err := db.Sessions(bg); err != nil || len(list) != 0 {
		t.Errorf("sessions %v, %v", list, err)
	}
	if err := db.View(bg, "", func(*Snapshot) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("view: %v", err)
	}
}

func TestErrorsOfOpening(t *testing.T) {
	db := openDB(t, nil)
	for _, rev := range []string{"nope", "main~9", "main@{9}", "0123456789", "main@{", "~x"} {
		if _, err := db.At(bg, rev); !errors.Is(err, txn.ErrNoRef) {
			t.Errorf("%s: %v", rev, err)
		}
	}
	if _, err := db.Begin(bg, "nope"); !errors.Is(err, txn.ErrNoRef) {
		t.Errorf("begin: %v", err)
	}
	if _, err := db.Update(bg, "nope", "", nil); !errors.Is(err, txn.ErrNoRef) {
		t.Errorf("update: %v", err)
	}
	dir := t.TempDir()
	if _, err := Open(bg, dir, nil); !errors.Is(err, txn.ErrNotDatabase) {
		t.Errorf("open an empty directory: %v", err)
	}
	if IsDatabase(dir) {
		t.Error("an empty directory is a database")
	}
	if _, err := Open(bg, dir+"/none", &Options{ReadOnly: true, Create: true}); !errors.Is(err, txn.ErrNotDatabase) {
		t.Errorf("create for reading: %v", err)
	}
	disk := openAt(t, dir+"/t.zdb", &Options{Create: true})
	if !IsDatabase(dir + "/t.zdb") {
		t.Error("a database is none")
	}
	var locked *index.LockedError
	if _, err := Open(bg, dir+"/t.zdb", nil); !errors.As(err, &locked) {
		t.Errorf("open twice: %v", err)
	}
	if _, err := Create(bg, dir+"/t.zdb", nil); !errors.Is(err, txn.ErrExists) {
		t.Errorf("create twice: %v", err)
	}
	must.Do(t, disk.Close())
	if _, err := disk.At(bg, ""); !errors.Is(err, txn.ErrClosed) {
		t.Errorf("after close: %v", err)
	}
}

func TestReadOnly(t *testing.T) {
	o := memOptions()
	db := openDB(t, o)
	commit(t, db, "", "x", func(s *Session) error { return create(s, "x", line(4, 2)) })
	closeChecked(t, db)
	ro := *o
	ro.ReadOnly = true
	db = openDB(t, &ro)
	a := array(t, at(t, db, ""), "x")
	wantInts(t, at(t, db, ""), "x", 0, 1, 2, 3)
	if err := zarr.Fill(bg, a, zarr.Sel(), int32(1)); !errors.Is(err, kv.ErrReadOnly) {
		t.Errorf("write through a snapshot: %v", err)
	}
	if _, err := db.Begin(bg, ""); !errors.Is(err, kv.ErrReadOnly) {
		t.Errorf("begin: %v", err)
	}
}

func TestResume(t *testing.T) {
	o := memOptions()
	db := openDB(t, o)
	s, err := db.Begin(bg, "")
	must.Do(t, err)
	must.Do(t, create(s, "g/x", line(6, 2)))
	id := s.ID()
	must.Do(t, s.Detach(bg))
	closeChecked(t, db)

	db = openDB(t, o)
	if _, err := at(t, db, "").Array(bg, "g/x"); !errors.Is(err, zarr.ErrNotFound) {
		t.Errorf("seen before the commit: %v", err)
	}
	s = must.Get(db.Resume(bg, id))(t)
	if _, err := db.resumeAlone(bg, id); !errors.Is(err, txn.ErrSessionBusy) {
		t.Errorf("resumed twice: %v", err)
	}
	wantInts(t, s, "g/x", 0, 1, 2, 3, 4, 5)
	must.Do(t, put(s, "g/x", 1, 7))
	if err := s.Close(); err != nil { // the write is lost, the session is not
		t.Fatal(err)
	}
	s = must.Get(db.Resume(bg, id))(t)
	wantInts(t, s, "g/x", 0, 1, 2, 3, 4, 5)
	must.Get(s.Commit(bg, txn.CommitOptions{Message: "at last"}))(t)
	wantInts(t, at(t, db, ""), "g/x", 0, 1, 2, 3, 4, 5)
	if _, err := db.Resume(bg, id); !errors.Is(err, txn.ErrNoRef) {
		t.Errorf("resumed after the commit: %v", err)
	}
}

// Two handles of one array in one session may change parts of one chunk at the
// same time.
func TestHandlesShareLocks(t *testing.T) {
	db := openDB(t, nil)
	const n = 64
	commit(t, db, "", "x", func(s *Session) error {
		if err := create(s, "x", line(n, n)); err != nil {
			return err
		}
		var wg sync.WaitGroup
		errs := make([]error, n)
		for i := range n {
			wg.Go(func() { errs[i] = put(s, "x", int64(i), int32(1000+i)) })
		}
		wg.Wait()
		return errors.Join(errs...)
	})
	for i, v := range ints(t, at(t, db, ""), "x") {
		if v != int32(1000+i) {
			t.Errorf("element %d is %d: a write was lost", i, v)
		}
	}
}

func TestContextsAreHonoured(t *testing.T) {
	db := openDB(t, nil)
	commit(t, db, "", "x", func(s *Session) error { return create(s, "x", line(6, 2)) })
	a := array(t, at(t, db, ""), "x")
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, _, err := zarr.Read[int32](ctx, a, zarr.Sel()); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
	_, err := db.Update(ctx, "", "no", func(s *Session) error { return put(s, "x", 0, 1) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("update: %v", err)
	}
	src := openURL(t, memoryURL(t, contents(t, at(t, db, ""))))
	if _, err := db.Import(ctx, src, ImportOptions{To: "y"}); !errors.Is(err, context.Canceled) {
		t.Errorf("import: %v", err)
	}
	if _, err := Export(ctx, src, t.TempDir()+"/out", ExportOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("export: %v", err)
	}
}

func TestNodesOfASession(t *testing.T) {
	db := openDB(t, nil)
	commit(t, db, "", "x", func(s *Session) error {
		if _, err := s.CreateGroup(bg, "g", 0, attributes(t, "a", 1)); err != nil {
			return err
		}
		return create(s, "g/x", line(4, 2))
	})
	old := at(t, db, "")
	steps := []struct {
		name string
		do   func(*Session) error
		want error
	}{
		{"create on a node", func(s *Session) error { _, err := s.CreateArray(bg, "g/x", line(1, 1)); return err }, zarr.ErrExists},
		{"group on a node", func(s *Session) error { _, err := s.CreateGroup(bg, "g", 0, zarr.Attributes{}); return err }, zarr.ErrExists},
		{"create below an array", func(s *Session) error { _, err := s.CreateArray(bg, "g/x/y", line(1, 1)); return err }, zarr.ErrKind},
		{"create of another format", func(s *Session) error {
			spec := line(1, 1)
			spec.Version = zarr.V2
			_, err := s.CreateArray(bg, "g/y", spec)
			return err
		}, zarr.ErrKind},
		{"rename nothing", func(s *Session) error { return s.Rename(bg, "nope", "y") }, zarr.ErrNotFound},
		{"rename to the root", func(s *Session) error { return s.Rename(bg, "g", "") }, zarr.ErrPath},
		{"rename the root", func(s *Session) error { return s.Rename(bg, "", "y") }, zarr.ErrPath},
		{"rename into itself", func(s *Session) error { return s.Rename(bg, "g", "g/h") }, zarr.ErrPath},
		{"rename to itself", func(s *Session) error { return s.Rename(bg, "g", "g") }, nil},
		{"rename below an array", func(s *Session) error { return s.Rename(bg, "g", "g2") }, nil},
		{"rename to a taken path", func(s *Session) error { return s.CopyNode(bg, old, "g", "g2") }, zarr.ErrExists},
		{"rename to a reserved name", func(s *Session) error { return s.Rename(bg, "g2", "__x") }, zarr.ErrPath},
		{"rename to an odd path", func(s *Session) error { return s.Rename(bg, "g2", "a//b") }, zarr.ErrPath},
		{"move into an array", func(s *Session) error { return s.CopyNode(bg, old, "g", "g2/x/y") }, zarr.ErrKind},
		{"copy from the old version", func(s *Session) error { return s.CopyNode(bg, old, "g/x", "a/b/x") }, nil},
		{"copy inside", func(s *Session) error { return s.CopyNode(bg, nil, "a/b/x", "z") }, nil},
		{"remove nothing", func(s *Session) error { return s.Remove(bg, "nope") }, fs.ErrNotExist},
		{"remove", func(s *Session) error { return s.Remove(bg, "g2") }, nil},
		{"replace a group by an array", func(s *Session) error { _, err := s.ReplaceArray(bg, "a/b", line(1, 1)); return err }, nil},
		{"replace an array by a group", func(s *Session) error {
			_, err := s.ReplaceGroup(bg, "a/b", 0, zarr.Attributes{})
			return err
		}, nil},
	}
	for _, step := range steps {
		_, err := db.Update(bg, "", step.name, step.do)
		if !errors.Is(err, step.want) || err != nil && step.want == nil {
			t.Errorf("%s: error %v, want %v", step.name, err, step.want)
		}
	}
	now := at(t, db, "")
	var paths []string
	for n, err := range now.Walk(bg, "") {
		must.Do(t, err)
		paths = append(paths, n.Path())
	}
	if want := []string{"", "a", "a/b", "z"}; !slices.Equal(paths, want) {
		t.Errorf("nodes %v, want %v", paths, want)
	}
	wantInts(t, now, "z", 0, 1, 2, 3)
}

func TestRenameKeepsChunksInPlace(t *testing.T) {
	db := openDB(t, nil)
	commit(t, db, "", "x", func(s *Session) error {
		return create(s, "x", zarr.Spec{Shape: []int64{100000}, Chunks: []int64{10000}, DataType: "int32", Codecs: []byte(`[{"name":"bytes","configuration":{"endian":"little"}}]`)})
	})
	before := db.DiskUse().PackBytes
	commit(t, db, "", "mv", func(s *Session) error { return s.Rename(bg, "x", "deep/down/x") })
	commit(t, db, "", "cp", func(s *Session) error { return s.CopyNode(bg, nil, "deep/down/x", "y") })
	if after := db.DiskUse().PackBytes; after != before {
		t.Errorf("packs grew from %d to %d bytes", before, after)
	}
	if a := ints(t, at(t, db, ""), "deep/down/x"); len(a) != 100000 || a[99999] != 99999 {
		t.Error("other values after the rename")
	}
	if _, err := at(t, db, "").Group(bg, "deep"); err != nil {
		t.Errorf("the group above was not made: %v", err)
	}
}
