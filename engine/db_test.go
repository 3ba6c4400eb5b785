package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

func TestUpdateAndView(t *testing.T) {
	db := openDB(t, nil)
	first := head(t, db, "")
	second := commit(t, db, "", "make x", func(s *Session) error { return create(s, "x", line(6, 2)) })
	if first == second {
		t.Fatal("the head did not move")
	}
	commit(t, db, "main", "change x", func(s *Session) error { return put(s, "x", 2, 20, 30) })

	must.Do(t, db.View(bg, "main", func(s *Snapshot) error {
		wantInts(t, s, "x", 0, 1, 20, 30, 4, 5)
		return nil
	}))
	for _, rev := range []string{"main~1", second.String(), second.Short(), "main@{1}"} {
		wantInts(t, at(t, db, rev), "x", 0, 1, 2, 3, 4, 5)
	}
	if _, err := at(t, db, "main~2").Array(bg, "x"); !errors.Is(err, zarr.ErrNotFound) {
		t.Errorf("x in the first version: %v", err)
	}
	c, err := db.store.Lookup(bg, second)
	if err != nil || c.Message != "make x" || c.Author != "tester" {
		t.Errorf("commit %+v, %v", c, err)
	}
}

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

// A session sees its own writes, and those of others only after both have committed.
func TestIsolation(t *testing.T) {
	db := openDB(t, nil)
	commit(t, db, "", "x", func(s *Session) error { return create(s, "x", line(6, 2)) })
	before := at(t, db, "")
	open := func() *Session {
		s := must.Get(db.Begin(bg, ""))(t)
		return s
	}
	a, b := open(), open()
	must.Do(t, put(a, "x", 0, 10, 11))
	must.Do(t, put(b, "x", 4, 14, 15))
	wantInts(t, a, "x", 10, 11, 2, 3, 4, 5)
	wantInts(t, b, "x", 0, 1, 2, 3, 14, 15)
	wantInts(t, at(t, db, ""), "x", 0, 1, 2, 3, 4, 5)
	must.Get(a.Commit(bg, txn.CommitOptions{}))(t)
	wantInts(t, b, "x", 0, 1, 2, 3, 14, 15)
	must.Get(b.Commit(bg, txn.CommitOptions{}))(t)
	wantInts(t, at(t, db, ""), "x", 10, 11, 2, 3, 14, 15)
	wantInts(t, before, "x", 0, 1, 2, 3, 4, 5)
	if err := put(b, "x", 0, 1); !errors.Is(err, txn.ErrSessionClosed) {
		t.Errorf("write after the commit: %v", err)
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

// The same random history gives the same values whatever the cache and however
// many workers there are.
func TestCacheAndWorkersChangeNothing(t *testing.T) {
	seed := must.Seed(t)
	specs := map[string]zarr.Spec{
		"plain":   {Shape: []int64{37, 23}, Chunks: []int64{8, 5}, DataType: "int32"},
		"sharded": {Shape: []int64{37, 23}, Chunks: []int64{4, 5}, Shards: []int64{16, 10}, DataType: "int32"},
		"v2":      {Version: zarr.V2, Shape: []int64{37, 23}, Chunks: []int64{37, 4}, DataType: "<i4"},
	}
	var want []string
	for _, o := range []struct {
		cache   int64
		workers int
	}{{-1, 1}, {-1, 4}, {8 << 20, 1}, {8 << 20, 4}, {16 << 10, 3}} {
		opts := memOptions()
		opts.CacheBytes, opts.Workers = o.cache, o.workers
		var got []string
		for _, name := range []string{"plain", "sharded", "v2"} {
			opts.FS, opts.Now = vfs.NewMem(), ticking()
			got = append(got, playHistory(t, openDB(t, opts), rand.New(rand.NewPCG(seed, 1)), specs[name])...)
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("cache %d, workers %d: other values", o.cache, o.workers)
		}
	}
}

// playHistory writes random boxes and returns all that was read meanwhile.
func playHistory(t *testing.T, db *DB, r *rand.Rand, spec zarr.Spec) (seen []string) {
	t.Helper()
	commit(t, db, "", "create", func(s *Session) error {
		_, err := s.CreateArray(bg, "g/x", spec)
		return err
	})
	box := func() zarr.Selection {
		var idx []zarr.Index
		for _, n := range spec.Shape {
			lo := r.Int64N(n)
			idx = append(idx, zarr.Slice(lo, lo+1+r.Int64N(n-lo), 1+r.Int64N(3)))
		}
		return zarr.Sel(idx...)
	}
	for i := range 12 {
		sel, value := box(), int32(1+i) // a new value each time, so that each write makes a commit
		commit(t, db, "", "write", func(s *Session) error {
			a, err := s.Array(bg, "g/x")
			if err != nil {
				return err
			}
			return zarr.Fill(bg, a, sel, value)
		})
		a := array(t, at(t, db, fmt.Sprintf("main~%d", r.IntN(2))), "g/x")
		for range 3 {
			v, _, err := zarr.Read[int32](bg, a, box())
			must.Do(t, err)
			seen = append(seen, fmt.Sprint(v))
		}
	}
	return seen
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
