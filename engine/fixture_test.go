package engine

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
)

// fixture is a store that other software wrote, with what reading it must give.
// The archives belong to package zarr; testdata/stores there says who wrote them.
type fixture struct {
	name  string
	store map[string]string // keys
	Kind  string
	Store string
	Error string
	Stage string
	Nodes []fixtureNode
	fixtureNode

	Lenient   bool
	Operation string
}

type fixtureNode struct {
	Path     string
	NodeType string `json:"node_type"`
	Shape    []int64
	SHA      string `json:"sha256_c_order_le"`
	OtherSHA string `json:"or_sha256_c_order_le"`
}

// fixtures reads the stores of an area: v1, v2, v3, early-v3 or corrupt.
func fixtures(t testing.TB, area string) (list []*fixture) {
	t.Helper()
	files := unzipped(t, filepath.Join("..", "zarr", "testdata", "stores", area+".zip"))
	byDir := map[string]*fixture{}
	for name, text := range files {
		where, ok := strings.CutSuffix(name, "/expect.json")
		if !ok {
			continue
		}
		f := &fixture{name: area + "/" + where, store: map[string]string{}}
		if err := json.Unmarshal([]byte(text), f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		byDir[where] = f
		list = append(list, f)
	}
	for name, b := range files {
		for where := path.Dir(name); where != "."; where = path.Dir(where) {
			if f := byDir[where]; f != nil {
				if key, ok := strings.CutPrefix(name[len(where)+1:], f.Store+"/"); ok {
					f.store[key] = b
				}
				break
			}
		}
	}
	slices.SortFunc(list, func(a, b *fixture) int { return strings.Compare(a.name, b.name) })
	return slices.DeleteFunc(list, func(f *fixture) bool { return strings.HasSuffix(f.Store, ".zip") })
}

// arrays lists the arrays of a store.
func (f *fixture) arrays() (list []fixtureNode) {
	if f.Kind == "array" {
		return []fixtureNode{f.fixtureNode}
	}
	for _, n := range f.Nodes {
		if n.NodeType == "array" {
			list = append(list, n)
		}
	}
	return list
}

func unzipped(t testing.TB, name string) map[string]string {
	t.Helper()
	r := must.Get(zip.OpenReader(name))(t)
	defer r.Close()
	files := map[string]string{}
	for _, f := range r.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		in := must.Get(f.Open())(t)
		b := must.Get(io.ReadAll(in))(t)
		files[f.Name] = string(b)
	}
	return files
}

// zipped makes an archive of keys.
func zipped(t testing.TB, keys map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		f := must.Get(w.Create(key))(t)
		must.Get(io.WriteString(f, keys[key]))(t)
	}
	must.Do(t, w.Close())
	return out.String()
}

// sumOf is the hash of all elements of an array, "" if they have no fixed size.
func sumOf(t testing.TB, a *zarr.Array) string {
	t.Helper()
	if a.Type().Variable() {
		must.Get(a.ReadVar(bg, zarr.Sel()))(t)
		return ""
	}
	size := int64(a.Type().Size())
	for _, n := range a.Shape() {
		size *= n
	}
	b := make([]byte, size)
	must.Do(t, a.ReadBytes(bg, zarr.Sel(), b))
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
