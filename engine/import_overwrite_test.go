package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/engine/internal/transfer"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// packBytes is how many bytes the packs of a database take.
func packBytes(t *testing.T, db *DB) (n int64) {
	t.Helper()
	matches := must.Get(filepath.Glob(filepath.Join(db.Dir(), "packs", "*")))(t)
	for _, name := range matches {
		n += int64(len(read(t, name)))
	}
	return n
}

// TestImportOverwriteStoresWhatDiffers: importing a store again is no change and stores nothing.
// Of a changed store, changed values are stored and missing keys are deleted.
func TestImportOverwriteStoresWhatDiffers(t *testing.T) {
	const chunk = 100_000
	payload := func(seed uint64) string {
		b := make([]byte, chunk)
		r := rand.New(rand.NewPCG(seed, 1))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return string(b)
	}
	array := `{"zarr_format":3,"node_type":"array","shape":[40],"data_type":"uint8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[1]}},
"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes"}],"attributes":{}}`
	group := `{"zarr_format":3,"node_type":"group","attributes":{}}`
	keys := map[string]string{"zarr.json": group, "a/zarr.json": array, "gone/zarr.json": group, "gone/b/zarr.json": array, "gone/b/c/0": "x"}
	for i := range 40 {
		keys[fmt.Sprintf("a/c/%d", i)] = payload(uint64(i))
	}
	all := keys
	for _, to := range []string{"", "in/here"} {
		keys := maps.Clone(all)
		db := openAt(t, filepath.Join(t.TempDir(), "t.zdb"), &Options{Create: true})
		imported := func() *txn.Commit {
			t.Helper()
			res := must.Get(db.Import(bg, openURL(t, memoryURL(t, keys)), ImportOptions{To: to, Overwrite: true}))(t)
			sameContents(t, contents(t, kv.SubLister(at(t, db, ""), to)), keys)
			return res.Commit
		}
		first := imported()
		before := packBytes(t, db)
		if again := imported(); again.ID != first.ID {
			t.Error("an unchanged store made a commit")
		}
		if now := packBytes(t, db); now != before {
			t.Errorf("an unchanged store took %d bytes", now-before)
		}
		keys["a/c/7"] = payload(1000)
		for key := range keys {
			if len(key) > 5 && key[:5] == "gone/" || key == "a/c/11" || key == "a/c/9" {
				delete(keys, key)
			}
		}
		keys["new/zarr.json"] = group
		if imported().ID == first.ID {
			t.Error("a changed store made no commit")
		}
		if now := packBytes(t, db); now-before > 2*chunk {
			t.Errorf("one changed chunk of %d bytes took %d", chunk, now-before)
		}
		closeChecked(t, db)
	}
}

// TestImportOverwriteGivesTheSource: whatever was at the destination, it is the
// source afterwards, in whatever format either is.
func TestImportOverwriteGivesTheSource(t *testing.T) {
	must.Set(t, &transfer.BatchKeys, 2)
	v2 := map[string]string{".zgroup": `{"zarr_format":2}`, "a/.zarray": arrayV2(), "a/0.0": "chunk", "a/1.1": "x", "c/0/.zgroup": `{"zarr_format":2}`}
	stores := []map[string]string{
		smallStore(t), v2,
		{".zarray": arrayV2(), "0.0": "chunk", "a/c/0/0": "a loose key", "a": "another", "a.b": "1", "a/": ""},
		{"zarr.json": `{"zarr_format":3,"node_type":"group","attributes":{"n":1}}`, "a/zarr.json": `{"zarr_format":3,"node_type":"group","attributes":{}}`},
	}
	delete(stores[2], "a/")
	delete(stores[2], "a") // a directory store cannot have it beside a/c/0/0
	for i, old := range stores {
		for j, keys := range stores {
			for _, to := range []string{"", "at"} {
				db := openDB(t, nil)
				for _, k := range []map[string]string{old, keys} {
					_, err := db.Import(bg, openURL(t, memoryURL(t, k)), ImportOptions{To: to, Overwrite: true})
					must.Do(t, err)
				}
				sameContents(t, contents(t, kv.SubLister(at(t, db, ""), to)), keys)
				if t.Failed() {
					t.Fatalf("store %d after %d at %q", j, i, to)
				}
			}
		}
	}
}

// TestImportLeavesDatabasesOut imports a folder that holds the database which it
// is imported into, and others.
func TestImportLeavesDatabasesOut(t *testing.T) {
	folder := t.TempDir()
	keys := smallStore(t)
	writeStore(t, folder, keys)
	db := openAt(t, filepath.Join(folder, "w.zdb"), &Options{Create: true})
	closeChecked(t, openAt(t, filepath.Join(folder, "a", "other.zdb"), &Options{Create: true}))
	// A file of that name alone is no database.
	more := maps.Clone(keys)
	more["a/notes/FORMAT"] = "A4"
	writeStore(t, folder, map[string]string{"a/notes/FORMAT": "A4"})
	want := []string{"a/other.zdb", "w.zdb"}
	res, err := db.Import(bg, openURL(t, folder), ImportOptions{})
	must.Do(t, err)
	if !slices.Equal(res.LeftOut, want) {
		t.Errorf("left out %q, want %q", res.LeftOut, want)
	}
	sameContents(t, contents(t, at(t, db, "")), more)
	if res, err = db.Import(bg, openURL(t, folder), ImportOptions{Overwrite: true}); err != nil || len(res.LeftOut) != 2 {
		t.Errorf("again: %+v, %v", res, err)
	}
	dest := filepath.Join(t.TempDir(), "copy")
	out, err := Export(bg, openURL(t, folder), dest, ExportOptions{})
	must.Do(t, err)
	if !slices.Equal(out.LeftOut, want) {
		t.Errorf("the export left out %q, want %q", out.LeftOut, want)
	}
	sameContents(t, exported(t, dest), more)
	if _, err := zarr.Open(bg, at(t, db, ""), "", nil); err != nil {
		t.Error(err)
	}
}
