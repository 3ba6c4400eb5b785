package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// Relative URLs of parquet sets are found beside the set, in it, or from the folder
// of each array as GDAL looks for them; the choice is a warning.
func TestParquetRelativeTo(t *testing.T) {
	for _, c := range []struct{ url, file, told string }{
		{"data.bin", "data.bin", ""},
		{"sub/data.bin", "sub/data.bin", ""},
		{"data.bin", "set.parq/data.bin", "set.parq/data.bin"},
		{"data.bin", "set.parq/t/data.bin", "set.parq/t/data.bin"},
		{"../../data.bin", "data.bin", "/data.bin"},
		{"missing.bin", "", ""},
	} {
		for _, link := range []bool{false, true} {
			t.Run(fmt.Sprint(c.url, " ", c.file, " ", link), func(t *testing.T) {
				folder := t.TempDir()
				json := filepath.Join(folder, "set.json")
				set := setOf(2, fmt.Sprintf(`,"t/0":[%q,0,1],"t/1":[%q,1,1]`, c.url, c.url))
				must.Do(t, os.WriteFile(json, []byte(set), 0o666))
				parq := toParquet(t, json)
				if c.file != "" {
					at := filepath.Join(folder, c.file)
					must.Do(t, os.MkdirAll(filepath.Dir(at), 0o777))
					must.Do(t, os.WriteFile(at, []byte{7, 8}, 0o666))
				}
				var told []string
				src, err := OpenSource(bg, parq+"|kerchunk:", &SourceOptions{Warn: func(text string) { told = append(told, text) }})
				must.Do(t, err)
				defer src.Close()
				var view nodes
				if link {
					db := openDB(t, linkOptions(t, t.TempDir()))
					_, err = db.Import(bg, src, ImportOptions{Link: true, Message: "m"})
					if (err == nil) != (c.file != "") {
						t.Fatalf("link: %v", err)
					}
					if err != nil {
						return
					}
					view = at(t, db, "").nodes
				} else {
					store := must.Get(src.Store())(t)
					view = nodes{view: store}
				}
				got, err := values(t, view)
				if c.file == "" {
					if err == nil {
						t.Error("a missing file is read")
					}
					return
				}
				if err != nil || string(got) != "\x07\x08" {
					t.Fatalf("%v, %v", got, err)
				}
				if text := strings.Join(told, "\n"); (text == "") != (c.told == "") || !strings.HasSuffix(text, c.told) || len(told) > 1 {
					t.Errorf("told %q", text)
				}
			})
		}
	}
}

// A node that is named inside a set is linked by itself.
func TestLinkNodeOfSet(t *testing.T) {
	base := folder(t, map[string]string{"data.bin": "\x07\x08", "set.json": setOf(2, `,"t/0":["data.bin",0,1],"t/1":["data.bin",1,1]`)})
	for _, path := range []string{"|kerchunk:|zarr2:t", "|kerchunk:t/|zarr2:", "|kerchunk:t"} {
		db := openDB(t, linkOptions(t, t.TempDir()))
		if _, err := db.Import(bg, openFollow(t, base+"/set.json"+path, Follow{}), ImportOptions{Link: true, To: "t", Message: "m"}); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if got, err := values(t, at(t, db, "").nodes); err != nil || string(got) != "\x07\x08" {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
}
