package txn

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
)

// When the file of a pack goes, its entry in the table is gone, on disk: an entry
// without a file would be damage.
func TestGCRemovesEntriesBeforeFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	mem := vfs.NewCrashableMem()
	type removal struct {
		image *vfs.MemFS
		path  string
	}
	var removals []removal
	o := testOptions(crashtest.NewDisk(mem, func(d *crashtest.Disk, op errorfs.Op) error {
		if op.Kind == errorfs.OpRemove && strings.HasPrefix(op.Path, "db/packs/") && strings.HasSuffix(op.Path, ".pack") {
			removals = append(removals, removal{d.Cut(0, 0, nil), op.Path})
		}
		return nil
	}))
	o.PackBytes = 200_000
	db := must.Get(Create("db", o))(t)
	grow(t, db, 3, 0)
	for range 8 {
		update(t, db, "main", map[string]string{"large": big("a", 150_000)})
		update(t, db, "main", map[string]string{"large": big("b", 150_000)})
	}
	mustExpire(t, db, ExpireOptions{Keep: 1})
	mustGC(t, db)
	closeChecked(t, db)
	if len(removals) < 5 {
		t.Fatalf("%d packs were removed", len(removals))
	}
	for _, r := range removals {
		var id pack.ID
		for _, info := range infosOf(t, r.image) {
			if mem.PathBase(r.path) == pack.FileName(info.ID) {
				id = info.ID
			}
		}
		if id == (pack.ID{}) {
			t.Errorf("%s is not there before it is removed", r.path)
			continue
		}
		idx := must.Get(index.Open("db/index", &index.Options{FS: r.image}))(t)
		if _, err := idx.Get(index.SpacePack, id[:]); !errors.Is(err, index.ErrNotFound) {
			t.Errorf("%s is removed while the table names it: %v", r.path, err)
		}
		must.Do(t, idx.Close())
		closeChecked(t, openPlain(t, r.image, "db"))
	}
}

// infosOf lists the packs of a database that is not open.
func infosOf(t *testing.T, fs vfs.FS) []pack.Info {
	t.Helper()
	db := must.Get(Open("db", testOptions(fs)))(t)
	infos := db.packs.Infos()
	closeChecked(t, db)
	return infos
}
