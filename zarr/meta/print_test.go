package meta_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
	"github.com/zarrdb/zarrdb/zarr/internal/metatest"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

func parseV3(t testing.TB, doc string) *meta.Meta {
	t.Helper()
	m, err := meta.ParseV3([]byte(doc), builtin.Registry())
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return m
}

func parseV2(t testing.TB, doc, attrs string) *meta.Meta {
	t.Helper()
	var a []byte
	if attrs != "" {
		a = []byte(attrs)
	}
	m, err := meta.ParseV2Array([]byte(doc), a, builtin.Registry())
	if err != nil {
		t.Fatalf("%s %s: %v", doc, attrs, err)
	}
	return m
}

func printed(t testing.TB, m *meta.Meta) map[string]string {
	t.Helper()
	docs := must.Get(m.Print())(t)
	out := make(map[string]string)
	for name, text := range docs {
		out[name] = string(text)
	}
	return out
}

// TestPrintKeepsText changes one thing at a time: the other members keep their
// place and their text.
func TestPrintKeepsText(t *testing.T) {
	doc := `{
	"attributes": {"b": 1.50, "a": [1,
		NaN], "\u00e9": "\/"},
	"zarr_format": 3, "node_type": "array",
	"my_ext": {"must_understand": false, "x": 1E2},
	"data_type": {"name": "float64"}, "shape": [4, 6],
	"chunk_key_encoding": "default",
	"chunk_grid": {"configuration": {"chunk_shape": [2, 3]}, "name": "regular"},
	"codecs": [{"configuration": {"endian": "little"}, "name": "bytes"}, "crc32c"],
	"fill_value": 1e0, "storage_transformers": []
}`
	m := parseV3(t, doc)
	for field, change := range map[string]func(*meta.Meta){
		"attributes":         func(c *meta.Meta) { must.Do(t, c.Attributes.Set("new", 1)) },
		"shape":              func(c *meta.Meta) { c.Shape[0] = 5 },
		"fill_value":         func(c *meta.Meta) { c.Fill = make([]byte, 8) },
		"chunk_grid":         func(c *meta.Meta) { c.Grid = meta.RegularGrid([]int{1, 1}) },
		"chunk_key_encoding": func(c *meta.Meta) { c.Keys = meta.V2Keys('.', 2) },
		"codecs": func(c *meta.Meta) {
			c.Codecs = must.Have(builtin.Registry().ParseV3(json.RawMessage(`[{"name":"bytes","configuration":{"endian":"big"}}]`)))
		},
		"data_type":            func(c *meta.Meta) { c.Type = dtype.NewInt(64) },
		"dimension_names":      func(c *meta.Meta) { x := "x"; c.DimensionNames = []*string{&x, nil} },
		"my_ext":               func(c *meta.Meta) { delete(c.Extra(), "my_ext") },
		"storage_transformers": func(c *meta.Meta) { delete(c.Extra(), "storage_transformers") },
	} {
		c := m.Clone()
		change(c)
		got := printed(t, c)[meta.DocV3]
		again := parseV3(t, got)
		if d := again.Diff(c); len(d) > 0 {
			t.Errorf("%s: printed and parsed it differs in %v: %s", field, d, got)
		}
		want := []string{field}
		if field == "data_type" { // whose change is one of the fill value's text too
			want = []string{"data_type", "fill_value"}
		}
		for _, x := range changedText(t, doc, got) {
			if !slices.Contains(want, x) {
				t.Errorf("changing %s changed the text of %s: %s", field, x, got)
			}
		}
		if d := m.Diff(c); !slices.Equal(d, []string{field}) {
			t.Errorf("changing %s is a difference in %v", field, d)
		}
		if printed(t, m)[meta.DocV3] != doc {
			t.Fatalf("changing a clone changed the original: %s", field)
		}
	}
}

// changedText returns the members of a document whose text is another one in
// got, or that stand at another place.
func changedText(t *testing.T, doc, got string) []string {
	t.Helper()
	was, _ := jsontext.Members(json.RawMessage(doc))
	is, ok := jsontext.Members(json.RawMessage(got))
	if !ok {
		t.Fatal(got)
	}
	var list []string
	text := func(l []jsontext.Member, name string) string {
		for _, m := range l {
			if m.Name == name {
				return string(jsontext.AppendIndented(nil, m.Value, " ", 0))
			}
		}
		return ""
	}
	names := func(l []jsontext.Member) []string {
		var n []string
		for _, m := range l {
			if text(was, m.Name) != "" && text(is, m.Name) != "" {
				n = append(n, m.Name)
			}
		}
		return n
	}
	for _, l := range [][]jsontext.Member{was, is} {
		for _, m := range l {
			if text(was, m.Name) != text(is, m.Name) {
				list = append(list, m.Name)
			}
		}
	}
	if !slices.Equal(names(was), names(is)) {
		list = append(list, "order")
	}
	return list
}

func TestPrintNew(t *testing.T) {
	x := "x"
	m := &meta.Meta{Version: meta.V3, Array: true, Shape: []int64{4, 6}, Type: dtype.NewInt(16), Grid: meta.RegularGrid([]int{2, 3}), Keys: meta.DefaultKeys('/', 2),
		Fill: []byte{7, 0}, Codecs: must.Have(builtin.Registry().ParseV3(json.RawMessage(`[{"name":"bytes","configuration":{"endian":"little"}}]`))),
		DimensionNames: []*string{&x, nil}}
	must.Do(t, m.Validate())
	must.Do(t, m.Attributes.Set("units", "m"))
	want := `{
  "zarr_format": 3,
  "node_type": "array",
  "shape": [
    4,
    6
  ],
  "data_type": "int16",
  "chunk_grid": {
    "name": "regular",
    "configuration": {
      "chunk_shape": [
        2,
        3
      ]
    }
  },
  "chunk_key_encoding": {
    "name": "default",
    "configuration": {
      "separator": "/"
    }
  },
  "fill_value": 7,
  "codecs": [
    {
      "name": "bytes",
      "configuration": {
        "endian": "little"
      }
    }
  ],
  "attributes": {
    "units": "m"
  },
  "dimension_names": [
    "x",
    null
  ]
}
`
	if got := printed(t, m)[meta.DocV3]; got != want {
		t.Errorf("%s", got)
	}
	g := &meta.Meta{Version: meta.V3}
	if got := printed(t, g)[meta.DocV3]; got != "{\n  \"zarr_format\": 3,\n  \"node_type\": \"group\",\n  \"attributes\": {}\n}\n" {
		t.Errorf("%s", got)
	}
	g = &meta.Meta{Version: meta.V2}
	if got := printed(t, g); len(got) != 1 || got[meta.DocGroupV2] != "{\n    \"zarr_format\": 2\n}\n" {
		t.Errorf("%v", got)
	}
	for _, bad := range []*meta.Meta{{}, {Version: meta.V1}} {
		if docs, err := bad.Print(); !errors.Is(err, meta.ErrNoForm) {
			t.Errorf("%v: %v, %v", bad, docs, err)
		}
	}
}

func TestPrintV2Attributes(t *testing.T) {
	m := parseV2(t, metatest.ArrayDocV2, `{"_ARRAY_DIMENSIONS": ["y", "x"], "v": NaN}`)
	c := m.Clone()
	z := "z"
	c.DimensionNames[0] = &z
	if got := printed(t, c)[meta.DocAttrsV2]; got != "{\n    \"_ARRAY_DIMENSIONS\": [\n        \"z\",\n        \"x\"\n    ],\n    \"v\": NaN\n}\n" {
		t.Errorf("%s", got)
	}
	if !slices.EqualFunc(m.DimensionNames, parseV2(t, metatest.ArrayDocV2, printed(t, m)[meta.DocAttrsV2]).DimensionNames, meta.SameName) {
		t.Error("changing a clone changed the original")
	}
	c.DimensionNames = nil
	if got := printed(t, c)[meta.DocAttrsV2]; got != "{\n    \"v\": NaN\n}\n" {
		t.Errorf("%s", got)
	}
	c.Attributes = meta.Attributes{}
	if got, ok := printed(t, c)[meta.DocAttrsV2]; got != "{}\n" {
		t.Errorf("the document must be replaced: %s, %v", got, ok)
	}
	c.DimensionNames = []*string{&z, nil}
	if _, err := c.Print(); !errors.Is(err, meta.ErrNoForm) {
		t.Errorf("half-named dimensions: %v", err)
	}
	// A program that changes the attribute alone means it.
	c = m.Clone()
	must.Do(t, c.Attributes.Set(meta.DimensionsKey, []string{"b", "a"}))
	if got := parseV2(t, metatest.ArrayDocV2, printed(t, c)[meta.DocAttrsV2]).DimensionNames; *got[0] != "b" {
		t.Errorf("dimension %s", *got[0])
	}
	c = c.Anew()
	c.DimensionNames = nil
	if got := parseV2(t, metatest.ArrayDocV2, printed(t, c)[meta.DocAttrsV2]).DimensionNames; got == nil || *got[0] != "b" {
		t.Errorf("dimensions %v", got)
	}
	m = parseV2(t, metatest.ArrayDocV2, "")
	if _, ok := printed(t, m)[meta.DocAttrsV2]; ok {
		t.Error("a document out of nothing")
	}
	c = m.Clone()
	c.DimensionNames = []*string{&z, &z}
	if got := printed(t, c)[meta.DocAttrsV2]; !strings.Contains(got, `"z"`) {
		t.Errorf("%s", got)
	}
}

// TestPrintZeroChunks: a chunk length of 0 is right only while the dimension
// has no elements.
func TestPrintZeroChunks(t *testing.T) {
	doc := metatest.Edit(t, metatest.ArrayDoc, "shape", "[0,6]", "chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[0,3]}}`)
	m := parseV3(t, doc)
	if got := printed(t, m)[meta.DocV3]; got != doc {
		t.Errorf("%s", got)
	}
	c := m.Clone()
	c.Shape[0] = 2
	if again := parseV3(t, printed(t, c)[meta.DocV3]); !again.Equal(c) || !slices.Equal(again.Grid.Regular(), []int{1, 3}) {
		t.Errorf("%s", printed(t, c)[meta.DocV3])
	}
}

func TestValidate(t *testing.T) {
	for field, change := range map[string]func(*meta.Meta){
		"shape":                    func(c *meta.Meta) { c.Shape[0] = -1 },
		"shape:":                   func(c *meta.Meta) { c.Shape = make([]int64, meta.MaxRank+1) },
		"chunk_grid":               func(c *meta.Meta) { c.Grid = nil },
		"chunk_grid:":              func(c *meta.Meta) { c.Grid = meta.RegularGrid([]int{1}) },
		"chunk_grid: ":             func(c *meta.Meta) { c.Grid = newGrid(t, edges(3), meta.Edges{Step: 1}) },
		"chunk_key_encoding":       func(c *meta.Meta) { c.Keys = meta.DefaultKeys('/', 3) },
		"chunk_key_encoding:":      func(c *meta.Meta) { c.Keys = meta.ChunkKeys{} },
		"dimension_names":          func(c *meta.Meta) { c.DimensionNames = make([]*string, 3) },
		"fill_value":               func(c *meta.Meta) { c.Fill = nil },
		"codecs":                   func(c *meta.Meta) { c.Codecs = codecs.Chain{} },
		"node_type":                func(c *meta.Meta) { c.Array = false },
		"codecs[0].configuration.": func(c *meta.Meta) { c.Codecs = must.Have(builtin.Registry().ParseV3(json.RawMessage(`["bytes"]`))) },
	} {
		c := parseV3(t, metatest.ArrayDoc).Clone()
		must.Do(t, c.Validate())
		change(c)
		if err := c.Validate(); !errors.Is(err, meta.ErrMetadata) || !strings.HasPrefix(err.Error(), "metadata: "+strings.TrimRight(field, ": ")) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestStructureKey: what chunks depend on, and nothing else.
func TestStructureKey(t *testing.T) {
	base := parseV3(t, metatest.ArrayDoc).StructureKey()
	for _, set := range [][]string{
		{"shape", "[40,60]"}, {"attributes", `{"a":1}`}, {"dimension_names", `["x","y"]`}, {"chunk_key_encoding", `"default"`},
		{"codecs", `[ {"configuration":{ "endian":"little"},"name":"bytes", "must_understand":true} ]`}, {"data_type", `{"name":"int16"}`}, {"x", `{"must_understand":false}`},
		{"chunk_grid", `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[2,3]}}`},
	} {
		if got := parseV3(t, metatest.Edit(t, metatest.ArrayDoc, set...)).StructureKey(); !bytes.Equal(got, base) {
			t.Errorf("%v changes the structure from %s to %s", set, base, got)
		}
	}
	for _, set := range [][]string{
		{"fill_value", "8"}, {"data_type", `"uint16"`}, {"chunk_key_encoding", `"v2"`}, {"codecs", `[{"name":"bytes","configuration":{"endian":"big"}}]`},
		{"chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[2,2]}}`},
		{"chunk_grid", `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[2,2],3]}}`},
	} {
		if got := parseV3(t, metatest.Edit(t, metatest.ArrayDoc, set...)).StructureKey(); bytes.Equal(got, base) {
			t.Errorf("%v does not change the structure", set)
		}
	}
	shard := `[{"name":"sharding_indexed","configuration":{"chunk_shape":[1,3],"codecs":[{"name":"bytes","configuration":{"endian":"little"}},%s],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},%s]}}]`
	for _, a := range []string{`{"name":"crc32c"}`, `{"name":"crc32c","configuration":{}}`} {
		one, two := parseV3(t, metatest.Edit(t, metatest.ArrayDoc, "codecs", fmt.Sprintf(shard, `"crc32c"`, `"crc32c"`))), parseV3(t, metatest.Edit(t, metatest.ArrayDoc, "codecs", fmt.Sprintf(shard, a, a)))
		if !bytes.Equal(one.StructureKey(), two.StructureKey()) || !one.Equal(two) {
			t.Errorf("%s is not a name alone: %s", a, two.StructureKey())
		}
	}
	base = parseV2(t, metatest.ArrayDocV2, "").StructureKey()
	for _, set := range [][]string{{"shape", "[1,1]"}, {"filters", "null"}, {"extra", "1"}, {"compressor", `{"level":1,"id":"zlib"}`}} {
		if got := parseV2(t, metatest.Edit(t, metatest.ArrayDocV2, set...), `{"a":1}`).StructureKey(); !bytes.Equal(got, base) {
			t.Errorf("%v changes the structure from %s to %s", set, base, got)
		}
	}
	for _, set := range [][]string{{"order", `"F"`}, {"dtype", `">i2"`}, {"compressor", "null"}, {"fill_value", "null"}, {"dimension_separator", `"/"`}} {
		if got := parseV2(t, metatest.Edit(t, metatest.ArrayDocV2, set...), "").StructureKey(); bytes.Equal(got, base) {
			t.Errorf("%v does not change the structure", set)
		}
	}
	flat := []string{"shape", "[4]", "chunks", "[2]"}
	if !bytes.Equal(parseV2(t, metatest.Edit(t, metatest.ArrayDocV2, flat...), "").StructureKey(), parseV2(t, metatest.Edit(t, metatest.ArrayDocV2, append(flat, "order", `"F"`)...), "").StructureKey()) {
		t.Error("the order of one dimension is part of the structure")
	}
	if k := parseV3(t, metatest.GroupDoc).StructureKey(); k != nil {
		t.Errorf("a group has structure %s", k)
	}
}

func TestChunkCounts(t *testing.T) {
	if n := parseV3(t, metatest.ArrayDoc).ChunkCounts(); !slices.Equal(n, []int64{2, 2}) {
		t.Error(n)
	}
	if n := parseV3(t, metatest.Edit(t, metatest.ArrayDoc, "shape", "[0,7]")).ChunkCounts(); !slices.Equal(n, []int64{0, 3}) {
		t.Error(n)
	}
	if n := parseV3(t, metatest.GroupDoc).ChunkCounts(); n != nil {
		t.Error(n)
	}
}

func ExampleMeta_Print() {
	doc := []byte(`{"zarr_format": 3, "node_type": "group", "attributes": {"title": "a"}}`)
	m, err := meta.ParseV3(doc, builtin.Registry())
	if err != nil {
		panic(err)
	}
	c := m.Clone()
	if err := c.Attributes.Set("title", "b"); err != nil {
		panic(err)
	}
	docs, err := c.Print()
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s", docs["zarr.json"])
	// Output:
	// {
	//   "zarr_format": 3,
	//   "node_type": "group",
	//   "attributes": {
	//     "title": "b"
	//   }
	// }
}
