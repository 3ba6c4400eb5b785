package engine

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

var (
	bg          = context.Background()
	memoryCount atomic.Int64
)

// ticking is a clock that moves a second each time that it is asked.
func ticking() func() time.Time {
	var asked atomic.Int64
	return func() time.Time {
		return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(asked.Add(1)) * time.Second)
	}
}

// memOptions are those of a small database in memory.
func memOptions() *Options {
	return &Options{FS: vfs.NewMem(), Author: "tester", Now: ticking(), CacheBytes: 4 << 20, PageCacheBytes: 4 << 20, Create: true}
}

// openDB opens a database, in memory unless options say otherwise. When the
// test ends every page and payload in it is verified.
func openDB(t testing.TB, o *Options) *DB {
	t.Helper()
	dir := "db"
	if o == nil {
		o = memOptions()
	} else if o.FS == nil {
		dir = t.TempDir() + "/t.zdb"
	}
	return openAt(t, dir, o)
}

func openAt(t testing.TB, dir string, o *Options) *DB {
	t.Helper()
	db := must.Get(Open(bg, dir, o))(t)
	t.Cleanup(func() { closeChecked(t, db) })
	return db
}

// closeChecked verifies a database and closes it.
func closeChecked(t testing.TB, db *DB) {
	t.Helper()
	r, err := db.Check(bg, txn.CheckOptions{Payloads: true})
	switch {
	case errors.Is(err, ErrClosed):
		return
	case err != nil:
		t.Errorf("check: %v", err)
	default:
		for _, p := range r.Problems {
			t.Errorf("check: %v", p)
		}
	}
	if err := db.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// commit runs fn in a session and returns the commit.
func commit(t testing.TB, db *DB, branch, message string, fn func(*Session) error) txn.CommitID {
	t.Helper()
	if _, err := db.Update(bg, branch, message, fn); err != nil {
		t.Fatalf("%s: %v", message, err)
	}
	return head(t, db, branch)
}

func head(t testing.TB, db *DB, branch string) txn.CommitID {
	t.Helper()
	if branch == "" {
		branch = txn.MainBranch
	}
	id := must.Get(db.Head(bg, branch))(t)
	return id
}

// at opens a version until the test ends.
func at(t testing.TB, db *DB, rev string) *Snapshot {
	t.Helper()
	s := must.Get(db.At(bg, rev))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// hierarchy is a Snapshot, a Session or a Source seen as arrays.
type hierarchy interface {
	Array(ctx context.Context, path string) (*zarr.Array, error)
}

func array(t testing.TB, h hierarchy, path string) *zarr.Array {
	t.Helper()
	a := must.Get(h.Array(bg, path))(t)
	return a
}

// ints reads a whole array of int32.
func ints(t testing.TB, h hierarchy, path string) []int32 {
	t.Helper()
	v, _, err := zarr.Read[int32](bg, array(t, h, path), zarr.Sel())
	must.Do(t, err)
	return v
}

func wantInts(t testing.TB, h hierarchy, path string, want ...int32) {
	t.Helper()
	if got := ints(t, h, path); !slices.Equal(got, want) {
		t.Errorf("/%s holds %v, want %v", path, got, want)
	}
}

// line is an array of n int32 in chunks of c.
func line(n, c int64) zarr.Spec {
	return zarr.Spec{Shape: []int64{n}, Chunks: []int64{c}, DataType: "int32"}
}

// create makes an array and fills it with 0, 1, 2, …
func create(s *Session, path string, spec zarr.Spec) error {
	a, err := s.CreateArray(bg, path, spec)
	if err != nil {
		return err
	}
	n := int64(1)
	for _, d := range spec.Shape {
		n *= d
	}
	data := make([]int32, n)
	for i := range data {
		data[i] = int32(i)
	}
	return zarr.Write(bg, a, zarr.Sel(), data)
}

// put writes values into an array from an index on.
func put(s *Session, path string, from int64, values ...int32) error {
	a, err := s.Array(bg, path)
	if err != nil {
		return err
	}
	return zarr.Write(bg, a, zarr.Sel(zarr.Slice(from, from+int64(len(values)), 1)), values)
}

// contents reads everything that a view lists.
func contents(t testing.TB, v kv.ReadLister) map[string]string {
	t.Helper()
	got := map[string]string{}
	for k, err := range v.List(bg, kv.ListOptions{}) {
		must.Do(t, err)
		b, err := kv.Get(bg, v, k)
		if err != nil {
			t.Fatalf("get %s: %v", k, err)
		}
		got[k] = string(b)
	}
	return got
}

// sameContents compares keys and bytes.
func sameContents(t testing.TB, got, want map[string]string) {
	t.Helper()
	if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(g, w) {
		t.Errorf("keys %v\nwant %v", clipped(g), clipped(w))
	}
	for k, b := range want {
		if g, ok := got[k]; ok && g != b {
			t.Errorf("%s has %d bytes, other than the %d that are due", k, len(g), len(b))
		}
	}
}

func clipped(list []string) string {
	s := strings.Join(list, " ")
	return s[:min(len(s), 600)]
}

// attributes makes attributes of pairs of a name and a value.
func attributes(t testing.TB, pairs ...any) (attrs zarr.Attributes) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		must.Do(t, attrs.Set(pairs[i].(string), pairs[i+1]))
	}
	return attrs
}

// setAttr sets one attribute of a node.
func setAttr(s *Session, path, name string, value any) error {
	n, err := s.Node(bg, path)
	if err != nil {
		return err
	}
	attrs := n.Meta().Clone().Attributes
	if err := attrs.Set(name, value); err != nil {
		return err
	}
	return n.SetAttributes(bg, attrs)
}

// attrsOf prints the attributes of a node as JSON.
func attrsOf(t testing.TB, n interface {
	Node(context.Context, string) (*zarr.Node, error)
}, path string) string {
	t.Helper()
	node := must.Get(n.Node(bg, path))(t)
	b := must.Get(json.Marshal(node.Attributes()))(t)
	return string(b)
}

// newMemory makes a memory: store that no other test has, nor another run of this
// one, and returns its URL.
func newMemory(t testing.TB) (m *kv.Mem, url string) {
	name := strings.NewReplacer("/", "-", "#", "-").Replace(fmt.Sprintf("%s-%d", t.Name(), memoryCount.Add(1)))
	return Memory(name), "memory:" + name + "/"
}

// memoryURL fills a memory: store of its own and returns its URL.
func memoryURL(t testing.TB, keys map[string]string) string {
	t.Helper()
	m, url := newMemory(t)
	for k, v := range keys {
		must.Do(t, m.Set(bg, k, []byte(v)))
	}
	return url
}

// openURL opens a source until the test ends.
func openURL(t testing.TB, url string) *Source {
	t.Helper()
	s := must.Get(OpenSource(bg, url, nil))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func arrayV3(changes ...string) string {
	doc := `{"zarr_format":3,"node_type":"array","shape":[10,10],"data_type":"int32",` +
		`"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4,5]}},` +
		`"chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}},` +
		`"fill_value":0,"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"attributes":{"a":1,"b":2}}`
	return replaced(doc, changes...)
}

func arrayV2(changes ...string) string {
	doc := `{"zarr_format":2,"shape":[10,10],"chunks":[4,5],"dtype":"<i4","compressor":{"id":"zlib","level":1},` +
		`"fill_value":0,"order":"C","filters":null}`
	return replaced(doc, changes...)
}

// replaced replaces pairs of old and new text, each of which must be there.
func replaced(s string, changes ...string) string {
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(s, changes[i]) {
			panic("no " + changes[i])
		}
		s = strings.ReplaceAll(s, changes[i], changes[i+1])
	}
	return s
}

// sameDocument reports whether two JSON texts hold the same values.
func sameDocument(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	must.Get(w.Write(b))(t)
	must.Do(t, w.Close())
	return out.Bytes()
}
