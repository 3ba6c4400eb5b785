package txn

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv/index"
)

// A disk that is full of old versions can be cleared: letting go is admitted
// where writing is not.
func TestFullDiskIsCleared(t *testing.T) {
	var free atomic.Uint64
	free.Store(1 << 40)
	db := openTest(t, &Options{FS: freeFS{vfs.NewMem(), &free}})
	old := update(t, db, "main", map[string]string{"a": "1"})
	update(t, db, "main", map[string]string{"a": "2"})
	if err := errors.Join(db.CreateBranch(bg, "side", old.ID), db.CreateTag(bg, "v1", old.ID)); err != nil {
		t.Fatal(err)
	}
	free.Store(8 << 20)
	if err := db.CreateBranch(bg, "more", old.ID); !errors.Is(err, index.ErrFull) {
		t.Errorf("new branch: %v", err)
	}
	if err := errors.Join(db.DeleteBranch("side"), db.DeleteTag("v1")); err != nil {
		t.Errorf("delete: %v", err)
	}
	if _, err := db.Reset(bg, "main", old.ID); err != nil {
		t.Errorf("reset: %v", err)
	}
	if r, err := db.Expire(bg, ExpireOptions{Keep: 1}); err != nil || r.Expired == 0 {
		t.Errorf("expire: %+v %v", r, err)
	}
	if _, err := db.GC(bg, GCOptions{}); err != nil {
		t.Errorf("gc: %v", err)
	}
	if got := at(t, db, "main"); got["a"] != "1" {
		t.Errorf("%v", got)
	}
}
