package engine

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
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
		if len(res.Unknown) != c.unknown {
			t.Errorf("%s: %d arrays are unknown, want %d: %v", name, len(res.Unknown), c.unknown, res.Unknown)
		}
		for _, err := range res.Unknown {
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
	docs, err := meta.ConsolidatedDocuments([]byte(copied))
	if err != nil {
		t.Fatal(err)
	}
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
