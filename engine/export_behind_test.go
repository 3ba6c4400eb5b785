package engine

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// everyConversion exports a store to each version of Zarr, copied and linked into reference
// sets, and shows what came of it.
func everyConversion(t *testing.T, keys map[string]string, skip []string, check func(t *testing.T, to zarr.Version, res *ExportResult, out map[string]string, err error)) {
	t.Helper()
	db := openAt(t, filepath.Join(t.TempDir(), "t.zdb"), &Options{Create: true})
	must.Get(db.Import(bg, openURL(t, memoryURL(t, keys)), ImportOptions{}))(t)
	closeChecked(t, db)
	for _, to := range []zarr.Version{zarr.V2, zarr.V3} {
		t.Run(fmt.Sprintf("zarr%v", to), func(t *testing.T) {
			dest := filepath.Join(t.TempDir(), "out")
			res, err := Export(bg, databaseSource(t, db.Dir()), dest, ExportOptions{Format: to, Skip: skip})
			out := map[string]string(nil)
			if err == nil {
				out = exported(t, dest)
			}
			check(t, to, res, out, err)
		})
	}
	for _, parquet := range []bool{false, true} {
		t.Run(fmt.Sprintf("references, parquet %v", parquet), func(t *testing.T) {
			dest := filepath.Join(t.TempDir(), map[bool]string{false: "out.json", true: "out.parq"}[parquet])
			res, err := ExportReferences(bg, databaseSource(t, db.Dir()), dest, ExportReferencesOptions{Parquet: parquet, Inline: true, Format: zarr.V2, Skip: skip})
			out := map[string]string(nil)
			if err == nil {
				at := must.Get(openURL(t, dest).dataset(bg))(t)
				out = contents(t, at.View.(kv.ReadLister))
			}
			check(t, zarr.V2, res, out, err)
		})
	}
}

func databaseSource(t *testing.T, dir string) *Source {
	t.Helper()
	src := must.Get(OpenDatabaseSource(bg, dir, "", "", "", nil))(t)
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	})
	return src
}

// staleStore is a store whose consolidated metadata lacks an array, and has one that is gone.
func staleStore(t *testing.T, v zarr.Version) map[string]string {
	t.Helper()
	keys, _ := webStore(t, v)
	for key := range maps.Clone(keys) {
		if rest, ok := strings.CutPrefix(key, "a/"); ok {
			keys["new/"+rest] = keys[key]
			delete(keys, key)
		}
	}
	return keys
}

// TestExportStaleCopies checks that every conversion has true consolidated metadata, whatever
// that of the source is, and that a copy as it is names the groups whose is not.
func TestExportStaleCopies(t *testing.T) {
	for _, v := range []zarr.Version{zarr.V2, zarr.V3} {
		keys := staleStore(t, v)
		everyConversion(t, keys, nil, func(t *testing.T, to zarr.Version, res *ExportResult, out map[string]string, err error) {
			must.Do(t, err)
			key := map[zarr.Version]string{zarr.V2: names.V2Metadata, zarr.V3: names.V3}[to]
			doc, ok := out[key]
			if !ok && strings.Contains(t.Name(), "parquet_true") && out["new/.zarray"] != "" {
				return // in a parquet set, .zmetadata is a file of the format and no key
			}
			made, err := policy.TrueDocument(bg, memOf(t, out), &zarr.OpenOptions{}, key, []byte(doc))
			if err != nil || string(made) != doc || !strings.Contains(doc, `"new`) || strings.Contains(doc, `"a/`) || strings.Contains(doc, `"a":`) {
				t.Errorf("from v%v: %s is %s (%v)", v, key, doc, err)
			}
			if res.AllStale != 0 || res.AllBehind != 1 {
				t.Errorf("from v%v: %+v", v, res)
			}
		})
		for _, dest := range []string{"copy", "copy.zip"} {
			dest = filepath.Join(t.TempDir(), dest)
			res, err := Export(bg, openURL(t, memoryURL(t, keys)), dest, ExportOptions{})
			if err != nil || res.AllStale != 1 || !slices.Equal(res.Stale, []string{""}) {
				t.Errorf("copy of v%v: %+v, %v", v, res, err)
			}
			sameContents(t, exported(t, dest), keys)
		}
		sound, _ := webStore(t, v)
		if res, err := Export(bg, openURL(t, memoryURL(t, sound)), filepath.Join(t.TempDir(), "out"), ExportOptions{Format: v}); err != nil || res.AllStale != 0 || res.AllBehind != 0 {
			t.Errorf("copy of a sound v%v: %+v, %v", v, res, err)
		}
	}
}

// TestExportSkip leaves out what has no form in a format, and names everything that an
// export leaves behind.
func TestExportSkip(t *testing.T) {
	view := kv.NewMem()
	o := &zarr.OpenOptions{Version: zarr.V3}
	for _, path := range []string{"", "g"} {
		must.Get(zarr.CreateGroup(bg, view, path, zarr.Attributes{}, o))(t)
	}
	for path, chunks := range map[string][]int64{"a": {2}, "g/shards": {2}, "g/more": {2}} {
		spec := zarr.Spec{Shape: []int64{4}, Chunks: chunks, DataType: "int8"}
		if path == "g/shards" {
			spec.Shards = []int64{4}
		}
		a, err := zarr.Create(bg, view, path, spec, o)
		if err == nil {
			err = a.WriteBytes(bg, zarr.Sel(), []byte{1, 2, 3, 4})
		}
		must.Do(t, err)
	}
	keys := contents(t, view)
	keys["a/zarr.json"] = strings.Replace(keys["a/zarr.json"], `"zarr_format"`, `"mine": {"must_understand": false}, "zarr_format"`, 1)
	keys["a/more.txt"] = "x"
	for i := range 12 {
		keys[fmt.Sprintf("notes/%02d", i)] = "x"
	}
	everyConversion(t, keys, []string{"/g/shards"}, func(t *testing.T, to zarr.Version, res *ExportResult, out map[string]string, err error) {
		must.Do(t, err)
		want := []string{`member "mine" of array /a`, "array /g/shards", "key a/more.txt"}
		if to == zarr.V3 {
			want = want[1:] // the member goes along
		}
		for i := 0; len(want) < 10; i++ {
			want = append(want, fmt.Sprintf("key notes/%02d", i))
		}
		if !slices.Equal(res.Behind, want) || res.AllBehind != map[zarr.Version]int64{zarr.V2: 15, zarr.V3: 14}[to] {
			t.Errorf("left behind %d: %q", res.AllBehind, res.Behind)
		}
		for key := range out {
			if strings.HasPrefix(key, "g/shards/") {
				t.Errorf("%s is there", key)
			}
		}
		for _, path := range []string{"a", "g/more"} {
			a, err := zarr.OpenArray(bg, memOf(t, out), path, nil)
			got := make([]byte, 4)
			if err == nil {
				err = a.ReadBytes(bg, zarr.Sel(), got)
			}
			if err != nil || string(got) != "\x01\x02\x03\x04" {
				t.Errorf("%s: %v, %v", path, got, err)
			}
		}
	})
	everyConversion(t, keys, []string{"g", "g/shards"}, func(t *testing.T, to zarr.Version, res *ExportResult, out map[string]string, err error) {
		must.Do(t, err)
		if !slices.Contains(res.Behind, "group /g") || !slices.Contains(res.Behind, "array /g/more") {
			t.Errorf("left behind: %q", res.Behind)
		}
	})
	for _, skip := range []string{"", "/", "g/shard", "nothing"} {
		everyConversion(t, keys, []string{"g/shards", skip}, func(t *testing.T, _ zarr.Version, _ *ExportResult, _ map[string]string, err error) {
			if err == nil || names.Clean(skip) != "" && !errors.Is(err, zarr.ErrNotFound) {
				t.Errorf("skip %q: %v", skip, err)
			}
		})
	}
}

// TestExportSkipUnreadable leaves out an array that cannot be opened.
func TestExportSkipUnreadable(t *testing.T) {
	keys, _ := webStore(t, zarr.V3)
	keys["g/odd/zarr.json"] = strings.Replace(keys["a/zarr.json"], `"bytes"`, `"mystery"`, 1)
	everyConversion(t, keys, nil, func(t *testing.T, to zarr.Version, res *ExportResult, _ map[string]string, err error) {
		if to == zarr.V2 && (!errors.Is(err, ErrConvert) || !strings.Contains(err.Error(), "/g/odd")) {
			t.Error(err)
		}
	})
	everyConversion(t, keys, []string{"g/odd"}, func(t *testing.T, to zarr.Version, res *ExportResult, _ map[string]string, err error) {
		if err != nil || !slices.Contains(res.Behind, "array /g/odd") {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// TestExportOMEXML checks that the OME-XML of a collection of images goes along in a
// conversion, and is left behind where the destination holds nodes alone.
func TestExportOMEXML(t *testing.T) {
	const xml = "OME/METADATA.ome.xml"
	keys, stray := webStore(t, zarr.V3)
	delete(keys, stray)
	keys["OME/zarr.json"], keys[xml] = `{"zarr_format":3,"node_type":"group"}`, "<OME/>"
	everyConversion(t, keys, nil, func(t *testing.T, to zarr.Version, res *ExportResult, out map[string]string, err error) {
		want := []string(nil)
		if strings.Contains(t.Name(), "parquet_true") {
			want = []string{"key " + xml}
		}
		if err != nil || !slices.Equal(res.Behind, want) || (out[xml] == "<OME/>") != (want == nil) {
			t.Errorf("%+v, %q, %v", res, out[xml], err)
		}
	})
	keys, stray = webStore(t, zarr.V2)
	delete(keys, stray)
	keys["OME/.zgroup"], keys[xml] = `{"zarr_format":2}`, "<OME/>"
	res, err := Export(bg, openURL(t, memoryURL(t, keys)), filepath.Join(t.TempDir(), "out"), ExportOptions{Foreign: ForeignOptions{Format: "icechunk"}})
	if err != nil || !slices.Equal(res.Behind, []string{"key " + xml}) {
		t.Errorf("icechunk: %+v, %v", res, err)
	}
}
