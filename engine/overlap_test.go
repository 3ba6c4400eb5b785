package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
	"github.com/zarrdb/zarrdb/txn"
)

// writeStore writes keys as files of a directory.
func writeStore(t *testing.T, folder string, keys map[string]string) {
	t.Helper()
	d := must.Get(dirkv.Create(folder, &dirkv.Options{NoSync: true}))(t)
	defer d.Close()
	for key, value := range keys {
		must.Do(t, d.Set(bg, key, []byte(value)))
	}
}

// TestExportOntoWhatIsRead: no destination that is, holds or lies in the source
// is touched, however it is named.
func TestExportOntoWhatIsRead(t *testing.T) {
	keys := smallStore(t)
	folder := t.TempDir()
	in := func(names ...string) string { return filepath.Join(append([]string{folder}, names...)...) }
	// The folder around the store is a store too, so that it may be replaced.
	writeStore(t, folder, map[string]string{"zarr.json": "{}"})
	writeStore(t, in("x.zarr"), keys)
	must.Do(t, os.WriteFile(in("x.zip"), []byte(zipped(t, keys)), 0o666))
	must.Do(t, os.Link(in("x.zip"), in("hard.zip")))
	must.Do(t, os.Symlink("x.zarr", in("soft")))
	must.Do(t, os.Symlink("x.zip", in("soft.zip")))
	must.Do(t, os.Mkdir(in("links"), 0o777))
	writeStore(t, in("links"), map[string]string{"zarr.json": "{}"})
	must.Do(t, os.Symlink(in("x.zarr"), in("links", "way")))
	memory, url := newMemory(t)
	for key, value := range keys {
		must.Do(t, memory.Set(bg, "top/x/"+key, []byte(value)))
	}
	must.Do(t, memory.Set(bg, "top/zarr.json", []byte("{}")))
	bucket(t)
	s3 := storeAt(t, "s3://bkt/")
	for key, value := range keys {
		must.Do(t, s3.Set(bg, "top/x/"+key, []byte(value)))
	}
	must.Do(t, s3.Set(bg, "top/zarr.json", []byte("{}")))

	for _, c := range []struct{ source, dest string }{
		{in("x.zarr"), in("x.zarr")},
		{in("x.zarr") + "/", "file://" + in("x.zarr")},
		{in("x.zarr"), in("links", "..", "x.zarr")},
		{in("x.zarr"), in("soft")},
		{in("soft"), in("x.zarr")},
		{in("x.zarr"), in("x.zarr", "sub")},
		{in("x.zarr"), in("soft", "new", "sub.zip")},
		{in("x.zarr"), folder},
		{in("x.zarr", "a"), in("x.zarr")},
		{in("links", "way"), in("links")}, // the way to the source would be gone
		{in("x.zip"), in("x.zip")},
		{in("x.zip"), in("hard.zip")},
		{in("x.zip"), in("soft.zip")},
		{in("soft.zip"), in("x.zip")},
		{in("x.zip") + "|zip:a/", in("x.zip")},
		{in("x.zip"), folder},
		{url + "/top/x/", url + "/top/x/"},
		{url + "/top/x/", url + "/top/x/sub/"},
		{url + "/top/x/", url + "/top/"},
		{url + "/top/x/", url + "/"},
		{"s3://bkt/top/x/", "s3://bkt/top/x"},
		{"s3://bkt/top/x/", "s3://bkt/top/x/sub"},
		{"s3://bkt/top/x/", "s3://bkt/top/"},
	} {
		for _, o := range []ExportOptions{{Overwrite: true}, {Resume: true}, {}} {
			if _, err := Export(bg, openURL(t, c.source), c.dest, o); !errors.Is(err, ErrOverlap) {
				t.Errorf("%s to %s, %+v: %v", c.source, c.dest, o, err)
			}
		}
	}
	sameContents(t, exported(t, in("x.zarr")), keys)
	sameContents(t, exported(t, in("hard.zip")), keys)
	sameContents(t, exported(t, in("x.zip")), keys)
	sameContents(t, contents(t, kv.SubLister(memory, "top/x")), keys)
	sameContents(t, contents(t, kv.SubLister(s3, "top/x")), keys)

	// What only begins with the same letters is elsewhere.
	for _, c := range []struct{ source, dest string }{
		{in("x.zarr"), in("x.zarr2")}, {url + "/top/x/", url + "/top/x2/"}, {"s3://bkt/top/x/", "s3://bkt/top/x2"},
	} {
		if _, err := Export(bg, openURL(t, c.source), c.dest, ExportOptions{}); err != nil {
			t.Errorf("%s to %s: %v", c.source, c.dest, err)
		}
	}
}

// TestWriteOntoDatabase: nothing is written over, around or into a database,
// neither the one that is read nor another.
func TestWriteOntoDatabase(t *testing.T) {
	folder := t.TempDir()
	store := filepath.Join(folder, "store")
	writeStore(t, store, smallStore(t))
	path := filepath.Join(store, "w.zdb")
	db := openAt(t, path, &Options{Create: true})
	commit(t, db, "", "x", func(s *Session) error { return create(s, "x", line(6, 2)) })
	other := filepath.Join(folder, "other.zarr")
	writeStore(t, other, smallStore(t))
	link := filepath.Join(folder, "link")
	must.Do(t, os.Symlink(path, link))

	inside := filepath.Join(path, "packs", "new")
	for _, dest := range []string{path, inside, filepath.Join(link, "new"), store} {
		for name, write := range map[string]func() error{
			"backup":  func() error { _, err := db.Backup(bg, dest, txn.TransferOptions{}); return err },
			"clone":   func() error { _, err := db.Clone(bg, dest, txn.TransferOptions{}); return err },
			"restore": func() error { _, err := Restore(bg, path, dest, nil, txn.TransferOptions{}); return err },
			"salvage": func() error { _, err := Salvage(bg, path, dest, nil, nil); return err },
		} {
			if err := write(); !errors.Is(err, ErrOverlap) {
				t.Errorf("%s to %s: %v", name, dest, err)
			}
		}
	}
	closeChecked(t, db)

	for _, source := range []string{"", other} {
		src := openURL(t, other)
		if source == "" {
			src = must.Get(OpenDatabaseSource(bg, link, "", "", "", nil))(t)
			for _, parquet := range []bool{false, true} {
				_, err := ExportReferences(bg, src, inside, ExportReferencesOptions{Parquet: parquet})
				if !errors.Is(err, ErrOverlap) {
					t.Errorf("references, parquet %v: %v", parquet, err)
				}
			}
		}
		for _, dest := range []string{inside, inside + ".zip", store} {
			if _, err := Export(bg, src, dest, ExportOptions{Overwrite: true}); !errors.Is(err, ErrOverlap) {
				t.Errorf("export of %q to %s: %v", source, dest, err)
			}
		}
		if source == "" {
			must.Do(t, src.Close())
		}
	}
	db = openAt(t, path, nil)
	wantInts(t, at(t, db, ""), "x", 0, 1, 2, 3, 4, 5)

	// A backup that is reached through a link goes on.
	backup := filepath.Join(folder, "backup")
	must.Do(t, os.Symlink(backup+".zdb", backup))
	for _, dest := range []string{backup + ".zdb", backup} {
		if _, err := db.Backup(bg, dest, txn.TransferOptions{}); err != nil {
			t.Errorf("backup to %s: %v", dest, err)
		}
	}
}

// TestExportOntoReferencedFiles: a destination that holds a file which values
// lie in is not replaced, whether a reference set or a database leads there.
func TestExportOntoReferencedFiles(t *testing.T) {
	folder := t.TempDir()
	store, data := filepath.Join(folder, "store"), filepath.Join(folder, "store", "data.bin")
	writeStore(t, store, map[string]string{"zarr.json": `{"zarr_format":3,"node_type":"group","attributes":{}}`, "data.bin": "12345678"})
	must.Do(t, os.Symlink(filepath.Join("store", "data.bin"), filepath.Join(folder, "link.bin")))
	memory, url := newMemory(t)
	must.Do(t, memory.Set(bg, "store/zarr.json", []byte("{}")))
	must.Do(t, memory.Set(bg, "store/data.bin", []byte("12345678")))
	array := `{"zarr_format":2,"shape":[2],"chunks":[1],"dtype":"<i4","order":"C","fill_value":0,"compressor":null,"filters":null}`
	for _, c := range []struct{ set, file, dest string }{
		{filepath.Join(folder, "direct.json"), "store/data.bin", store},
		{filepath.Join(folder, "through.json"), "link.bin", store},
		{filepath.Join(folder, "zip.json"), "store/data.bin", data}, // as if it were an archive
		{url + "/refs.json", "store/data.bin", url + "/store/"},
	} {
		set := fmt.Sprintf(`{".zarray":%q,"0":[%q,0,4],"1":[%q,4,4]}`, array, c.file, c.file)
		if strings.HasPrefix(c.set, "memory:") {
			must.Do(t, memory.Set(bg, "refs.json", []byte(set)))
		} else {
			must.Do(t, os.WriteFile(c.set, []byte(set), 0o666))
		}
		if c.dest == data {
			must.Do(t, os.WriteFile(data, []byte("PK\x03\x04abcd"), 0o666))
		}
		sources := map[string]*Source{"set": openURL(t, c.set)}
		if !strings.HasPrefix(c.set, "memory:") {
			db := openDB(t, &Options{Create: true, ConfigDir: t.TempDir()})
			must.Get(db.Import(bg, openURL(t, c.set), ImportOptions{Link: true}))(t)
			dir := db.Dir()
			closeChecked(t, db)
			src, err := OpenDatabaseSource(bg, dir, "", "", "", &SourceOptions{Follow: Follow{Allow: []string{folder}}})
			must.Do(t, err)
			defer src.Close()
			sources["database"] = src
		}
		for name, src := range sources {
			if _, err := Export(bg, src, c.dest, ExportOptions{Overwrite: true}); !errors.Is(err, ErrOverlap) {
				t.Errorf("%s %s to %s: %v", name, c.set, c.dest, err)
			}
		}
	}
	if ok, err := kv.Exists(bg, memory, "store/data.bin"); !ok || err != nil {
		t.Errorf("the file is gone, %v", err)
	}
	if read(t, data) == "" {
		t.Error("the file is gone")
	}
}

// TestOverwriteStoppedAnywhere: an export that is to replace a store or archive
// leaves it as it was, unless it is complete. In memory, keys that are not
// exported go last.
func TestOverwriteStoppedAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	keys := smallStore(t)
	url := memoryURL(t, keys)
	old := map[string]string{"zarr.json": `{"zarr_format":3,"node_type":"group","attributes":{"old":1}}`, "old/c/0": "0", "zz": "1"}
	stops := 0
	for k := 0; ; k++ {
		folder := t.TempDir()
		store, archive := filepath.Join(folder, "store"), filepath.Join(folder, "a.zip")
		writeStore(t, store, old)
		must.Do(t, os.WriteFile(archive, []byte(zipped(t, old)), 0o666))
		memory, memURL := newMemory(t)
		for key, value := range old {
			must.Do(t, memory.Set(bg, key, []byte(value)))
		}
		whole := true
		for _, dest := range []string{store, archive, memURL + "/"} {
			ctx, cancel := context.WithCancel(bg)
			var n atomic.Int64
			src := hooked(t, url, func(kvtest.Op, string) error {
				if n.Add(1) > int64(k) {
					cancel()
				}
				return nil
			})
			_, err := Export(ctx, src, dest, ExportOptions{Overwrite: true, Workers: 1})
			cancel()
			want := keys
			if err != nil {
				if !errors.Is(err, context.Canceled) || errors.Is(err, ErrResumable) {
					t.Fatalf("stopped at operation %d: %v", k, err)
				}
				whole, want = false, old
			}
			switch dest {
			case store, archive:
				sameContents(t, exported(t, dest), want)
			default:
				got := contents(t, memory)
				if err == nil {
					sameContents(t, got, want)
				}
				for key := range want {
					if _, ok := got[key]; !ok {
						t.Errorf("stopped at operation %d: %s is gone", k, key)
					}
				}
			}
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) != 2 {
			t.Fatalf("operation %d: %v is left, %v", k, left, err)
		}
		if whole {
			break
		}
		stops++
	}
	if stops < len(keys) {
		t.Errorf("only %d exports were stopped", stops)
	}
}

// TestResumeLeavesNoTemporaries: what a killed export left is not part of the
// completed one.
func TestResumeLeavesNoTemporaries(t *testing.T) {
	keys := smallStore(t)
	dest := filepath.Join(t.TempDir(), "out")
	for _, name := range []string{"zarr.json", "a/.zarrdb-tmp-0123456789abcdef", ".zarrdb-tmp-fedcba9876543210"} {
		must.Do(t, os.MkdirAll(filepath.Join(dest, filepath.Dir(name)), 0o777))
		must.Do(t, os.WriteFile(filepath.Join(dest, name), []byte(keys["zarr.json"]), 0o666))
	}
	must.Get(Export(bg, openURL(t, memoryURL(t, keys)), dest, ExportOptions{Resume: true}))(t)
	files := 0
	must.Do(t, filepath.WalkDir(dest, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files++
		}
		return err
	}))
	if files != len(keys) {
		t.Errorf("%d files for %d keys", files, len(keys))
	}
}

// TestReadOntoWhatIsRead: a file that is read, or lies in what is read or in a
// database, is no place for a result, however it is named.
func TestReadOntoWhatIsRead(t *testing.T) {
	keys := smallStore(t)
	folder := t.TempDir()
	in := func(names ...string) string { return filepath.Join(append([]string{folder}, names...)...) }
	writeStore(t, in("x.zarr"), keys)
	must.Do(t, os.WriteFile(in("x.zip"), []byte(zipped(t, keys)), 0o666))
	must.Do(t, os.Symlink(in("x.zip"), in("x.npy")))
	must.Do(t, os.WriteFile(in("old.npy"), nil, 0o666))
	must.Do(t, os.WriteFile(in("data.csv"), []byte("abcdefgh"), 0o666))
	must.Do(t, os.Link(in("data.csv"), in("hard.csv")))
	array := `{"zarr_format":2,"shape":[8],"chunks":[4],"dtype":"|u1","compressor":null,"fill_value":0,"order":"C","filters":null}`
	must.Do(t, os.WriteFile(in("refs.json"), fmt.Appendf(nil, `{".zarray":%q,"0":["data.csv",0,4],"1":["data.csv",4,4]}`, array), 0o666))
	db := openAt(t, in("w.zdb"), linkOptions(t, t.TempDir()))
	linkSet(t, db, in("refs.json"), Follow{}, ImportOptions{})
	closeChecked(t, db)
	must.Do(t, os.Symlink(in("w.zdb", "packs"), in("packs")))

	version, err := OpenDatabaseSource(bg, in("w.zdb"), "", "", "", &SourceOptions{Follow: Follow{Allow: []string{folder}}})
	must.Do(t, err)
	defer version.Close()
	for _, c := range []struct {
		source *Source
		file   string
		want   error
	}{
		{openURL(t, in("x.zip")), in("x.npy"), ErrOverlap},
		{openURL(t, in("x.zip")), in("old.npy"), nil},
		{openURL(t, in("x.zip")), in("w.zdb", "t.npy"), ErrOverlap},
		{openURL(t, in("x.zarr", "a")), in("x.zarr", "a", "t.npy"), ErrOverlap},
		{openURL(t, in("x.zarr", "a")), in("x.zarr2.npy"), nil},
		{openURL(t, in("refs.json")), in("data.csv"), ErrOverlap},
		{openURL(t, in("refs.json")), in("hard.csv"), ErrOverlap},
		{openURL(t, in("refs.json")), in("old.npy"), nil},
		{version, in("hard.csv"), ErrOverlap},
		{version, in("w.zdb", "t.npy"), ErrOverlap},
		{version, in("packs", "t.npy"), ErrOverlap},
		{version, in("old.npy"), nil},
		{version, in("new.npy"), nil},
	} {
		if err := c.source.Apart(bg, c.file); !errors.Is(err, c.want) {
			t.Errorf("%s to %s: %v", c.source.URL(), c.file, err)
		}
	}
}

// TestLinkIntoItself: references that lead into the directory of the database, on
// any way, are not linked: collecting garbage would take away their bytes. Exported
// packs are apart, though they are the same files.
func TestLinkIntoItself(t *testing.T) {
	folder := t.TempDir()
	in := func(names ...string) string { return filepath.Join(append([]string{folder}, names...)...) }
	db := openAt(t, in("w.zdb"), linkOptions(t, t.TempDir()))
	commit(t, db, "", "x", func(s *Session) error { return s.Set(bg, "x", make([]byte, 5000)) })
	packs, err := os.ReadDir(in("w.zdb", "packs"))
	must.Do(t, err)
	pack := packs[0].Name()
	must.Do(t, os.Symlink(in("w.zdb"), in("way")))
	must.Do(t, os.Symlink(in("w.zdb", "packs", pack), in("pack")))
	must.Do(t, os.Link(in("w.zdb", "packs", pack), in("hard")))
	array := `{"zarr_format":2,"shape":[4],"chunks":[4],"dtype":"|u1","compressor":null,"fill_value":0,"order":"C","filters":null}`
	for _, c := range []struct {
		url  string
		f    Follow
		want error
	}{
		{in("w.zdb", "packs", pack), Follow{Allow: []string{folder}}, ErrOverlap},
		{"file://" + in("way", "packs", pack), Follow{Allow: []string{folder}}, ErrOverlap},
		{"w.zdb/packs/" + pack, Follow{}, ErrOverlap},
		{"w.zdb/../w.zdb/packs/" + pack, Follow{}, ErrOverlap},
		{"pack", Follow{}, ErrOverlap},
		{"s3://bkt/" + pack, Follow{Map: []Mapping{{From: "s3://bkt/", To: in("w.zdb", "packs")}}}, ErrOverlap},
		{"hard", Follow{}, nil},
	} {
		for _, validate := range []Validate{ValidateLocal, ValidateNone} {
			must.Do(t, os.WriteFile(in("refs.json"), fmt.Appendf(nil, `{".zarray":%q,"0":[%q,8,4]}`, array, c.url), 0o666))
			_, err := db.Import(bg, openFollow(t, in("refs.json"), c.f), ImportOptions{Link: true, To: "to", Overwrite: true, Validate: validate})
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %v", c.url, err)
			}
		}
	}
}
