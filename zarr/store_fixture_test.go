package zarr

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// testdata/stores holds whole stores that other software wrote (expect.json
// names writer and version), a zip per area, with what reading them must give.
// They are copied from a folder of such stores by
//
//	ZARRDB_FIXTURES=folder go test ./zarr -run TestCollectStores

var storeAreas = []string{"v1", "v2", "v3", "early-v3", "corrupt"}

func TestCollectStores(t *testing.T) {
	root := os.Getenv("ZARRDB_FIXTURES")
	if root == "" {
		t.Skip("ZARRDB_FIXTURES is not set")
	}
	for _, area := range storeAreas {
		var out bytes.Buffer
		w := zip.NewWriter(&out)
		files := os.DirFS(filepath.Join(root, area))
		err := fs.WalkDir(files, ".", func(p string, d fs.DirEntry, err error) error {
			// What other programs read from a file beside the store is given by
			// its hash too.
			if err != nil || d.IsDir() || strings.HasSuffix(p, ".bin") && !strings.Contains(p, "/store/") {
				return err
			}
			b, err := fs.ReadFile(files, p)
			if err != nil {
				return err
			}
			f, err := w.CreateHeader(&zip.FileHeader{Name: p, Method: zip.Deflate})
			if err == nil {
				_, err = f.Write(b)
			}
			return err
		})
		if err == nil {
			err = w.Close()
		}
		if err == nil {
			err = os.WriteFile(filepath.Join("testdata", "stores", area+".zip"), out.Bytes(), 0o666)
		}
		must.Do(t, err)
	}
}

// storeCase is a store and its expected nodes.
type storeCase struct {
	name   string
	files  map[string][]byte // by path relative to the case
	Kind   string
	Store  string
	Nodes  []storeNode
	Stage  string
	Fail   string `json:"error"`
	Select string
	// Outcome is what reading something damaged must give: error, ok, either.
	Outcome   string
	Operation string
	Lenient   bool
	URL       string
	// Writer is who wrote the store, VerifiedBy who else read the same values.
	Writer     string
	VerifiedBy []string `json:"verified_by"`
	storeNode
}

type storeNode struct {
	Path       string
	NodeType   string `json:"node_type"`
	Shape      []int64
	Attributes json.RawMessage
	SHA        string `json:"sha256_c_order_le"`
	OtherSHA   string `json:"or_sha256_c_order_le"`
	NBytes     *int
	Values     []any `json:"values_c_order"`
	Undefined  [][2]int
}

func readZip(tb testing.TB, b []byte) map[string][]byte {
	tb.Helper()
	r := must.Get(zip.NewReader(bytes.NewReader(b), int64(len(b))))(tb)
	files := make(map[string][]byte)
	for _, f := range r.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		rc := must.Get(f.Open())(tb)
		files[f.Name] = must.Get(io.ReadAll(rc))(tb)
	}
	return files
}

func storeCases(tb testing.TB, area string) []*storeCase {
	tb.Helper()
	b := must.Get(os.ReadFile(filepath.Join("testdata", "stores", area+".zip")))(tb)
	files := readZip(tb, b)
	byCase := make(map[string]*storeCase)
	var list []*storeCase
	for name, text := range files {
		dir, ok := strings.CutSuffix(name, "/expect.json")
		if !ok {
			continue
		}
		c := &storeCase{name: area + "/" + dir, files: make(map[string][]byte)}
		if err := json.Unmarshal(text, c); err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
		byCase[dir] = c
		list = append(list, c)
	}
	for name, b := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if c := byCase[dir]; c != nil {
				c.files[name[len(dir)+1:]] = b
				break
			}
		}
	}
	slices.SortFunc(list, func(a, b *storeCase) int { return strings.Compare(a.name, b.name) })
	return list
}

// view returns the store of a case in memory.
func (c *storeCase) view(tb testing.TB) *kv.Mem {
	tb.Helper()
	files, prefix := c.files, c.Store+"/"
	if strings.HasSuffix(c.Store, ".zip") {
		files, prefix = readZip(tb, c.files[c.Store]), ""
	}
	m := kv.NewMem()
	for name, b := range files {
		if key, ok := strings.CutPrefix(name, prefix); ok {
			must.Do(tb, m.Set(context.Background(), key, b))
		}
	}
	return m
}

// TestStores reads every array of every store, and compares the values.
func TestStores(t *testing.T) {
	for _, area := range []string{"v1", "v2", "v3", "early-v3"} {
		arrays := 0
		for _, c := range storeCases(t, area) {
			if c.Kind != "array" && c.Kind != "hierarchy" {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				view := c.view(t)
				nodes := c.Nodes
				if c.Kind == "array" {
					nodes = []storeNode{c.storeNode}
				} else {
					checkWalk(t, view, nodes)
				}
				for _, n := range nodes {
					arrays += checkStoreNode(t, view, n)
				}
			})
		}
		t.Logf("%s: %d arrays", area, arrays)
	}
}

// checkStoreNode compares a node, and returns the number of arrays read.
func checkStoreNode(t *testing.T, view kv.Reader, want storeNode) int {
	t.Helper()
	ctx := context.Background()
	n := must.Get(Open(ctx, view, want.Path, nil))(t)
	if want.Attributes != nil && !sameAttributes(n.Attributes(), want.Attributes) {
		t.Errorf("%s: attributes %s, want %s", want.Path, must.Have(json.Marshal(n.Attributes())), want.Attributes)
	}
	a, ok := n.Array()
	if !ok {
		if want.NodeType != "group" {
			t.Errorf("%s is a group", want.Path)
		}
		return 0
	}
	if want.NodeType == "group" || !slices.Equal(a.Shape(), want.Shape) {
		t.Errorf("%s: an array of shape %v, want %v", want.Path, a.Shape(), want.Shape)
	}
	checkValues(t, a, want)
	return 1
}

func sameAttributes(got Attributes, want json.RawMessage) bool {
	strict, err := ParseAttributes(must.Have(got.MarshalJSON()))
	w, werr := ParseAttributes(want)
	return err == nil && werr == nil && strict.Equal(w)
}

// checkValues reads a whole array and compares it.
func checkValues(t *testing.T, a *Array, want storeNode) {
	t.Helper()
	ctx := context.Background()
	if a.Type().Variable() {
		v := must.Get(a.ReadVar(ctx, Sel()))(t)
		got := []any{}
		for i := range v.Len() {
			got = append(got, jsonValue(t, a.Type(), v.At(i)))
		}
		if !reflect.DeepEqual(got, want.Values) {
			t.Errorf("%s: values %v, want %v", want.Path, got, want.Values)
		}
		return
	}
	n, ok := elements(a.Shape())
	if !ok {
		t.Fatal("too many elements")
	}
	got := make([]byte, n*int64(a.Type().Size()))
	must.Do(t, a.ReadBytes(ctx, Sel(), got))
	if want.NBytes != nil && len(got) != *want.NBytes {
		t.Errorf("%s: %d bytes, want %d", want.Path, len(got), *want.NBytes)
	}
	if want.Undefined != nil {
		return
	}
	h := sha256.Sum256(got)
	if s := hex.EncodeToString(h[:]); s != want.SHA && s != want.OtherSHA {
		t.Errorf("%s: wrong values: %x", want.Path, got[:min(len(got), 64)])
	}
}

func jsonValue(t *testing.T, typ dtype.Type, elem []byte) (v any) {
	t.Helper()
	text := must.Get(typ.AppendJSON(nil, elem))(t)
	must.Do(t, json.Unmarshal(text, &v))
	return v
}

// checkWalk compares the nodes of a hierarchy, by listing and by consolidated
// metadata where there is some.
func checkWalk(t *testing.T, view kv.Reader, nodes []storeNode) {
	t.Helper()
	want := make(map[string]bool)
	for _, n := range nodes {
		want[strings.Trim(n.Path, "/")] = n.NodeType == "array"
	}
	for _, consolidated := range []bool{false, true} {
		got := make(map[string]bool)
		last := ""
		for n, err := range Walk(context.Background(), view, "", &OpenOptions{Consolidated: consolidated}) {
			must.Do(t, err)
			_, got[n.Path()] = n.Array()
			if strings.ReplaceAll(n.Path(), "/", "\x00") < last {
				t.Errorf("%q after %q", n.Path(), last)
			}
			last = strings.ReplaceAll(n.Path(), "/", "\x00")
		}
		if _, ok := want[""]; !ok {
			delete(got, "") // the root of a draft store exists without saying so
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("consolidated %v: nodes %v, want %v", consolidated, got, want)
		}
	}
}

// TestStoresRefused opens or reads stores that break the specification.
func TestStoresRefused(t *testing.T) {
	ctx := context.Background()
	for _, area := range []string{"v1", "v2", "v3"} {
		n := 0
		for _, c := range storeCases(t, area) {
			if c.Kind != "invalid" || c.Operation != "" && c.Path == "" {
				continue // a path has no way to spell a child without a name
			}
			n++
			t.Run(c.name, func(t *testing.T) {
				view := c.view(t)
				var err error
				if strings.HasPrefix(c.Operation, "create") {
					_, err = CreateGroup(ctx, view, c.Path, Attributes{}, &OpenOptions{Version: V3, Overwrite: true})
				} else {
					err = readAll(ctx, view, c.Path, nil)
				}
				var e *Error
				if err == nil && !c.Lenient || err != nil && !errors.As(err, &e) {
					t.Errorf("%s: error %v", c.Fail, err)
				}
			})
		}
		if n == 0 {
			t.Errorf("%s: no cases", area)
		}
	}
}

// readAll opens a node and reads all of it if it is an array.
func readAll(ctx context.Context, view kv.Reader, path string, check func([]byte)) error {
	n, err := Open(ctx, view, path, nil)
	if err != nil {
		return err
	}
	a, ok := n.Array()
	if !ok {
		return nil
	}
	if a.Type().Variable() {
		_, err := a.ReadVar(ctx, Sel())
		return err
	}
	total, ok := elements(a.Shape())
	if size := int64(a.Type().Size()); !ok || total > 256<<20/size {
		return &Error{Op: "read", Path: path, Err: ErrTooLarge}
	}
	got := make([]byte, total*int64(a.Type().Size()))
	if err := a.ReadBytes(ctx, Sel(), got); err != nil {
		return err
	}
	if check != nil {
		check(got)
	}
	return nil
}

// TestStoresDamaged reads stores whose bytes are damaged or hostile.
func TestStoresDamaged(t *testing.T) {
	ctx := context.Background()
	for _, c := range storeCases(t, "corrupt") {
		if c.Store == "" || c.URL != "" || strings.HasSuffix(c.Store, ".zip") {
			continue // reached in other ways than as a plain store
		}
		t.Run(c.name, func(t *testing.T) {
			view := c.view(t)
			err := readAll(ctx, view, c.Path, func(got []byte) {
				h := sha256.Sum256(got)
				if s := hex.EncodeToString(h[:]); c.Select == "" && c.SHA != "" && s != c.SHA {
					t.Errorf("wrong values")
				}
			})
			if (err == nil) != (c.Outcome == "ok") && c.Outcome != "either" {
				t.Errorf("%s: outcome %s, error %v", c.Fail, c.Outcome, err)
			}
			if err != nil && !slices.ContainsFunc([]error{ErrTooLarge, ErrCorrupt, ErrMetadata}, func(is error) bool { return errors.Is(err, is) }) {
				t.Errorf("error of another kind: %v", err)
			}
			if c.Select == "" {
				return
			}
			a := must.Get(OpenArray(ctx, view, c.Path, nil))(t)
			sel := must.Have(ParseSelection(c.Select, nil))
			got := make([]byte, a.Type().Size())
			must.Do(t, a.ReadBytes(ctx, sel, got))
			if h := sha256.Sum256(got); hex.EncodeToString(h[:]) != c.SHA {
				t.Errorf("element %s is %x", c.Select, got)
			}
		})
	}
}
