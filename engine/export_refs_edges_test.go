package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/zarr"
)

// exportedSet exports what is at a path of a database, and returns the entries as
// text by key: "URL offset length", or the data with a prefix.
func exportedSet(t *testing.T, db *DB, path string, o ExportReferencesOptions) (entries map[string]string, res *ExportResult, err error) {
	t.Helper()
	src := must.Get(OpenDatabaseSource(bg, db.Dir(), "", "", path, nil))(t)
	defer src.Close()
	dest := filepath.Join(t.TempDir(), "set.json")
	if res, err = ExportReferences(bg, src, dest, o); err != nil {
		return nil, nil, err
	}
	b := must.Get(os.ReadFile(dest))(t)
	entries = map[string]string{}
	for e, err := range refs.ReadJSON(bg, kv.Bytes(b), nil) {
		must.Do(t, err)
		entries[e.Key] = fmt.Sprintf("%s %d %d", e.URL, e.Offset, e.Length)
		if e.Inline() {
			entries[e.Key] = "data " + string(e.Data)
		}
	}
	return entries, res, nil
}

// What stands in a set and what stays where it is, by its length and by what is
// asked for. A virtual value of no bytes, or of unknown length, is
// not asked for.
func TestExportReferencesInline(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	base := folder(t, map[string]string{"a": "abcdef", "refs.json": setOf(8, `,"t/0":["a"],"t/1":["s3://b/a",7,0],"t/2":["a",1,2],"t/3":["a",2,3],"t/4":"in","t/5":["s3://b/a"],"u/.zarray":{"zarr_format":2,"shape":[2],"chunks":[1],"dtype":"|i1","compressor":null,"filters":null,"fill_value":-1,"order":"C"},"u/0":["s3://b/a"],"u/1":["a",1,2]`)})
	db := openDB(t, linkOptions(t, ""))
	linkSet(t, db, base+"/refs.json", Follow{}, ImportOptions{})
	attrs := []byte(`{"long":"` + strings.Repeat("x", 2000) + `"}`)
	values := map[string][]byte{"notes": []byte("of no array"), "t/.zattrs": attrs, "t/6": bytes.Repeat([]byte("6"), 512), "t/7": bytes.Repeat([]byte("7"), 513), "t/8": {}}
	commit(t, db, "", "native", func(s *Session) error {
		for key, b := range values {
			if err := s.Set(bg, key, b); err != nil {
				return err
			}
		}
		return nil
	})
	closeChecked(t, db)
	file := "file://" + filepath.ToSlash(base) + "/a"
	for name, c := range map[string]struct {
		o    ExportReferencesOptions
		want map[string]string // "" is a pack
	}{
		"default":  {ExportReferencesOptions{}, map[string]string{"t/7": ""}},
		"v1":       {ExportReferencesOptions{Version: 1}, map[string]string{"t/7": ""}},
		"inline":   {ExportReferencesOptions{Inline: true}, nil},
		"none":     {ExportReferencesOptions{InlineThreshold: -1}, map[string]string{"t/7": ""}},
		"none all": {ExportReferencesOptions{InlineThreshold: -1, Inline: true}, nil},
	} {
		got, res, err := exportedSet(t, db, "", c.o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := map[string]string{"t/0": file + " 0 -1", "t/1": "s3://b/a 7 0", "t/2": file + " 1 2", "t/3": file + " 2 3", "t/4": "data in", "t/5": "s3://b/a 0 -1", "u/0": "s3://b/a 0 -1", "u/1": file + " 1 2"}
		for key, b := range values {
			want[key] = "data " + string(b)
		}
		size := int64(0)
		for key, is := range got {
			pack, ok := c.want[key]
			switch {
			case ok && pack == "":
				if !strings.HasPrefix(is, "file:///") || !strings.Contains(is, ".packs/") || !strings.HasSuffix(is, fmt.Sprintf(" %d", len(values[key]))) {
					t.Errorf("%s: %s is %s", name, key, is)
				}
			case want[key] != "" && is != want[key]:
				t.Errorf("%s: %s is %.40s, want %.40s", name, key, is, want[key])
			}
			if data, ok := strings.CutPrefix(is, "data "); ok {
				size += int64(len(data))
			}
			delete(want, key)
		}
		if len(want) > 0 || res.Keys != int64(len(got)) || res.Bytes != size {
			t.Errorf("%s: %v is missing, %+v of %d keys and %d bytes", name, want, res, len(got), size)
		}
	}
	// The size of a whole file is not known, and it is not asked for.
	got, _, err := exportedSet(t, db, "u", ExportReferencesOptions{InlineThreshold: 3})
	if want := map[string]string{"0": "s3://b/a 0 -1", "1": "data bc"}; err != nil || got["0"] != want["0"] || got["1"] != want["1"] {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	// One of no bytes is asked for with the others, if small ones are.
	if _, _, err := exportedSet(t, db, "", ExportReferencesOptions{InlineThreshold: 2}); !errors.Is(err, ErrForbidden) || !strings.Contains(err.Error(), "t/1") {
		t.Errorf("error %v", err)
	}
}

// Version 1 has templates, version 0 has none.
func TestExportReferencesVersion(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	set := folder(t, map[string]string{"refs.json": setOf(9, `,"t/0":["s3://bucket/folder/file",0,1]`+
		`,"t/1":["s3://bucket/folder/file",1,1],"t/2":["s3://bucket/folder/file",2,1],"t/3":["s3://bucket/folder/file",3,1],"t/4":["s3://bucket/folder/file",4,1]`)}) + "/refs.json"
	db := openDB(t, linkOptions(t, ""))
	linkSet(t, db, set, Follow{}, ImportOptions{})
	closeChecked(t, db)
	src := must.Get(OpenDatabaseSource(bg, db.Dir(), "", "", "", nil))(t)
	defer src.Close()
	for version, want := range []int{5, 1} { // how often the URL is written
		dest := filepath.Join(t.TempDir(), "set.json")
		must.Get(ExportReferences(bg, src, dest, ExportReferencesOptions{Version: version}))(t)
		b := must.Get(os.ReadFile(dest))(t)
		if n := bytes.Count(b, []byte("s3://bucket/folder/file")); n != want || bytes.HasPrefix(b, []byte(`{"version":1,`)) != (version == 1) {
			t.Errorf("version %d has the URL %d times: %s", version, n, b)
		}
	}
	dest := filepath.Join(t.TempDir(), "set.json")
	if _, err := ExportReferences(bg, src, dest, ExportReferencesOptions{Version: 2}); err == nil {
		t.Error("version 2")
	}
	if _, err := os.Stat(dest); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("version 2 left something: %v", err)
	}
}

// A set, and the packs beside it, come out whole or not at all, and overwrite
// nothing. Whatever their folder is called, what the set says leads there.
func TestExportReferencesPlaces(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	base := folder(t, map[string]string{"refs.json": setOf(2, `,"t/1":["s3://b/a",0,1]`)})
	db := openDB(t, linkOptions(t, ""))
	linkSet(t, db, base+"/refs.json", Follow{}, ImportOptions{})
	large := bytes.Repeat([]byte("payload "), 1000)
	commit(t, db, "", "native", func(s *Session) error {
		doc := `{"zarr_format":2,"shape":[8000],"chunks":[8000],"dtype":"|i1","compressor":null,"filters":null,"fill_value":-1,"order":"C"}`
		return errors.Join(s.Set(bg, "big/.zarray", []byte(doc)), s.Set(bg, "big/0", large), s.Set(bg, "loose/key", large))
	})
	closeChecked(t, db)
	for _, path := range []string{"nowhere", "loose"} {
		nowhere := must.Get(OpenDatabaseSource(bg, db.Dir(), "", "", path, nil))(t)
		dest := filepath.Join(t.TempDir(), "set")
		if _, err := ExportReferences(bg, nowhere, dest, ExportReferencesOptions{}); !errors.Is(err, zarr.ErrNotFound) {
			t.Errorf("of what is not a node: %v", err)
		}
		nothingAt(t, dest)
		nowhere.Close()
	}
	src := must.Get(OpenDatabaseSource(bg, db.Dir(), "", "", "", nil))(t)
	defer src.Close()

	for _, parquet := range []bool{false, true} {
		dest := filepath.Join(t.TempDir(), "set")
		if _, err := ExportReferences(bg, src, dest, ExportReferencesOptions{Parquet: parquet, InlineThreshold: 1}); !errors.Is(err, ErrForbidden) {
			t.Errorf("error %v", err)
		}
		nothingAt(t, dest)
		nothingAt(t, dest+".packs")
		must.Do(t, os.Mkdir(dest+".packs", 0o777))
		if _, err := ExportReferences(bg, src, dest, ExportReferencesOptions{Parquet: parquet}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("over packs: %v", err)
		}
		nothingAt(t, dest)
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"set", "a b", "a%41", "a#b", "a?b", "{{a}}", "a[1]", "é"} {
		for version := range 2 {
			must.Do(t, errors.Join(os.RemoveAll(name), os.RemoveAll(name+".packs")))
			must.Get(ExportReferences(bg, src, name, ExportReferencesOptions{Version: version}))(t)
			if err := os.Rename(name, "set.json"); err != nil { // a plain name for the URL; packs stay
				t.Fatal(err)
			}
			here := must.Get(os.Getwd())(t)
			if got := textOf(t, nodeOf(t, filepath.Join(here, "set.json")+"|kerchunk:|zarr:big", Follow{Allow: []string{filepath.ToSlash(here)}})); got != string(large) {
				t.Errorf("%s: other values", name)
			}
			must.Do(t, os.Remove("set.json"))
		}
	}
}

// An error ends an export, however much would come behind it.
func TestExportReferencesStops(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	refs := slices.Repeat([]string{`["a",0,1]`}, 2*batchEntries+1)
	base := folder(t, map[string]string{"a": "abc", "refs.json": tiles(1, "null", refs)})
	db := openDB(t, linkOptions(t, ""))
	linkSet(t, db, base+"/refs.json", Follow{}, ImportOptions{})
	closeChecked(t, db)
	must.Do(t, os.Remove(base+"/a"))
	_, _, err := exportedSet(t, db, "", ExportReferencesOptions{InlineThreshold: 1})
	if err == nil || !strings.Contains(err.Error(), "t/") {
		t.Errorf("error %v", err)
	}
}

// A database that goes on writing after an export leaves the linked packs alone:
// the set can still be read and linked, also by the database itself.
func TestExportReferencesThenWrite(t *testing.T) {
	config, path := t.TempDir(), t.TempDir()+"/t.zdb"
	spec := zarr.Spec{Shape: []int64{1000}, Chunks: []int64{500}, DataType: "int32", Codecs: []byte(`[{"name":"bytes","configuration":{"endian":"little"}}]`)}
	db := openAt(t, path, linkOptions(t, config))
	commit(t, db, "", "x", func(s *Session) error { return create(s, "g/x", spec) })
	want := ints(t, at(t, db, ""), "g/x")
	closeChecked(t, db)

	src := must.Get(OpenDatabaseSource(bg, path, "", "", "", nil))(t)
	set := filepath.Join(t.TempDir(), "set.json")
	must.Get(ExportReferences(bg, src, set, ExportReferencesOptions{}))(t)
	must.Do(t, src.Close())

	db = openAt(t, path, linkOptions(t, config))
	linkSet(t, db, set, Follow{}, ImportOptions{To: "linked"})
	commit(t, db, "", "y", func(s *Session) error { return create(s, "y", spec) })
	wantInts(t, at(t, db, ""), "linked/g/x", want...)
	wantInts(t, at(t, db, ""), "g/x", want...)
}
