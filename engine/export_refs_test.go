package engine

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
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

// A version goes out as references and reads the same: chunks that were virtual,
// in packs, and small ones.
func TestExportReferences(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	base := folder(t, map[string]string{"a": "abc", "refs.json": setOf(4, `,"t/0":["a",1,1],"t/1":"z","t/3":["a",2,1]`)})
	db := openDB(t, linkOptions(t, ""))
	linkSet(t, db, base+"/refs.json", Follow{}, ImportOptions{To: "n"})
	large := bytes.Repeat([]byte("payload "), 1000)
	commit(t, db, "", "native", func(s *Session) error {
		doc := `{"zarr_format":2,"shape":[16000],"chunks":[8000],"dtype":"|i1","compressor":null,"filters":null,"fill_value":-1,"order":"C"}`
		return errors.Join(s.Set(bg, "n/big/.zarray", []byte(doc)), s.Set(bg, "n/big/1", large))
	})
	closeChecked(t, db)
	open := func() *Source {
		src := must.Get(OpenDatabaseSource(bg, db.Dir(), "", "", "n", nil))(t)
		return src
	}
	out := t.TempDir()
	for name, o := range map[string]ExportReferencesOptions{
		"v0.json": {}, "v1.json": {Version: 1}, "inline.json": {Inline: true}, "set.parq": {Parquet: true}, "inline.parq": {Parquet: true, Inline: true},
		"threshold.json": {InlineThreshold: 8000}, "threshold.parq": {Parquet: true, InlineThreshold: 8000}, "less.json": {InlineThreshold: 7999}, "none.json": {InlineThreshold: -1},
	} {
		t.Run(name, func(t *testing.T) {
			var texts []string
			dest := filepath.Join(out, name)
			for range 2 {
				must.Do(t, errors.Join(os.RemoveAll(dest), os.RemoveAll(dest+".packs")))
				src := open()
				res := must.Get(ExportReferences(bg, src, dest, o))(t)
				if res.Keys != 7 {
					t.Errorf("%d keys", res.Keys)
				}
				if _, err := ExportReferences(bg, src, dest, o); !errors.Is(err, fs.ErrExist) {
					t.Errorf("over what is there: %v", err)
				}
				src.Close()
				if !o.Parquet {
					b := must.Get(os.ReadFile(dest))(t)
					texts = append(texts, string(b))
				}
			}
			if len(texts) == 2 && texts[0] != texts[1] {
				t.Error("other bytes for the same version")
			}
			if _, err := os.Stat(dest + ".packs"); (err == nil) == (o.Inline || o.InlineThreshold == 8000) {
				t.Errorf("packs: %v", err)
			}
			f := Follow{Allow: []string{filepath.ToSlash(base)}}
			if o.InlineThreshold > 0 { // the file need not be there
				f = Follow{}
			}
			b := make([]byte, 4)
			if err := nodeOf(t, dest+"|kerchunk:|zarr:t", f).ReadBytes(bg, zarr.Sel(), b); err != nil || string(b) != "bz\xffc" {
				t.Errorf("%q, %v", b, err)
			}
			b = make([]byte, 16000)
			if err := nodeOf(t, dest+"|kerchunk:|zarr:big", f).ReadBytes(bg, zarr.Sel(), b); err != nil || !bytes.Equal(b[8000:], large) {
				t.Errorf("big: %v", err)
			}
		})
	}
	store := openFollow(t, memoryURL(t, map[string]string{".zgroup": `{"zarr_format":2}`}), Follow{})
	if _, err := ExportReferences(bg, store, out+"/x.json", ExportReferencesOptions{}); !errors.Is(err, ErrFormat) {
		t.Errorf("of a store: %v", err)
	}
	src := open()
	defer src.Close()
	if _, err := ExportReferences(bg, src, out+"/no/where.json", ExportReferencesOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("to a missing folder: %v", err)
	}
	s := src.at.View.(*Snapshot)
	if _, _, err := s.PackFile(bg, "n/t/0"); err == nil || !strings.Contains(err.Error(), "virtual") {
		t.Errorf("pack of a virtual value: %v", err)
	}
}

// A file in a foreign format becomes the set that it becomes through a database that has
// links to it, and so does a set of references.
func TestExportReferencesOfFiles(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := t.TempDir()
	for _, name := range []string{"hdf5/testdata/chunks.h5.gz", "hdf5/testdata/dimensions.nc.gz", "netcdf3/testdata/cdf5_records.nc"} {
		data := must.Get(os.ReadFile(filepath.FromSlash("../formats/" + name)))(t)
		if strings.HasSuffix(name, ".gz") {
			data = must.Get(io.ReadAll(must.Get(gzip.NewReader(bytes.NewReader(data)))(t)))(t)
		}
		file := filepath.Join(dir, strings.TrimSuffix(filepath.Base(name), ".gz"))
		must.Do(t, os.WriteFile(file, data, 0o666))
		db := openDB(t, linkOptions(t, ""))
		linkSet(t, db, file, Follow{}, ImportOptions{})
		closeChecked(t, db)
		export := func(url string, o ExportReferencesOptions) string {
			src := must.Get(OpenSource(bg, url, nil))(t)
			dest := filepath.Join(t.TempDir(), "refs.json")
			must.Get(ExportReferences(bg, src, dest, o))(t)
			must.Do(t, src.Close())
			var set map[string]json.RawMessage
			must.Do(t, json.Unmarshal(must.Get(os.ReadFile(dest))(t), &set))
			return string(must.Get(json.Marshal(set))(t)) // in the order of keys
		}
		for _, o := range []ExportReferencesOptions{{Inline: true}, {Inline: true, InlineThreshold: 100}, {Format: zarr.V2}} {
			if o.Format == zarr.V2 && name != "hdf5/testdata/chunks.h5.gz" {
				continue // some arrays have no form in Zarr v2
			}
			want := export(db.Dir()+"/|zarrdb:", o)
			if got := export(file, o); got != want {
				t.Errorf("%s, %+v: %.2000s, not %.2000s", name, o, got, want)
			}
		}
		stored := filepath.Join(dir, "refs.json")
		must.Get(ExportReferences(bg, openFollow(t, file, Follow{}), stored, ExportReferencesOptions{}))(t)
		if got, want := export(stored, ExportReferencesOptions{}), export(file, ExportReferencesOptions{}); got != want {
			t.Errorf("%s, of its set: %.2000s, not %.2000s", name, got, want)
		}
		must.Do(t, os.Remove(stored))
	}
}

// Small virtual values that go into a set are read together.
func TestExportReferencesInlined(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	data := numbered(4096)
	o := newOrigin(t, map[string][]byte{"/f": data, "/g": data})
	refs := make([]string, 200)
	for i := range refs {
		refs[i] = fmt.Sprintf(`["ORIGIN/%c",%d,16]`, "fg"[i%2], 4080-16*i)
	}
	opts := linkOptions(t, "")
	db := linked(t, o, tiles(16, "null", refs), opts)
	closeChecked(t, db)
	o.requests()
	src := must.Get(OpenDatabaseSource(bg, db.Dir(), "", "", "", &SourceOptions{Adapters: opts.Adapters, Follow: opts.Follow}))(t)
	defer src.Close()
	for _, parquet := range []bool{false, true} {
		dest := filepath.Join(t.TempDir(), "set")
		must.Get(ExportReferences(bg, src, dest, ExportReferencesOptions{Parquet: parquet, InlineThreshold: 16}))(t)
		o.want(t, fmt.Sprintf("parquet %v", parquet), "GET /f 912-4095", "GET /g 896-4079")
		got := make([]byte, 3200)
		must.Do(t, nodeOf(t, dest+"|kerchunk:|zarr:t", Follow{}).ReadBytes(bg, zarr.Sel(), got))
		for i := range refs {
			if at := 4080 - 16*i; !bytes.Equal(got[16*i:][:16], data[at:][:16]) {
				t.Fatalf("parquet %v: chunk %d is %v", parquet, i, got[16*i:][:16])
			}
		}
	}
	o.mu.Lock()
	delete(o.files, "/g")
	o.mu.Unlock()
	dest := filepath.Join(t.TempDir(), "set.json")
	if _, err := ExportReferences(bg, src, dest, ExportReferencesOptions{InlineThreshold: 16}); !errors.Is(err, ErrUnreachable) && !errors.Is(err, kv.ErrChanged) {
		t.Errorf("a file that is gone: %v", err)
	}
	if _, err := os.Stat(dest); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a set that is not a whole: %v", err)
	}
}

// What is read ahead comes in its order, up to the error that ends it, and nothing
// runs on when no more is wanted.
func TestAhead(t *testing.T) {
	boom := errors.New("boom")
	for _, n := range []int{0, 1, batchEntries, 10*batchEntries + 7} {
		running, failed := false, error(nil)
		seq := ahead(bg, func(context.Context) iter.Seq2[refs.Entry, error] {
			return func(yield func(refs.Entry, error) bool) {
				running = true
				defer func() { running = false }()
				for i := range n {
					if !yield(refs.Entry{Key: fmt.Sprint(i)}, nil) {
						return
					}
				}
				if failed != nil {
					yield(refs.Entry{}, failed)
				}
			}
		})
		for _, failed = range []error{nil, boom} {
			i, last := 0, error(nil)
			for e, err := range seq {
				if last = err; err == nil {
					if e.Key != fmt.Sprint(i) {
						t.Fatalf("entry %d is %q", i, e.Key)
					}
					i++
				}
			}
			if i != n || last != failed || running {
				t.Errorf("%d entries, %v: got %d, %v, running %v", n, failed, i, last, running)
			}
			for _, stop := range []int{1, n/2 + 1} {
				i := 0
				for range seq {
					if i++; i == stop {
						break
					}
				}
				if running {
					t.Errorf("%d entries: it runs on after %d", n, i)
				}
			}
		}
	}
}

// A Zarr v3 version becomes a Zarr v2 set with the same values, which parquet sets
// and programs for Zarr v2 need. What has no form in v2 is named and nothing written.
func TestExportReferencesOfV3(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	db := openDB(t, &Options{Create: true})
	values := numbered(6 * 600 * 2)
	commit(t, db, "", "made", func(s *Session) error {
		a, err := s.CreateArray(bg, "g/t", zarr.Spec{Version: zarr.V3, Shape: []int64{6, 600}, Chunks: []int64{2, 600}, DataType: "int16", DimensionNames: []string{"time", "x"}})
		if err == nil {
			err = a.WriteBytes(bg, zarr.Sel(), values)
		}
		if err != nil {
			return err
		}
		one, err := s.CreateArray(bg, "g/one", zarr.Spec{Version: zarr.V3, Shape: []int64{}, DataType: "uint8"})
		if err != nil {
			return err
		}
		if _, err := s.CreateArray(bg, "h/s", zarr.Spec{Version: zarr.V3, Shape: []int64{8}, Chunks: []int64{2}, Shards: []int64{4}, DataType: "int8"}); err != nil {
			return err
		}
		return errors.Join(one.WriteBytes(bg, zarr.Sel(), []byte{7}), s.Set(bg, "g/t/c/9/9", []byte("outside")), s.Set(bg, "g/notes", []byte("none of Zarr's")))
	})
	closeChecked(t, db)
	for _, o := range []ExportReferencesOptions{{Format: zarr.V2}, {Format: zarr.V2, Version: 1, Inline: true}, {Format: zarr.V2, Parquet: true}} {
		src, err := OpenDatabaseSource(bg, db.Dir(), "", "", "g", nil)
		must.Do(t, err)
		dest := filepath.Join(t.TempDir(), "set")
		_, err = ExportReferences(bg, src, dest, o)
		must.Do(t, errors.Join(err, src.Close()))
		got := make([]byte, len(values))
		n := nodeOf(t, dest+"|kerchunk:|zarr2:t", Follow{})
		if err := n.ReadBytes(bg, zarr.Sel(), got); err != nil || !bytes.Equal(got, values) || n.DimensionNames()[0] != "time" {
			t.Errorf("%+v: t: %v", o, err)
		}
		one := make([]byte, 1)
		if err := nodeOf(t, dest+"|kerchunk:|zarr2:one", Follow{}).ReadBytes(bg, zarr.Sel(), one); err != nil || one[0] != 7 {
			t.Errorf("%+v: one: %d, %v", o, one, err)
		}
	}
	entries, _, err := exportedSet(t, db, "g", ExportReferencesOptions{Format: zarr.V2})
	if keys := slices.Sorted(maps.Keys(entries)); err != nil || fmt.Sprint(keys) != "[.zgroup one/.zarray one/.zattrs one/0 t/.zarray t/.zattrs t/0.0 t/1.0 t/2.0]" || strings.Join(strings.Fields(entries["one/.zattrs"]), "") != `data{"_ARRAY_DIMENSIONS":[]}` {
		t.Errorf("%q, %q, %v", keys, entries["one/.zattrs"], err)
	}
	entries, _, err = exportedSet(t, db, "g", ExportReferencesOptions{})
	if _, ok := entries["t/zarr.json"]; err != nil || !ok {
		t.Errorf("as stored: %q, %v", slices.Sorted(maps.Keys(entries)), err)
	}
	if _, _, err := exportedSet(t, db, "g", ExportReferencesOptions{Parquet: true}); err == nil || !strings.Contains(err.Error(), "Zarr v2 only") {
		t.Errorf("v3 in parquet: %v", err)
	}
	if _, _, err := exportedSet(t, db, "", ExportReferencesOptions{Format: zarr.V2}); !errors.Is(err, ErrConvert) || !strings.Contains(err.Error(), "/h/s") {
		t.Errorf("a shard: %v", err)
	}
}
