package engine

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// What others wrote, in every format, is converted to v2 and v3 and holds the
// same elements there, or is refused and leaves nothing behind.
func TestConvertFixtures(t *testing.T) {
	seen, step := map[string]int{}, 3
	if testing.Short() {
		step = 12
	}
	for _, area := range []string{"v1", "v2", "v3", "early-v3"} {
		for i, f := range fixtures(t, area) {
			if f.Kind != "array" && f.Kind != "hierarchy" || i%step != 0 {
				continue
			}
			for _, to := range []zarr.Version{zarr.V2, zarr.V3} {
				t.Run(f.name+"-to-v"+to.String(), func(t *testing.T) { seen[convertFixture(t, f, to)]++ })
			}
		}
	}
	t.Logf("%v", seen)
	if seen["plain"] < 10*seen["refused"] || seen["plain"]*seen["recoded"] == 0 {
		t.Errorf("hardly anything was converted: %v", seen)
	}
}

func convertFixture(t *testing.T, f *fixture, to zarr.Version) string {
	src := openURL(t, memoryURL(t, f.store))
	dest := filepath.Join(t.TempDir(), "out.zip")
	how := "plain"
	_, err := Export(bg, src, dest, ExportOptions{Format: to})
	if errors.Is(err, ErrConvert) {
		how = "recoded"
		nothingAt(t, dest)
		_, err = Export(bg, src, dest, ExportOptions{Format: to, Recode: true})
	}
	if errors.Is(err, ErrConvert) {
		nothingAt(t, dest)
		return "refused"
	}
	must.Do(t, err)
	got := openURL(t, dest)
	at := must.Get(got.dataset(bg))(t)
	from := must.Get(src.dataset(bg))(t)
	for _, n := range f.arrays() {
		was := must.Get(zarr.OpenArray(bg, from.View, names.Clean(n.Path), nil))(t)
		a := must.Get(zarr.OpenArray(bg, at.View, names.Clean(n.Path), &zarr.OpenOptions{Version: to}))(t)
		if a, b := elements(t, a), elements(t, was); a != b {
			t.Errorf("%s: other elements: %.80q, want %.80q", n.Path, a, b)
		}
		for d, name := range was.DimensionNames() {
			if a.DimensionNames()[d] != name {
				t.Errorf("%s: dimension %d is called %q, was %q", n.Path, d, a.DimensionNames()[d], name)
			}
		}
	}
	return how
}

func nothingAt(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); err == nil {
		t.Errorf("%s is there after an error", path)
	}
}

// elements are all elements of an array, as bytes or as lines of JSON.
func elements(t *testing.T, a *zarr.Array) string {
	t.Helper()
	if !a.Type().Variable() {
		return sumOf(t, a)
	}
	v := must.Get(a.ReadVar(bg, zarr.Sel()))(t)
	var text []byte
	for i := range v.Len() {
		text = must.Get(a.Type().AppendJSON(text, v.At(i)))(t)
		text = append(text, '\n')
	}
	return string(text)
}

// A hierarchy with everything that names and attributes can say.
var convertible = map[string]string{
	".zgroup": `{"zarr_format":2}`,
	".zattrs": `{"title":"t","rating":NaN}`,
	".zmetadata": `{"zarr_consolidated_format":1,"metadata":{".zgroup":{"zarr_format":2},"g/.zgroup":{"zarr_format":2},` +
		`"g/a/.zarray":{"zarr_format":2,"shape":[3,2],"chunks":[2,2],"dtype":">i2","compressor":null,"filters":null,"order":"F","fill_value":-1},` +
		`"g/a/.zattrs":{"_ARRAY_DIMENSIONS":["y","x"],"units":"K"}}}`,
	"g/.zgroup":   `{"zarr_format":2}`,
	"g/a/.zarray": `{"zarr_format":2,"shape":[3,2],"chunks":[2,2],"dtype":">i2","compressor":null,"filters":null,"order":"F","fill_value":-1}`,
	"g/a/.zattrs": `{"_ARRAY_DIMENSIONS":["y","x"],"units":"K"}`,
	"g/a/0.0":     "\x00\x01\x00\x03\x00\x02\x00\x04",
	"notes/x":     "no part of an array",
}

func TestConvertThereAndBack(t *testing.T) {
	folder := t.TempDir()
	three, two := filepath.Join(folder, "three"), filepath.Join(folder, "two.zip")
	must.Get(Export(bg, openURL(t, memoryURL(t, convertible)), three, ExportOptions{Format: zarr.V3}))(t)
	got := exported(t, three)
	var keys []string
	for k := range got {
		keys = append(keys, k)
	}
	if want := "g/a/c/0/0 g/a/zarr.json g/zarr.json zarr.json"; len(keys) != 4 || got["g/a/c/0/0"] != convertible["g/a/0.0"] {
		t.Fatalf("keys %q, want %s", keys, want)
	}
	m := must.Get(meta.ParseV3([]byte(got["g/a/zarr.json"]), builtin.Registry()))(t)
	if m.DimensionNames == nil || *m.DimensionNames[0] != "y" {
		t.Errorf("dimension names %v", m.DimensionNames)
	}
	if v, _ := m.Attributes.Get("_FillValue"); string(v) != "-1" {
		t.Errorf("attributes %v: v2's fill value is xarray's mark of a missing value", m.Attributes)
	}
	if root, err := meta.ParseV3([]byte(got["zarr.json"]), builtin.Registry()); err != nil || len(root.Consolidated) != 2 {
		t.Errorf("consolidated metadata %v, %v", root.Consolidated, err)
	}

	must.Get(Export(bg, openURL(t, three), two, ExportOptions{Format: zarr.V2}))(t)
	back := exported(t, two)
	for _, key := range []string{"g/a/0.0", "g/a/.zarray", "g/a/.zattrs", ".zgroup"} {
		if !sameMeaning(back[key], convertible[key]) {
			t.Errorf("%s: %s, was %s", key, back[key], convertible[key])
		}
	}
	if nodes, _, err := meta.ParseConsolidatedV2([]byte(back[".zmetadata"]), builtin.Registry()); err != nil || len(nodes) != 3 {
		t.Errorf(".zmetadata: %v, %v", nodes, err)
	}
	again := filepath.Join(folder, "again.zip")
	must.Get(Export(bg, openURL(t, three), again, ExportOptions{Format: zarr.V2}))(t)
	a, _ := os.ReadFile(two)
	if b, _ := os.ReadFile(again); string(a) != string(b) || len(a) == 0 {
		t.Error("two conversions of one store differ")
	}
}

func sameMeaning(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return a == b
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

func v3Array(name, codecs string) string {
	return `{"zarr_format":3,"node_type":"array","shape":[4],"data_type":"` + name + `","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4]}},` +
		`"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":` + codecs + `,"attributes":{}}`
}

// Every refusal names node and member, and nothing is written.
func TestConvertRefuses(t *testing.T) {
	group := `{"zarr_format":3,"node_type":"group"}`
	shard := `[{"name":"sharding_indexed","configuration":{"chunk_shape":[2],"codecs":[{"name":"bytes"},{"name":"gzip","configuration":{"level":1}}],` +
		`"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}]`
	for _, c := range []struct {
		name  string
		keys  map[string]string
		to    zarr.Version
		wants []string
	}{
		{"shards", map[string]string{"zarr.json": group, "a/zarr.json": v3Array("uint8", shard)}, zarr.V2, []string{"/a:", "codecs[0]", "sharding_indexed", "anew"}},
		{"two", map[string]string{"zarr.json": group, "a/zarr.json": v3Array("uint8", shard), "b/zarr.json": v3Array("uint8", shard)}, zarr.V2, []string{"/a:", "and 1 more"}},
		{"name", map[string]string{".zgroup": `{"zarr_format":2}`, "zarr.json/.zgroup": `{"zarr_format":2}`}, zarr.V3, []string{"/zarr.json:", "name"}},
		{"filter", map[string]string{".zarray": `{"zarr_format":2,"shape":[4],"chunks":[4],"dtype":">i4","compressor":null,"order":"C","fill_value":0,` +
			`"filters":[{"id":"delta","dtype":">i4"}]}`}, zarr.V3, []string{"filters[0].dtype", "anew"}},
	} {
		dest := filepath.Join(t.TempDir(), "out")
		_, err := Export(bg, openURL(t, memoryURL(t, c.keys)), dest, ExportOptions{Format: c.to})
		if !errors.Is(err, ErrConvert) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		nothingAt(t, dest)
		for _, want := range c.wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", c.name, err, want)
			}
		}
	}
	_, err := Export(bg, openURL(t, memoryURL(t, convertible)), t.TempDir(), ExportOptions{Format: zarr.V3, Resume: true})
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("resumed: %v", err)
	}
	_, err = Export(bg, openURL(t, memoryURL(t, convertible)), filepath.Join(t.TempDir(), "x"), ExportOptions{Format: zarr.V1})
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("to v1: %v", err)
	}
}

// Encoding anew keeps the compressor, and only stored chunks cost anything.
func TestConvertRecodesShards(t *testing.T) {
	spec := zarr.Spec{Shape: []int64{1 << 40}, Chunks: []int64{4}, Shards: []int64{8}, DataType: "int32",
		Codecs: json.RawMessage(`[{"name":"bytes","configuration":{"endian":"big"}},{"name":"gzip","configuration":{"level":1}}]`)}
	store, url := newMemory(t)
	a := must.Get(zarr.Create(bg, store, "a", spec, nil))(t)
	must.Do(t, zarr.Write(bg, a, zarr.Sel(zarr.Slice(1<<30, 1<<30+5, 1)), []int32{1, 2, 3, 4, 5}))
	dest := filepath.Join(t.TempDir(), "out")
	must.Get(Export(bg, openURL(t, url), dest, ExportOptions{Format: zarr.V2, Recode: true}))(t)
	keys := exported(t, dest)
	if len(keys) != 4 || !strings.Contains(keys["a/.zarray"], `"gzip"`) || keys["a/268435456"] == "" || keys["a/268435457"] == "" {
		t.Errorf("keys %q", keys)
	}
	out := must.Get(openURL(t, dest+"/a").Node(bg))(t)
	b, _ := out.Array()
	if got, _, err := zarr.Read[int32](bg, b, zarr.Sel(zarr.Slice(1<<30, 1<<30+6, 1))); err != nil || got[4] != 5 || got[5] != 0 {
		t.Errorf("read %v, %v", got, err)
	}
}

// A store that is in the format already is copied as it is, with arrays of a codec that is
// not known here, and with keys that belong to no node.
func TestExportToTheSameFormat(t *testing.T) {
	dir := t.TempDir()
	want := map[string]string{
		".zgroup":   `{"zarr_format": 2}`,
		"a/.zarray": `{"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|u1", "compressor": {"id": "nope"}, "filters": null, "fill_value": 0, "order": "C"}`,
		"a/0":       "abcd",
		"notes.txt": "kept",
	}
	for key, value := range want {
		path := filepath.Join(dir, "in", filepath.FromSlash(key))
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(value), 0o666)))
	}
	src, dest := openURL(t, filepath.Join(dir, "in")), filepath.Join(dir, "out.zip")
	must.Get(Export(bg, src, dest, ExportOptions{Format: zarr.V2}))(t)
	if got := exported(t, dest); !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if _, err := Export(bg, src, filepath.Join(dir, "out3.zip"), ExportOptions{Format: zarr.V3}); !errors.Is(err, codecs.ErrUnknown) {
		t.Errorf("to another format: %v", err)
	}
}
