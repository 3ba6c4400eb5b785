package engine

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
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
