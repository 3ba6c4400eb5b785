package engine

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
)

// nestedStore is what NestedDirectoryStore of zarr-python 2.7 wrote: chunks under keys with
// slashes, and no dimension_separator. Of array "late" the chunk at the origin is missing,
// "line" and "none" are the same either way, and "flat" was written by DirectoryStore.
func nestedStore(consolidated bool) map[string]string {
	doc := func(shape, chunks, more string) string {
		return `{"chunks":` + chunks + `,"compressor":null,"dtype":"|u1","fill_value":9,"filters":null,"order":"C","shape":` + shape + more + `,"zarr_format":2}`
	}
	plane := doc("[2,4]", "[1,2]", "")
	keys := map[string]string{
		".zgroup": `{"zarr_format":2}`, "g/.zgroup": `{"zarr_format":2}`,
		"a/.zarray": plane, "a/0/0": "\x00\x01", "a/0/1": "\x02\x03", "a/1/0": "\x04\x05", "a/1/1": "\x06\x07",
		"g/late/.zarray": plane, "g/late/.zattrs": `{"units":"m"}`, "g/late/1/1": "\x06\x07",
		"flat/.zarray": plane, "flat/0.0": "\x00\x01", "flat/1.1": "\x06\x07",
		"said/.zarray": doc("[2,4]", "[1,2]", `,"dimension_separator":"/"`), "said/0/0": "\x00\x01",
		"line/.zarray": doc("[4]", "[2]", ""), "line/0": "\x00\x01",
		"none/.zarray": plane,
	}
	if consolidated {
		docs := map[string]json.RawMessage{}
		for k, v := range keys {
			if strings.HasPrefix(filepath.Base(k), ".z") {
				docs[k] = json.RawMessage(v)
			}
		}
		b, _ := json.Marshal(map[string]any{"metadata": docs, "zarr_consolidated_format": 1})
		keys[".zmetadata"] = string(b)
	}
	return keys
}

var nestedValues = map[string]string{
	"a": "\x00\x01\x02\x03\x04\x05\x06\x07", "g/late": "\x09\x09\x09\x09\x09\x09\x06\x07", "flat": "\x00\x01\x09\x09\x09\x09\x06\x07",
	"said": "\x00\x01\x09\x09\x09\x09\x09\x09", "line": "\x00\x01\x09\x09", "none": strings.Repeat("\x09", 8),
}

// checkNested reads the arrays that find returns. find returns nil for an array to leave out.
func checkNested(t *testing.T, what string, find func(path string) *zarr.Array) {
	t.Helper()
	for path, want := range nestedValues {
		a := find(path)
		if a == nil {
			continue
		}
		got := make([]byte, len(want))
		if err := a.ReadBytes(bg, zarr.Sel(), got); err != nil || string(got) != want {
			t.Errorf("%s: %s is %v, want %v (%v)", what, path, got, []byte(want), err)
		}
	}
}

func arrayOf(t *testing.T, src *Source) func(path string) *zarr.Array {
	return func(path string) *zarr.Array {
		n := must.Get(src.NodeAt(bg, path))(t)
		a, _ := n.Array()
		return a
	}
}

// Stores with nested chunk keys that their documents do not name are read, imported, linked
// and exported with their values.
func TestNestedChunks(t *testing.T) {
	for _, consolidated := range []bool{false, true} {
		keys := nestedStore(consolidated)
		dir := t.TempDir()
		refs := map[string]any{}
		for k, v := range keys {
			name := filepath.Join(dir, filepath.FromSlash(k))
			must.Do(t, os.MkdirAll(filepath.Dir(name), 0o777))
			must.Do(t, os.WriteFile(name, []byte(v), 0o666))
			if refs[k] = v; !strings.HasPrefix(filepath.Base(k), ".z") {
				refs[k] = []any{filepath.ToSlash(name), 0, len(v)}
			}
		}
		set := must.Get(json.Marshal(map[string]any{"version": 1, "refs": refs}))(t)
		json := filepath.Join(t.TempDir(), "set.json")
		must.Do(t, os.WriteFile(json, set, 0o666))
		zip := filepath.Join(t.TempDir(), "s.zip")
		must.Do(t, os.WriteFile(zip, []byte(zipped(t, keys)), 0o666))
		follow := Follow{Allow: []string{filepath.ToSlash(dir)}}
		for _, url := range []string{dir, zip, json} {
			src := openFollow(t, url, follow)
			checkNested(t, url, arrayOf(t, src))
			db := openDB(t, nil)
			must.Get(db.Import(bg, src, ImportOptions{To: "x"}))(t)
			checkNested(t, url+" imported", func(path string) *zarr.Array {
				a := must.Get(at(t, db, "").Array(bg, "x/"+path))(t)
				return a
			})
			out := t.TempDir() + "/out.zarr"
			must.Get(Export(bg, src, out, ExportOptions{}))(t)
			checkNested(t, url+" exported", arrayOf(t, openURL(t, out)))
			for _, doc := range []string{"a/.zarray", ".zmetadata"} {
				b, err := os.ReadFile(filepath.Join(out, doc))
				if err != nil && (consolidated || doc != ".zmetadata") || err == nil && !strings.Contains(strings.ReplaceAll(string(b), " ", ""), `"dimension_separator":"/"`) {
					t.Errorf("%s of the export: %s, %v", doc, b, err)
				}
			}
		}
		db := openDB(t, linkOptions(t, t.TempDir()))
		linkSet(t, db, json, follow, ImportOptions{})
		checkNested(t, "linked", func(path string) *zarr.Array {
			a := must.Get(at(t, db, "").Array(bg, path))(t)
			return a
		})
	}
}

// A server that lists nothing is asked for two chunks of each array whose document has no
// separator, once. An array whose chunk at the origin is missing cannot be told there.
func TestNestedChunksOfServer(t *testing.T) {
	keys := nestedStore(true)
	var probes atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, ok := keys[strings.TrimPrefix(r.URL.Path, "/")]
		if r.Method == http.MethodHead {
			probes.Add(1)
		}
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(v)))
		if r.Method != http.MethodHead {
			fmt.Fprint(w, v)
		}
	}))
	defer srv.Close()
	src := openURL(t, srv.URL+"/|zarr2:")
	find := arrayOf(t, src)
	known := func(path string) *zarr.Array {
		if path == "g/late" {
			return nil
		}
		return find(path)
	}
	checkNested(t, "server", known)
	if n := probes.Load(); n > 2*3 { // a, flat, none
		t.Errorf("%d requests for chunks", n)
	}
	find("a")
	find("flat")
	if n := probes.Swap(0); n > 2*3 {
		t.Errorf("%d requests for chunks after arrays were opened again", n)
	}
	db := openDB(t, nil)
	must.Get(db.Import(bg, src, ImportOptions{}))(t)
	checkNested(t, "server, imported", func(path string) *zarr.Array {
		a, err := at(t, db, "").Array(bg, path)
		if err != nil || path == "g/late" {
			return nil
		}
		return a
	})
}
