package engine

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// Arrays with unknown codecs are copied with their neighbours, bytes as they are,
// also from a server that lists nothing, and so are arrays of objects whose filter is
// not known.
func TestUnknownCodecsAreCopied(t *testing.T) {
	array := func(dtype, filter string) string {
		return arrayV2(`"filters":null`, `"filters":[`+filter+`]`, `"<i4"`, `"`+dtype+`"`, `"fill_value":0`, `"fill_value":null`)
	}
	grib, objects := array("<f4", `{"id":"grib","var":"t2m","dtype":"float32"}`), array("|O", `{"id":"pickle","protocol":5}`)
	store := func() map[string]string {
		return map[string]string{
			".zgroup": `{"zarr_format":2}`, "a/.zarray": arrayV2(), "a/.zattrs": "{}", "a/2.1": "A",
			"g/.zgroup": `{"zarr_format":2}`, "g/t/.zarray": grib, "g/t/.zattrs": `{"units":"K"}`, "g/t/1.1": "GRIB", "g/t/2.0": "GRIB2",
			"o/.zarray": objects, "o/0.0": "\x80\x05.",
		}
	}
	v3 := map[string]string{"zarr.json": arrayV3(`{"name":"bytes"`, `{"name":"mine","configuration":{"k":1}},{"name":"bytes"`), "c/2/1": "V3"}
	v1 := map[string]string{
		"meta":  `{"zarr_format":1,"shape":[4],"chunks":[2],"dtype":"<i4","compression":"snappy","compression_opts":1,"fill_value":0,"order":"C"}`,
		"attrs": "{}", "1": "V1",
	}
	unlisted := store()
	unlisted[".zmetadata"] = `{"zarr_consolidated_format":1,"metadata":{".zgroup":{"zarr_format":2},"a/.zarray":` + arrayV2() + `,"a/.zattrs":{},` +
		`"g/.zgroup":{"zarr_format":2},"g/t/.zarray":` + grib + `,"g/t/.zattrs":{"units":"K"},"o/.zarray":` + objects + `}}`
	for name, c := range map[string]struct {
		url     string
		keys    map[string]string
		unknown int
	}{
		"listed":   {memoryURL(t, store()), store(), 2},
		"v3":       {memoryURL(t, v3), v3, 1},
		"v1":       {memoryURL(t, v1), v1, 1},
		"unlisted": {web(t, unlisted), unlisted, 2},
	} {
		db := openDB(t, nil)
		res, err := db.Import(bg, openURL(t, c.url), ImportOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(res.Unreadable) != c.unknown {
			t.Errorf("%s: %d arrays are unknown, want %d: %v", name, len(res.Unreadable), c.unknown, res.Unreadable)
		}
		for _, err := range res.Unreadable {
			if !errors.Is(err, codecs.ErrUnknown) {
				t.Errorf("%s: %v", name, err)
			}
		}
		s := at(t, db, "")
		sameContents(t, contents(t, s), c.keys)
		dest := filepath.Join(t.TempDir(), "x.zarr")
		if _, err := Export(bg, openURL(t, c.url), dest, ExportOptions{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sameContents(t, exported(t, dest), c.keys)
	}
}

// A v2 store that has no metadata but .zmetadata is read, and its documents are
// imported and exported one by one.
func TestCopyOfMetadataAlone(t *testing.T) {
	attrs := `{"note":"` + strings.Repeat("x", 64<<10) + `"}` // the head does not say what it is
	copied := `{"metadata":{".zattrs":` + attrs + `,".zgroup":{"zarr_format":2},"g/.zgroup":{"zarr_format":2},` +
		`"g/t/.zarray":` + arrayV2(`"fill_value":0`, `"fill_value":NaN`, `"<i4"`, `"<f4"`, `{"id":"zlib","level":1}`, "null") + `,"g/t/.zattrs":{"units":"K"}},"zarr_consolidated_format":1}`
	chunk := strings.Repeat("\x00\x00\x80\x3f", 20)
	keys := map[string]string{".zmetadata": copied, "g/t/0.0": chunk}
	want := maps.Clone(keys)
	docs := must.Get(meta.ConsolidatedDocuments([]byte(copied)))(t)
	for key, text := range docs {
		want[key] = string(text)
	}
	for _, url := range []string{memoryURL(t, keys), memoryURL(t, keys) + "|zarr2:", folder(t, keys), web(t, keys), web(t, keys) + "|zarr2:"} {
		src := openURL(t, url)
		n, err := src.NodeAt(bg, "g/t")
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		a, _ := n.Array()
		if got, _, err := zarr.Read[float32](bg, a, zarr.Sel(zarr.Slice(0, 1, 1), zarr.Slice(0, 2, 1))); err != nil || !slices.Equal(got, []float32{1, 1}) {
			t.Errorf("%s: %v, %v", url, got, err)
		}
		db := openDB(t, nil)
		if _, err := db.Import(bg, src, ImportOptions{}); err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		sameContents(t, contents(t, at(t, db, "")), want)
		dest := filepath.Join(t.TempDir(), "x.zarr")
		if _, err := Export(bg, src, dest, ExportOptions{}); err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		sameContents(t, exported(t, dest), want)
	}
}

// An array whose metadata cannot be used is copied with its neighbours.
func TestUnreadableArraysAreCopied(t *testing.T) {
	group := `{"zarr_format":3,"node_type":"group"}`
	for name, odd := range map[string]string{
		"fill value":   arrayV3(`"fill_value":0`, `"fill_value":"zero"`),
		"data type":    arrayV3(`"int32"`, `"int128"`),
		"chunk grid":   arrayV3(`"name":"regular"`, `"name":"hexagonal"`),
		"chunk length": arrayV3(`"chunk_shape":[4,5]`, `"chunk_shape":[4,0]`),
		"chunk keys":   arrayV3(`"chunk_key_encoding":{"name":"default"`, `"chunk_key_encoding":{"name":"hilbert"`),
		"member":       arrayV3(`"fill_value"`, `"tiles":{"a":[1]},"fill_value"`),
		"names":        arrayV3(`"fill_value"`, `"dimension_names":["x"],"fill_value"`),
		"attributes":   arrayV3(`"attributes":{"a":1,"b":2}`, `"attributes":[]`),
		"codec":        arrayV3(`"little"`, `"middle"`),
		"format":       arrayV3(`"zarr_format":3`, `"zarr_format":4`),
		"no format":    `{"a":1}`,
		"truncated":    arrayV3()[:100],
		"empty":        "",
	} {
		keys := map[string]string{"zarr.json": group, "good/zarr.json": arrayV3(), "odd/zarr.json": odd, "odd/c/0/1": "chunk", "odd/other": "x"}
		if name != "truncated" && name != "empty" {
			keys["zarr.json"] = strings.TrimSuffix(group, "}") + `,"consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":{"good":` + arrayV3() + `,"odd":` + odd + `}}}`
		}
		checkUnreadable(t, name, keys)
	}
	for name, odd := range map[string][2]string{
		"v2 data type":  {arrayV2(`"<i4"`, `"<i16"`), "{}"},
		"v2 fill value": {arrayV2(`"fill_value":0`, `"fill_value":[]`), "{}"},
		"v2 chunks":     {arrayV2(`"chunks":[4,5]`, `"chunks":[0,5]`), "{}"},
		"v2 truncated":  {arrayV2()[:60], "{}"},
		"v2 attributes": {arrayV2(), `{"a":`},
	} {
		checkUnreadable(t, name, map[string]string{".zgroup": `{"zarr_format":2}`, "good/.zarray": arrayV2(), "odd/.zarray": odd[0], "odd/.zattrs": odd[1], "odd/0.1": "chunk"})
	}
}

// Nodes that stand in consolidated metadata alone, of a store that cannot be listed, are
// imported and exported with documents. A document beside others is not made up.
func TestNodesOfConsolidatedMetadataAlone(t *testing.T) {
	for _, v := range []zarr.Version{zarr.V2, zarr.V3} {
		keys, stray := webStore(t, v)
		delete(keys, stray)
		want := maps.Clone(keys)
		for key := range keys {
			if strings.HasPrefix(key, "g/b/") && names.IsDocument(key) {
				delete(keys, key)
			}
		}
		db := openDB(t, nil)
		res := must.Get(db.Import(bg, openURL(t, web(t, keys)), ImportOptions{}))(t)
		dest := filepath.Join(t.TempDir(), "x.zarr")
		must.Get(Export(bg, openURL(t, web(t, keys)), dest, ExportOptions{}))(t)
		for _, got := range []map[string]string{contents(t, at(t, db, "")), exported(t, dest)} {
			for key, text := range want {
				if text, ok := got[key], sameDocument([]byte(got[key]), []byte(text)); !ok && (names.IsDocument(key) || text == "") {
					t.Errorf("%v: %s is %.200q", v, key, text)
				}
			}
		}
		array(t, at(t, db, ""), "g/b")
		if res.Nodes != 4 {
			t.Errorf("%v: %d nodes", v, res.Nodes)
		}
		// Of a store that can be listed, nodes of copies alone are nodes if they have keys.
		for key := range keys {
			if strings.HasPrefix(key, "a/") {
				delete(keys, key)
				delete(want, key)
			}
		}
		folder := filepath.Join(t.TempDir(), "in")
		for key, text := range keys {
			name := filepath.Join(folder, filepath.FromSlash(key))
			must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(text), 0o666)))
		}
		for _, url := range []string{memoryURL(t, keys), folder} {
			db := openDB(t, nil)
			res, err := db.Import(bg, openURL(t, url), ImportOptions{})
			if err != nil || res.Nodes != 3 {
				t.Fatalf("%v: %+v, %v", v, res, err)
			}
			dest := filepath.Join(t.TempDir(), "x.zarr")
			must.Get(Export(bg, openURL(t, url), dest, ExportOptions{}))(t)
			for _, got := range []map[string]string{contents(t, at(t, db, "")), exported(t, dest)} {
				if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
					t.Errorf("%v of %s: keys %q", v, url, slices.Sorted(maps.Keys(got)))
				}
				for key, text := range want {
					if !sameDocument([]byte(got[key]), []byte(text)) && (names.IsDocument(key) || got[key] != text) {
						t.Errorf("%v of %s: %s is %.200q", v, url, key, got[key])
					}
				}
			}
			var members []string
			src := openURL(t, url)
			for _, path := range []string{"", "g"} {
				for m, err := range src.Members(bg, path) {
					if err != nil || m.Node == nil {
						t.Fatalf("%v of %s: %v, %v", v, url, m, err)
					}
					members = append(members, m.Node.Path())
				}
			}
			if n, err := src.NodeAt(bg, "g/b"); err != nil || !n.Meta().Array || !slices.Equal(members, []string{"g", "g/b"}) {
				t.Errorf("%v of %s: members %q, %v", v, url, members, err)
			}
		}
	}
}

// checkUnreadable imports and exports a store with the arrays good and odd.
func checkUnreadable(t *testing.T, name string, keys map[string]string) {
	t.Helper()
	db := openDB(t, nil)
	res, err := db.Import(bg, openURL(t, memoryURL(t, keys)), ImportOptions{})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if len(res.Unreadable) != 1 || res.AllUnreadable != 1 || res.Nodes != 3 || !strings.HasPrefix(res.Unreadable[0].Error(), "open odd: ") {
		t.Errorf("%s: %+v", name, res)
	}
	s := at(t, db, "")
	sameContents(t, contents(t, s), keys)
	array(t, s, "good")
	var members []string
	for m, err := range s.Members(bg, "") {
		if _, _, ok := zarr.Unreadable(err); ok != (m.Name == "odd") {
			t.Errorf("%s: %s: %v", name, m.Name, err)
		}
		members = append(members, m.Name)
	}
	if !slices.Equal(members, []string{"good", "odd"}) {
		t.Errorf("%s: members %q", name, members)
	}
	dest := filepath.Join(t.TempDir(), "x.zarr")
	if _, err := Export(bg, openURL(t, memoryURL(t, keys)), dest, ExportOptions{}); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	sameContents(t, exported(t, dest), keys)
}
