package engine

import (
	"archive/zip"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
	"github.com/zarrdb/zarrdb/kv/zipkv"
	"github.com/zarrdb/zarrdb/zarr"
)

// exported reads what an export wrote.
func exported(t *testing.T, dest string) map[string]string {
	t.Helper()
	if strings.HasSuffix(dest, ".zip") {
		b := must.Get(os.ReadFile(dest))(t)
		z := must.Get(zipkv.Open(bg, kv.Bytes(b)))(t)
		return contents(t, z)
	}
	d := must.Get(dirkv.Open(dest, nil))(t)
	defer d.Close()
	return contents(t, d)
}

func TestExportImportExport(t *testing.T) {
	keys := smallStore(t)
	folder := t.TempDir()
	src := openURL(t, memoryURL(t, keys))
	for _, dest := range []string{"a.zarr", "a.zip", "deep/down/a.zarr"} {
		first := filepath.Join(folder, dest)
		if dest == "deep/down/a.zarr" {
			dest = "b.zip"
		}
		res := must.Get(Export(bg, src, first, ExportOptions{}))(t)
		if res.Keys != int64(len(keys)) || res.Bytes == 0 {
			t.Errorf("result %+v for %d keys", res, len(keys))
		}
		sameContents(t, exported(t, first), keys)

		db := openAt(t, filepath.Join(t.TempDir(), "t.zdb"), &Options{Create: true})
		must.Get(db.Import(bg, openURL(t, first), ImportOptions{To: "in/here"}))(t)
		closeChecked(t, db)
		second := filepath.Join(t.TempDir(), dest)
		again := must.Get(OpenDatabaseSource(bg, db.Dir(), "", "", "in/here", nil))(t)
		must.Get(Export(bg, again, second, ExportOptions{Workers: 3}))(t)
		must.Do(t, again.Close())
		sameContents(t, exported(t, second), keys)
		if a, b := read(t, first), read(t, second); strings.HasSuffix(dest, ".zip") && a != "" && a != b {
			t.Errorf("%s: the archives differ", dest)
		}
	}
}

// read returns the bytes of a file, "" of a directory.
func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(b)
}

func TestExportOfAVersion(t *testing.T) {
	db := openAt(t, filepath.Join(t.TempDir(), "t.zdb"), &Options{Create: true})
	first := commit(t, db, "", "x", func(s *Session) error { return create(s, "x", line(6, 2)) })
	commit(t, db, "", "change", func(s *Session) error { return put(s, "x", 0, 50) })
	s := must.Get(db.Begin(bg, ""))(t)
	must.Do(t, put(s, "x", 0, 60))
	session := s.ID().String()
	must.Do(t, s.Detach(bg))
	closeChecked(t, db)
	for i, c := range []struct {
		rev, session string
		want         int32
	}{{"", "", 50}, {first.String(), "", 0}, {"main~1", "", 0}, {"", session, 60}} {
		src := must.Get(OpenDatabaseSource(bg, db.Dir(), c.rev, c.session, "", nil))(t)
		dest := filepath.Join(t.TempDir(), "out")
		must.Get(Export(bg, src, dest, ExportOptions{}))(t)
		must.Do(t, src.Close())
		out := openURL(t, dest+"|zarr:x")
		n := must.Get(out.Node(bg))(t)
		a, _ := n.Array()
		v, _, err := zarr.Read[int32](bg, a, zarr.Sel())
		if err != nil || v[0] != c.want {
			t.Errorf("case %d: %v, %v", i, v, err)
		}
	}
}

func TestExportOverwritesNothingElse(t *testing.T) {
	keys := smallStore(t)
	src := openURL(t, memoryURL(t, keys))
	for _, c := range []struct {
		what  string
		files map[string]string // "" is the destination itself
		o     ExportOptions
		want  error
	}{
		{"an empty directory", map[string]string{}, ExportOptions{}, nil},
		{"a store", map[string]string{"zarr.json": "{}", "c/0": ""}, ExportOptions{}, fs.ErrExist},
		{"a store, overwriting", map[string]string{"zarr.json": "{}", "c/0": ""}, ExportOptions{Overwrite: true}, nil},
		{"a v2 store, overwriting", map[string]string{".zgroup": "{}"}, ExportOptions{Overwrite: true}, nil},
		{"papers, overwriting", map[string]string{"thesis.tex": "…"}, ExportOptions{Overwrite: true}, fs.ErrExist},
		{"a database, overwriting", map[string]string{"FORMAT": "zarrdb 1\n", "zarr.json": "{}"}, ExportOptions{Overwrite: true}, fs.ErrExist},
		{"a file", map[string]string{"": "hello"}, ExportOptions{}, fs.ErrExist},
		{"a file, overwriting", map[string]string{"": "hello"}, ExportOptions{Overwrite: true}, fs.ErrExist},
		{"a zip archive, overwriting", map[string]string{"": zipped(t, keys)}, ExportOptions{Overwrite: true}, nil},
		{"papers, resuming", map[string]string{"thesis.tex": "…"}, ExportOptions{Resume: true}, fs.ErrExist},
		{"a file, resuming", map[string]string{"": "hello"}, ExportOptions{Resume: true}, fs.ErrExist},
		{"another store, resuming", map[string]string{"zarr.json": "{}", "z": ""}, ExportOptions{Resume: true}, fs.ErrExist},
		{"a part of it, resuming", map[string]string{"a/c/0/0": "old", "zarr.json": keys["zarr.json"]}, ExportOptions{Resume: true}, nil},
	} {
		dest := filepath.Join(t.TempDir(), "dest")
		for name, text := range c.files {
			where := filepath.Join(dest, name)
			must.Do(t, os.MkdirAll(filepath.Dir(where), 0o777))
			must.Do(t, os.WriteFile(where, []byte(text), 0o666))
		}
		_, err := Export(bg, src, dest, c.o)
		if !errors.Is(err, c.want) || err != nil && c.want == nil {
			t.Errorf("%s: error %v, want %v", c.what, err, c.want)
		}
		if err == nil {
			sameContents(t, exported(t, dest), keys)
			continue
		}
		for name, text := range c.files {
			if got := read(t, filepath.Join(dest, name)); got != text {
				t.Errorf("%s: %s holds %q now", c.what, name, got)
			}
		}
	}
}

// Whenever an export to a directory is stopped, there is no metadata without
// all chunks, and resuming completes it.
func TestExportStoppedAnywhereCanBeResumed(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	keys := smallStore(t)
	url := memoryURL(t, keys)
	partial := 0
	for k := int64(0); ; k++ {
		dest := filepath.Join(t.TempDir(), "out")
		ctx, cancel := context.WithCancel(bg)
		var n atomic.Int64
		src := hooked(t, url, func(kvtest.Op, string) error {
			if n.Add(1) > k {
				cancel()
			}
			return nil
		})
		_, err := Export(ctx, src, dest, ExportOptions{Workers: 1})
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped at operation %d: %v", k, err)
		}
		if _, gone := os.Stat(dest); gone == nil {
			if !errors.Is(err, ErrResumable) {
				t.Fatalf("stopped at operation %d: %v, want ErrResumable", k, err)
			}
			got := exported(t, dest)
			chunks, documents := 0, 0
			for key := range got {
				if names.IsDocument(key) {
					documents++
				} else {
					chunks++
				}
			}
			if documents > 0 && chunks < len(keys)-4 {
				t.Fatalf("stopped at operation %d: metadata beside %d chunks", k, chunks)
			}
			if chunks > 0 {
				partial++
			}
		}
		if _, err := Export(bg, openURL(t, url), dest, ExportOptions{Resume: true}); err != nil {
			t.Fatalf("resumed after %d operations: %v", k, err)
		}
		sameContents(t, exported(t, dest), keys)
	}
	if partial < len(keys) {
		t.Errorf("only %d partial exports were seen", partial)
	}
}

func TestExportZipIsWholeOrNotThere(t *testing.T) {
	keys := smallStore(t)
	url := memoryURL(t, keys)
	boom := errors.New("boom")
	for k := int64(0); ; k++ {
		folder := t.TempDir()
		ctx, cancel := context.WithCancel(bg)
		var n atomic.Int64
		src := hooked(t, url, func(kvtest.Op, string) error {
			if n.Add(1) > k {
				cancel()
				return boom
			}
			return nil
		})
		_, err := Export(ctx, src, folder+"/out.zip", ExportOptions{})
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, boom) && !errors.Is(err, context.Canceled) || errors.Is(err, ErrResumable) {
			t.Fatalf("operation %d: %v", k, err)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Fatalf("operation %d: %v is left, %v", k, left, err)
		}
	}
}

func TestExportOfNothing(t *testing.T) {
	db := openDB(t, &Options{Create: true})
	closeChecked(t, db)
	for _, path := range []string{"", "nope"} {
		src := must.Get(OpenDatabaseSource(bg, db.Dir(), "", "", path, nil))(t)
		dest := filepath.Join(t.TempDir(), "out")
		if _, err := Export(bg, src, dest, ExportOptions{}); !errors.Is(err, zarr.ErrNotFound) {
			t.Errorf("%q: %v", path, err)
		}
		if _, err := os.Stat(dest); err == nil {
			t.Errorf("%q: the destination was made", path)
		}
		must.Do(t, src.Close())
	}
}

// A directory of stores is exported as it was imported.
func TestDirectoryOfStores(t *testing.T) {
	keys := map[string]string{}
	for k, v := range smallStore(t) {
		keys["one/"+k] = v
	}
	keys["two/.zarray"], keys["two/0.0"] = arrayV2(), "chunk"
	db := openDB(t, nil)
	must.Get(db.Import(bg, openURL(t, memoryURL(t, keys)+"|zarr:"), ImportOptions{To: "all"}))(t)
	got := contents(t, kv.SubLister(at(t, db, ""), "all"))
	sameContents(t, got, keys)
	var names []string
	for m, err := range at(t, db, "").Members(bg, "all") {
		must.Do(t, err)
		names = append(names, m.Name+" "+m.Node.Version().String())
	}
	if want := []string{"one 3", "two 2"}; !slices.Equal(names, want) {
		t.Errorf("members %v, want %v", names, want)
	}
	dest := filepath.Join(t.TempDir(), "out")
	must.Get(Export(bg, openURL(t, memoryURL(t, got)+"|zarr:"), dest, ExportOptions{}))(t)
	sameContents(t, exported(t, dest), keys)
}

// An archive of OME-Zarr has the root's document first, then those of groups before those below
// them, and the version in its comment.
func TestExportOZX(t *testing.T) {
	for _, to := range []zarr.Version{0, zarr.V3} {
		dir := t.TempDir()
		src := dir + "/in.zarr"
		files := map[string]string{
			"zarr.json":   `{"zarr_format":3,"node_type":"group","attributes":{"ome":{"version":"0.5"}}}`,
			"0/zarr.json": `{"zarr_format":3,"node_type":"array","shape":[2],"data_type":"uint8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes"}]}`,
			"0/c/0":       "ab",
		}
		if to != 0 { // converted
			files["zarr.json"] = ""
			files[".zgroup"], files[".zattrs"] = `{"zarr_format":2}`, `{"multiscales":[{"version":"0.4","axes":[{"name":"x"}],"datasets":[{"path":"0","coordinateTransformations":[{"type":"scale","scale":[1]}]}]}]}`
			files["0/zarr.json"] = ""
			files["0/.zarray"] = `{"zarr_format":2,"shape":[2],"chunks":[2],"dtype":"|u1","compressor":null,"fill_value":0,"filters":null,"order":"C","dimension_separator":"/"}`
			files["0/0"] = files["0/c/0"]
			delete(files, "0/c/0")
		}
		for name, text := range files {
			if text == "" {
				continue
			}
			must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(src, name)), 0o777))
			must.Do(t, os.WriteFile(filepath.Join(src, name), []byte(text), 0o666))
		}
		s := must.Get(OpenSource(bg, src, nil))(t)
		must.Get(Export(bg, s, dir+"/out.OZX", ExportOptions{Format: to}))(t)
		must.Do(t, s.Close())
		z := must.Get(zip.OpenReader(dir + "/out.OZX"))(t)
		var got []string
		for _, f := range z.File {
			got = append(got, f.Name)
		}
		if text := strings.Join(got, " "); text != "zarr.json 0/zarr.json 0/c/0" || z.Comment != `{"ome": {"version": "0.5"}}` {
			t.Errorf("to %v: members %s, comment %s", to, text, z.Comment)
		}
		must.Do(t, z.Close())
	}
}
