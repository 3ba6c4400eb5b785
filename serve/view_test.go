package serve

import (
	"context"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

// Versions that are kept open for the next request hold nothing when gc asks; those that
// a client has open do.
func TestCachedViewsAreLetGo(t *testing.T) {
	ctx := context.Background()
	db := must.Get(engine.Open(ctx, "db", &engine.Options{FS: vfs.NewMem(), Create: true}))(t)
	defer db.Close()
	table := New(Options{})
	must.Do(t, table.AddDatabase("w", db))
	var open *View
	for i := range 4 {
		must.Get(db.Update(ctx, "main", "", func(s *engine.Session) error {
			return s.Set(ctx, "a/zarr.json", fmt.Appendf(nil, `{"zarr_format":3,"node_type":"group","attributes":{"i":%d}}`, i))
		}))(t)
		v := must.Get(table.View(ctx, &Principal{}, "w", "main"))(t)
		if i == 0 {
			open = v
		} else {
			v.Release()
		}
	}
	held := func() (n int64) {
		t.Helper()
		must.Get(db.Expire(ctx, txn.ExpireOptions{Keep: 1}))(t)
		r := must.Get(db.GC(ctx, txn.GCOptions{Explain: true}))(t)
		for _, h := range r.Holders {
			if h.Kind == txn.HolderSnapshot {
				n += h.Versions
			}
		}
		return n
	}
	if n := held(); n != 1 {
		t.Errorf("open snapshots hold %d versions, a client has 1", n)
	}
	if _, err := open.ReadLister.Get(ctx, "a/zarr.json", kv.All()); err != nil {
		t.Error(err)
	}
	open.Release()
	if n := held(); n != 0 {
		t.Errorf("open snapshots hold %d versions, no client has any", n)
	}
	if v, err := table.View(ctx, &Principal{}, "w", "main"); err != nil {
		t.Error(err)
	} else {
		v.Release()
	}
	if err := table.Close(ctx); err != nil {
		t.Error(err)
	}
}
