package engine

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/engine/internal/listing"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// web serves keys below /in with a server that lists nothing.
func web(t *testing.T, keys map[string]string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, ok := keys[strings.TrimPrefix(r.URL.Path, "/in/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), strings.NewReader(v))
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/in"
}

// consolidate adds consolidated metadata to the root of a store.
func consolidate(t *testing.T, keys map[string]string) {
	t.Helper()
	nodes := map[string]*zarr.Meta{}
	var root *zarr.Meta
	for n, err := range zarr.Walk(bg, memOf(t, keys), "", nil) {
		must.Do(t, err)
		if nodes[n.Path()] = n.Meta(); n.Path() == "" {
			root = n.Meta().Clone()
		}
	}
	docs := map[string][]byte{}
	var err error
	if root.Version == zarr.V2 {
		docs[names.V2Metadata], err = meta.UpdateConsolidatedV2(nil, nil, nodes)
	} else {
		delete(nodes, "")
		must.Do(t, root.UpdateConsolidatedV3(nil, nil, nodes))
		docs, err = root.Print()
	}
	must.Do(t, err)
	for name, doc := range docs {
		keys[name] = string(doc)
	}
}

func memOf(t *testing.T, keys map[string]string) *kv.Mem {
	t.Helper()
	m := kv.NewMem()
	for k, v := range keys {
		must.Do(t, m.Set(bg, k, []byte(v)))
	}
	return m
}

// webStore is a store in either format with chunks that are missing, and one
// key that no metadata tells of.
func webStore(t *testing.T, version zarr.Version) (keys map[string]string, stray string) {
	t.Helper()
	view := kv.NewMem()
	o := &zarr.OpenOptions{Version: version}
	must.Get(zarr.CreateGroup(bg, view, "", zarr.Attributes{}, o))(t)
	for _, path := range []string{"a", "g/b"} {
		a := must.Get(zarr.Create(bg, view, path, zarr.Spec{Shape: []int64{40, 7}, Chunks: []int64{2, 3}, DataType: "int32"}, o))(t)
		src := make([]byte, 4*40*3)
		for i := range src {
			src[i] = byte(i)
		}
		must.Do(t, a.WriteBytes(bg, zarr.Sel(zarr.All(), zarr.Slice(2, 5, 1)), src))
	}
	keys = contents(t, view)
	for k := range keys {
		if strings.HasPrefix(k, "g/b/") && strings.Contains(k, "1") {
			delete(keys, k) // some chunks
		}
	}
	keys["g/readme.txt"] = "x"
	consolidate(t, keys)
	return keys, "g/readme.txt"
}

// TestFromWeb lists, imports and exports stores of a server that lists nothing.
func TestFromWeb(t *testing.T) {
	for _, version := range []zarr.Version{zarr.V2, zarr.V3} {
		keys, stray := webStore(t, version)
		url := web(t, keys)
		delete(keys, stray)

		var names []string
		src := openURL(t, url)
		for _, path := range []string{"", "g"} {
			for m, err := range src.Members(bg, path) {
				if err != nil || m.Node == nil {
					t.Fatalf("%v, %v", m, err)
				}
				names = append(names, m.Node.Path())
			}
		}
		if want := []string{"a", "g", "g/b"}; !slices.Equal(names, want) {
			t.Errorf("members %q, want %q", names, want)
		}

		dest := filepath.Join(t.TempDir(), "x.zarr")
		if res, err := Export(bg, src, dest, ExportOptions{}); err != nil || res.Keys != int64(len(keys)) {
			t.Fatalf("%+v, %v", res, err)
		}
		sameContents(t, exported(t, dest), keys)
		must.Get(Export(bg, src, dest+".zip", ExportOptions{}))(t)
		sameContents(t, exported(t, dest+".zip"), keys)

		db := openAt(t, filepath.Join(t.TempDir(), "t.zdb"), &Options{Create: true})
		must.Get(db.Import(bg, openURL(t, url), ImportOptions{}))(t)
		sameContents(t, contents(t, at(t, db, "")), keys)
		must.Get(db.Import(bg, openURL(t, url+"/g/b"), ImportOptions{To: "one"}))(t)
		for k, v := range contents(t, at(t, db, "")) {
			if rest, ok := strings.CutPrefix(k, "one/"); ok && keys["g/b/"+rest] != v {
				t.Errorf("%s differs", k)
			}
		}
		closeChecked(t, db)
	}
}

// TestNoListing asks for what nothing tells.
func TestNoListing(t *testing.T) {
	db := openDB(t, nil)
	import1 := func(url string) error {
		_, err := db.Import(bg, openURL(t, url), ImportOptions{})
		return err
	}
	const group = `{"zarr_format": 3, "node_type": "group"}`
	if err := import1(web(t, map[string]string{"zarr.json": group, "a/zarr.json": group})); !errors.Is(err, listing.ErrNone) {
		t.Errorf("no consolidated metadata: %v", err)
	}
	for m, err := range openURL(t, web(t, map[string]string{"zarr.json": group})).Members(bg, "") {
		if !errors.Is(err, listing.ErrNone) {
			t.Errorf("members without consolidated metadata: %v, %v", m, err)
		}
	}
	const huge = `{"zarr_format": 3, "node_type": "array", "shape": [4611686018427387904, 4611686018427387904], "data_type": "int8", "fill_value": 0,
		"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 1]}}, "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}]}`
	if err := import1(web(t, map[string]string{"zarr.json": huge})); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an array of 2^124 chunks: %v", err)
	}
}
