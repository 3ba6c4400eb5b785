package engine

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// A read of a closed snapshot says that the snapshot is closed, also when its values were
// collected since.
func TestClosedSnapshot(t *testing.T) {
	ctx := context.Background()
	db, err := Open(ctx, filepath.Join(t.TempDir(), "w.zdb"), &Options{Create: true, CacheBytes: -1})
	must.Do(t, err)
	defer db.Close()
	put := func(seed byte) {
		t.Helper()
		must.Get(db.Update(ctx, "main", "w", func(s *Session) error {
			a, err := s.Array(ctx, "a")
			if errors.Is(err, ErrNotFound) {
				a, err = s.CreateArray(ctx, "a", zarr.Spec{Shape: []int64{1 << 16}, Chunks: []int64{1 << 14}, DataType: "uint8"})
			}
			if err != nil {
				return err
			}
			d := make([]uint8, 1<<16)
			for i := range d {
				d[i] = byte(i*i>>4) ^ seed
			}
			return zarr.Write(ctx, a, zarr.Sel(), d)
		}))(t)
	}
	put(1)
	snapshot := must.Get(db.At(ctx, "main"))(t)
	a := must.Get(snapshot.Array(ctx, "a"))(t)
	located := must.Get(snapshot.Locate(ctx, "a/c/0"))(t)
	must.Do(t, snapshot.Close())
	check := func(when string) {
		t.Helper()
		_, _, errRead := zarr.Read[uint8](ctx, a, zarr.Sel())
		_, errGet := snapshot.Get(ctx, "a/zarr.json", kv.Range{})
		_, errNode := snapshot.Array(ctx, "a")
		var errList, errDir, errValues error
		for _, errList = range snapshot.List(ctx, kv.ListOptions{}) {
		}
		for _, errDir = range snapshot.ListDir(ctx, "") {
		}
		for _, errValues = range snapshot.Values(ctx, "") {
		}
		for what, err := range map[string]error{"read": errRead, "get": errGet, "open": errNode, "list": errList, "list dir": errDir, "values": errValues} {
			if !errors.Is(err, ErrClosed) || errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), snapshot.Commit().ID.Short()) {
				t.Errorf("%s: %s: %v", when, what, err)
			}
		}
	}
	check("closed")
	put(2)
	must.Get(db.Expire(ctx, txn.ExpireOptions{Keep: 1}))(t)
	must.Get(db.GC(ctx, txn.GCOptions{}))(t)
	check("collected")
	err = located.View(ctx, kv.Range{}, func([]byte) error { return nil })
	if err != nil && (!errors.Is(err, ErrClosed) || errors.Is(err, ErrCorrupt)) {
		t.Errorf("a value that was located before: %v", err)
	}

	session := must.Get(db.Begin(ctx, "main"))(t)
	must.Do(t, errors.Join(session.Abort(), db.Close()))
	if err := session.Set(ctx, "k", nil); !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), session.ID().String()) {
		t.Errorf("a closed session: %v", err)
	}
	if _, err := db.At(ctx, "main"); !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), db.Dir()) {
		t.Errorf("a closed database: %v", err)
	}
}

// Options that have no sense are errors of Open, and nothing is made.
func TestOptionsWithoutSense(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w.zdb")
	for name, o := range map[string]*Options{
		"CacheBytes":     {CacheBytes: math.MaxInt64},
		"PageCacheBytes": {PageCacheBytes: math.MaxInt64},
		"SessionBytes":   {SessionBytes: math.MaxInt64},
		"Workers":        {Workers: 1 << 30},
		"Durability":     {Durability: 77},
	} {
		o.Create = true
		db, err := Open(t.Context(), dir, o)
		if err == nil {
			t.Error(name, db.Close())
		} else if !strings.Contains(err.Error(), "Options."+name) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("%s: a directory was made: %v", name, err)
		}
	}
	if _, err := OpenSource(t.Context(), dir, &SourceOptions{Workers: 1 << 30}); err == nil || !strings.Contains(err.Error(), "Options.Workers") {
		t.Errorf("a source: %v", err)
	}
	db := must.Get(Open(t.Context(), dir, &Options{Create: true, CacheBytes: 1 << 44, PageCacheBytes: 1 << 44, SessionBytes: 1 << 44, Workers: 1 << 20}))(t)
	must.Do(t, db.Close())
}
