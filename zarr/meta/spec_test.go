package meta_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
	"github.com/zarrdb/zarrdb/zarr/internal/metatest"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

func array(section, why, field string, set ...string) metatest.Row {
	return metatest.Row{Section: section, Why: why, Base: metatest.ArrayDoc, Set: set, Field: field}
}

func group(section, why, field string, set ...string) metatest.Row {
	return metatest.Row{Section: section, Why: why, Base: metatest.GroupDoc, Set: set, Field: field}
}

var specV3 = []metatest.Row{
	array("array metadata", "the document as it is", ""),
	group("group metadata", "the document as it is", ""),

	array("zarr_format", "mandatory", "zarr_format", "zarr_format", ""),
	array("zarr_format", "must be 3", "zarr_format", "zarr_format", "2"),
	array("zarr_format", "is an integer", "zarr_format", "zarr_format", `"3"`),
	array("zarr_format", "is an integer", "zarr_format", "zarr_format", `3.0`),
	group("zarr_format", "mandatory", "zarr_format", "zarr_format", ""),
	array("node_type", "mandatory", "node_type", "node_type", ""),
	array("node_type", "must be array or group", "node_type", "node_type", `"dataset"`),
	array("node_type", "is a string", "node_type", "node_type", `null`),
	array("node_type", "a group has no shape", "shape", "node_type", `"group"`),

	array("shape", "mandatory", "shape", "shape", ""),
	array("shape", "an array of integers", "shape", "shape", `4`),
	array("shape", "an array of integers", "shape[0]", "shape", `[4.0, 6]`),
	array("shape", "an array of integers", "shape[1]", "shape", `[4, "6"]`),
	array("shape", "lengths are not negative", "shape[1]", "shape", `[4, -1]`),
	array("shape", "lengths are finite", "shape[0]", "shape", `[9223372036854775808, 1]`),
	array("shape", "a length may be zero", "", "shape", `[0, 6]`),
	array("shape", "may be the empty tuple", "", "shape", `[]`, "chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[]}}`),
	array("shape", "more elements than 2^63 are no reason to refuse", "", "shape", `[9223372036854775807, 9223372036854775807]`),

	array("data_type", "mandatory", "data_type", "data_type", ""),
	array("data_type", "must be known", "data_type", "data_type", `"int128"`),
	array("data_type", "raw bits are a multiple of 8", "data_type", "data_type", `"r12"`),
	array("data_type", "an object is an extension", "", "data_type", `{"name":"int16"}`),
	array("data_type", "must_understand false is not supported", "data_type", "data_type", `{"name":"int16","must_understand":false}`),

	array("chunk_grid", "mandatory", "chunk_grid", "chunk_grid", ""),
	array("chunk_grid", "must be known", "chunk_grid.name", "chunk_grid", `{"name":"hexagonal"}`),
	array("chunk_grid", "chunk_shape is mandatory", "chunk_grid.configuration.chunk_shape", "chunk_grid", `"regular"`),
	array("chunk_grid", "an array of integers", "chunk_grid.configuration.chunk_shape[1]", "chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[2,3.0]}}`),
	array("chunk_grid", "as many as dimensions", "chunk_grid.configuration.chunk_shape", "chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[2]}}`),
	array("chunk", "lengths are non-zero", "chunk_grid.configuration.chunk_shape[0]", "chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[0,3]}}`),
	array("chunk", "lengths are non-zero where the dimension is", "", "shape", `[0,6]`, "chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[0,3]}}`),
	array("chunk_grid", "name is a string", "chunk_grid.name", "chunk_grid", `{"configuration":{"chunk_shape":[2,3]}}`),
	array("extension definition", "configuration is an object", "chunk_grid.configuration", "chunk_grid", `{"name":"regular","configuration":[2,3]}`),
	array("extension definition", "an unknown member", "chunk_grid.extra", "chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[2,3]},"extra":1}`),
	array("extension definition", "an unknown member of the configuration", "chunk_grid.configuration.x", "chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[2,3],"x":1}}`),
	array("must_understand", "true is the default", "", "chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[2,3]},"must_understand":true}`),
	array("must_understand", "false is not supported for chunk grids", "chunk_grid.must_understand", "chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[2,3]},"must_understand":false}`),

	array("rectilinear", "lengths, pairs and steps", "", "chunk_grid", `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[1,[1,2],1],4]}}`),
	array("rectilinear", "may overflow by several chunks", "", "chunk_grid", `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[[1,9]],[6]]}}`),
	array("rectilinear", "must reach the end", "chunk_grid.configuration", "chunk_grid", `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[1,2],6]}}`),
	array("rectilinear", "one entry for each dimension", "chunk_grid.configuration.chunk_shapes", "chunk_grid", `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[4]}}`),
	array("rectilinear", "lengths are at least 1", "chunk_grid.configuration.chunk_shapes", "chunk_grid", `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[0,4],6]}}`),
	array("rectilinear", "lengths are at least 1", "chunk_grid.configuration.chunk_shapes[1]", "chunk_grid", `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[4,0]}}`),
	array("rectilinear", "repetitions are at least 1", "chunk_grid.configuration.chunk_shapes", "chunk_grid", `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[[4,0]],6]}}`),
	array("rectilinear", "a run is a pair", "chunk_grid.configuration.chunk_shapes[0][0]", "chunk_grid", `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[[4,1,1]],6]}}`),
	array("rectilinear", "kind must be inline", "chunk_grid.configuration.kind", "chunk_grid", `{"name":"rectilinear","configuration":{"chunk_shapes":[4,6]}}`),
	array("rectilinear", "sums must not overflow", "chunk_grid.configuration.chunk_shapes", "chunk_grid", `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[[4,9223372036854775807]],6]}}`),

	array("chunk_key_encoding", "mandatory", "chunk_key_encoding", "chunk_key_encoding", ""),
	array("chunk_key_encoding", "must be known", "chunk_key_encoding.name", "chunk_key_encoding", `"hilbert"`),
	array("chunk_key_encoding", "a short-hand name", "", "chunk_key_encoding", `"default"`),
	array("chunk_key_encoding", "the separator is / or .", "chunk_key_encoding.configuration.separator", "chunk_key_encoding", `{"name":"v2","configuration":{"separator":"-"}}`),
	array("chunk_key_encoding", "an unknown member", "chunk_key_encoding.configuration.sep", "chunk_key_encoding", `{"name":"v2","configuration":{"sep":"."}}`),
	array("must_understand", "false is not supported for chunk key encodings", "chunk_key_encoding.must_understand", "chunk_key_encoding", `{"name":"default","must_understand":false}`),

	array("fill_value", "mandatory", "fill_value", "fill_value", ""),
	array("fill_value", "null is not a value of a core type", "fill_value", "fill_value", `null`),
	array("fill_value", "within the range", "fill_value", "fill_value", `32768`),
	array("fill_value", "no fraction", "fill_value", "fill_value", `1.5`),

	array("codecs", "mandatory", "", "codecs", `["bytes"]`, "data_type", `"int8"`),
	array("codecs", "mandatory", "codecs", "codecs", ""),
	array("codecs", "cannot be empty", "codecs", "codecs", "[]"),
	array("codecs", "is a list", "codecs", "codecs", "{}"),
	array("codecs", "must be known", "codecs[1]", "codecs", `[{"name":"bytes","configuration":{"endian":"little"}},{"name":"middle-out"}]`),
	array("must_understand", "false lets a codec be passed over", "", "codecs", `[{"name":"bytes","configuration":{"endian":"little"}},{"name":"middle-out","must_understand":false}]`),
	array("chunk encoding", "one array to bytes codec", "codecs[1]", "codecs", `["bytes","bytes"]`, "data_type", `"int8"`),
	array("chunk encoding", "bound to type and shape", "codecs[0].configuration.order", "codecs", `[{"name":"transpose","configuration":{"order":[0]}},{"name":"bytes","configuration":{"endian":"little"}}]`),
	array("codecs", "configuration errors show when opening", "codecs[1].configuration.level", "codecs", `[{"name":"bytes","configuration":{"endian":"little"}},{"name":"gzip","configuration":{"level":12}}]`),

	array("attributes", "optional", "", "attributes", `{"a":[1,{"b":null}]}`),
	array("attributes", "an object", "attributes", "attributes", `[]`),
	group("attributes", "an object", "attributes", "attributes", `null`),

	array("storage_transformers", "an empty list is none", "", "storage_transformers", `[]`),
	array("storage_transformers", "must be known", "storage_transformers[0]", "storage_transformers", `[{"name":"x"}]`),
	array("storage_transformers", "a name must be known", "storage_transformers[0]", "storage_transformers", `["x"]`),
	array("storage_transformers", "false lets one be passed over", "", "storage_transformers", `[{"name":"x","must_understand":false}]`),
	array("storage_transformers", "is a list", "storage_transformers", "storage_transformers", `{}`),
	group("storage_transformers", "are for arrays", "storage_transformers", "storage_transformers", `[]`),

	array("dimension_names", "strings or null", "", "dimension_names", `["x",null]`),
	array("dimension_names", "need not be distinct", "", "dimension_names", `["x","x"]`),
	array("dimension_names", "as many as dimensions", "dimension_names", "dimension_names", `["x"]`),
	array("dimension_names", "strings or null", "dimension_names[1]", "dimension_names", `["x",1]`),
	array("dimension_names", "a list", "dimension_names", "dimension_names", `"xy"`),

	array("unknown", "must be understood unless it says otherwise", "extra", "extra", `{"name":"x"}`),
	array("unknown", "must be understood unless it says otherwise", "extra", "extra", `{"must_understand":true}`),
	array("unknown", "only a JSON false says otherwise", "extra", "extra", `{"must_understand":"false"}`),
	array("unknown", "what is not an object cannot say otherwise", "extra", "extra", `1`),
	array("unknown", "is passed over if it says so", "", "extra", `{"must_understand":false}`),
	group("unknown", "must be understood unless it says otherwise", "extra", "extra", `{}`),
	group("unknown", "is passed over if it says so", "", "extra", `{"must_understand":false,"x":1}`),
	array("unknown", "arrays have no consolidated metadata", "consolidated_metadata", "consolidated_metadata", `{}`),
	group("consolidated metadata", "none", "", "consolidated_metadata", `null`),
	group("consolidated metadata", "inline", "", "consolidated_metadata", `{"kind":"inline","must_understand":false,"metadata":{}}`),
	group("consolidated metadata", "another kind may be passed over", "", "consolidated_metadata", `{"kind":"elsewhere","must_understand":false}`),
	group("consolidated metadata", "another kind that must be understood", "consolidated_metadata", "consolidated_metadata", `{"kind":"elsewhere"}`),
	group("consolidated metadata", "is an object", "consolidated_metadata", "consolidated_metadata", `[]`),
}

func TestSpecV3(t *testing.T) {
	reg := builtin.Registry()
	for _, r := range specV3 {
		t.Run(r.Section+"/"+r.Why, func(t *testing.T) {
			r.Check(t, meta.DocV3, func(doc []byte) (*meta.Meta, error) { return meta.ParseV3(doc, reg) })
		})
	}
}

var specV2 = []metatest.Row{
	{Section: "arrays", Why: "the document as it is", Base: metatest.ArrayDocV2, Set: nil, Field: ""},
	{Section: "arrays", Why: "unknown members are ignored", Base: metatest.ArrayDocV2, Set: []string{"attributes", "{}", "x", "1"}, Field: ""},
	{Section: "zarr_format", Why: "mandatory", Base: metatest.ArrayDocV2, Set: []string{"zarr_format", ""}, Field: "zarr_format"},
	{Section: "zarr_format", Why: "must be 2", Base: metatest.ArrayDocV2, Set: []string{"zarr_format", "3"}, Field: "zarr_format"},
	{Section: "shape", Why: "mandatory", Base: metatest.ArrayDocV2, Set: []string{"shape", ""}, Field: "shape"},
	{Section: "chunks", Why: "mandatory", Base: metatest.ArrayDocV2, Set: []string{"chunks", ""}, Field: "chunks"},
	{Section: "chunks", Why: "as many as dimensions", Base: metatest.ArrayDocV2, Set: []string{"chunks", "[2]"}, Field: "chunks"},
	{Section: "chunks", Why: "not zero", Base: metatest.ArrayDocV2, Set: []string{"chunks", "[2, 0]"}, Field: "chunks[1]"},
	{Section: "chunks", Why: "a list", Base: metatest.ArrayDocV2, Set: []string{"chunks", "true"}, Field: "chunks"},
	{Section: "dtype", Why: "mandatory", Base: metatest.ArrayDocV2, Set: []string{"dtype", ""}, Field: "dtype"},
	{Section: "dtype", Why: "the byte order must be specified", Base: metatest.ArrayDocV2, Set: []string{"dtype", `"i2"`}, Field: "dtype"},
	{Section: "dtype", Why: "objects need a filter", Base: metatest.ArrayDocV2, Set: []string{"dtype", `"|O"`}, Field: "dtype"},
	{Section: "dtype", Why: "objects with a filter", Base: metatest.ArrayDocV2, Set: []string{"dtype", `"|O"`, "filters", `[{"id":"vlen-utf8"}]`, "fill_value", "0"}, Field: ""},
	{Section: "compressor", Why: "mandatory", Base: metatest.ArrayDocV2, Set: []string{"compressor", ""}, Field: "compressor"},
	{Section: "compressor", Why: "null is none", Base: metatest.ArrayDocV2, Set: []string{"compressor", "null"}, Field: ""},
	{Section: "compressor", Why: "must have an id", Base: metatest.ArrayDocV2, Set: []string{"compressor", `{"level":1}`}, Field: "compressor"},
	{Section: "compressor", Why: "must be known", Base: metatest.ArrayDocV2, Set: []string{"compressor", `{"id":"brotli9"}`}, Field: "compressor"},
	{Section: "compressor", Why: "configuration", Base: metatest.ArrayDocV2, Set: []string{"compressor", `{"id":"zlib","level":"x"}`}, Field: "compressor.level"},
	{Section: "fill_value", Why: "mandatory", Base: metatest.ArrayDocV2, Set: []string{"fill_value", ""}, Field: "fill_value"},
	{Section: "fill_value", Why: "null is none", Base: metatest.ArrayDocV2, Set: []string{"fill_value", "null"}, Field: ""},
	{Section: "fill_value", Why: "of the type", Base: metatest.ArrayDocV2, Set: []string{"fill_value", `"x"`}, Field: "fill_value"},
	{Section: "order", Why: "mandatory", Base: metatest.ArrayDocV2, Set: []string{"order", ""}, Field: "order"},
	{Section: "order", Why: "F", Base: metatest.ArrayDocV2, Set: []string{"order", `"F"`}, Field: ""},
	{Section: "order", Why: "C or F", Base: metatest.ArrayDocV2, Set: []string{"order", `"A"`}, Field: "order"},
	{Section: "filters", Why: "mandatory", Base: metatest.ArrayDocV2, Set: []string{"filters", ""}, Field: "filters"},
	{Section: "filters", Why: "an empty list is none", Base: metatest.ArrayDocV2, Set: []string{"filters", "[]"}, Field: ""},
	{Section: "filters", Why: "a list or null", Base: metatest.ArrayDocV2, Set: []string{"filters", "{}"}, Field: "filters"},
	{Section: "filters", Why: "of objects", Base: metatest.ArrayDocV2, Set: []string{"filters", "[1]"}, Field: "filters[0]"},
	{Section: "filters", Why: "pickle runs code", Base: metatest.ArrayDocV2, Set: []string{"filters", `[{"id":"pickle"}]`, "dtype", `"|O"`}, Field: "filters[0].id"},
	{Section: "dimension_separator", Why: ". or /", Base: metatest.ArrayDocV2, Set: []string{"dimension_separator", `"/"`}, Field: ""},
	{Section: "dimension_separator", Why: ". or /", Base: metatest.ArrayDocV2, Set: []string{"dimension_separator", `"-"`}, Field: "dimension_separator"},
	{Section: "dimension_separator", Why: ". or /", Base: metatest.ArrayDocV2, Set: []string{"dimension_separator", `null`}, Field: "dimension_separator"},
}

func TestSpecV2(t *testing.T) {
	for _, r := range specV2 {
		t.Run(r.Section+"/"+r.Why, func(t *testing.T) { r.Check(t, meta.DocArrayV2, metatest.ReadV2) })
	}
}

// TestHostileDocuments has documents that ask for much with little text.
func TestHostileDocuments(t *testing.T) {
	reg := builtin.Registry()
	deep := func(n int, open, middle, end string) string {
		return strings.Repeat(open, n) + middle + strings.Repeat(end, n)
	}
	for name, doc := range map[string]string{
		"deep attributes": metatest.Edit(t, metatest.ArrayDoc, "attributes", deep(10_000, `{"a":`, "1", "}")),
		"deep lists":      deep(1_000_000, "[", "", ""),
		"rank":            metatest.Edit(t, metatest.ArrayDoc, "shape", "["+strings.Repeat("2,", 99)+"2]", "chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[`+strings.Repeat("2,", 99)+`2]}}`),
		"chunk overflow":  metatest.Edit(t, metatest.ArrayDoc, "chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[4294967296,4294967296]}}`),
		"chunk wrap":      metatest.Edit(t, metatest.ArrayDoc, "chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[9223372036854775807,2]}}`),
		"run overflow":    metatest.Edit(t, metatest.ArrayDoc, "chunk_grid", `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[[9223372036854775807,1]],[[9223372036854775807,1]]]}}`),
		"element":         metatest.Edit(t, metatest.ArrayDoc, "data_type", `{"name":"raw_bytes","configuration":{"length_bytes":2147483647}}`, "fill_value", `"AA=="`),
		"struct":          metatest.Edit(t, metatest.ArrayDoc, "data_type", `{"name":"struct","configuration":{"fields":`+deep(60, `[{"name":"a","data_type":{"name":"struct","configuration":{"fields":`, `[]`, `}}}]`)+`}}`, "fill_value", `{}`),
		"shape 1e400":     metatest.Edit(t, metatest.ArrayDoc, "shape", "[1e400, 1]"),
		"deep shards":     metatest.Edit(t, metatest.ArrayDoc, "codecs", "["+deep(100, `{"name":"sharding_indexed","configuration":{"chunk_shape":[1,1],"index_codecs":["bytes"],"codecs":[`, `"bytes"`, `]}}`)+"]"),
	} {
		if m, err := meta.ParseV3([]byte(doc), reg); !errors.Is(err, meta.ErrMetadata) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
	// Many small nodes with large fill values.
	child := metatest.Edit(t, metatest.ArrayDoc, "data_type", `{"name":"null_terminated_bytes","configuration":{"length_bytes":16000000}}`, "fill_value", `""`, "codecs", `["bytes"]`)
	var nodes []jsontext.Member
	for i := range 1000 {
		nodes = append(nodes, jsontext.Member{Name: fmt.Sprintf("a%d", i), Value: json.RawMessage(child)})
	}
	doc := metatest.Edit(t, metatest.GroupDoc, "consolidated_metadata", `{"kind":"inline","must_understand":false,"metadata":`+string(jsontext.Join(nodes))+`}`)
	m, err := meta.ParseV3([]byte(doc), reg)
	if err != nil || len(m.Consolidated) != 4 || len(m.ConsolidatedErrors) != len(nodes)-4 {
		t.Errorf("%d nodes, %d errors, %v", len(m.Consolidated), len(m.ConsolidatedErrors), err)
	}
	// 2^60 chunks in a few bytes are fine: nothing is expanded.
	doc = metatest.Edit(t, metatest.ArrayDoc, "shape", "[1152921504606846976, 6]", "chunk_grid", `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[[1,1152921504606846976]],6]}}`)
	m, err = meta.ParseV3([]byte(doc), reg)
	if err != nil || m.ChunkCounts()[0] != 1<<60 {
		t.Errorf("long run: %v", err)
	}
}

// TestHostileOldDocuments does the same to the formats before v3.
func TestHostileOldDocuments(t *testing.T) {
	reg := builtin.Registry()
	many := "[" + strings.Repeat("2,", 99) + "2]"
	deep := strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000)
	for _, f := range []struct {
		version             meta.Version
		doc                 string
		chunks, dtype, free string                     // members
		grid                func(chunks string) string // the member chunks
		parse               func(doc []byte) (*meta.Meta, error)
	}{
		{meta.V1, metatest.ArrayDocV1, "chunks", "dtype", "compression_opts", strings.Clone, func(doc []byte) (*meta.Meta, error) { return meta.ParseV1(doc, nil, reg) }},
		{meta.V2, metatest.ArrayDocV2, "chunks", "dtype", "compressor", strings.Clone, metatest.ReadV2},
		{meta.Draft3, metatest.ArrayDocDraft, "chunk_grid", "data_type", "attributes", func(chunks string) string {
			return `{"type":"regular","chunk_shape":` + chunks + `,"separator":"/"}`
		}, func(doc []byte) (*meta.Meta, error) { return meta.ParseDraft3Array(doc, reg) }},
	} {
		for name, change := range map[string][]string{
			"":               {"shape", "[9223372036854775807,9223372036854775807]"}, // fine
			"chunk overflow": {f.chunks, f.grid("[4294967296,4294967296]")},
			"chunk wrap":     {f.chunks, f.grid("[9223372036854775807,2]")},
			"shape 2^63":     {"shape", "[9223372036854775808,1]"},
			"rank":           {"shape", many, f.chunks, f.grid(many)},
			"element":        {f.dtype, `"|V2147483647"`, "fill_value", "null"},
			"deep":           {f.free, deep},
		} {
			m, err := f.parse([]byte(metatest.Edit(t, f.doc, change...)))
			if name == "" && err != nil || name != "" && !errors.Is(err, meta.ErrMetadata) {
				t.Errorf("%v, %s: %v, %v", f.version, name, m, err)
			}
		}
	}
}

// TestBase64FillOrder: the bytes of a struct's fill value are in the byte order
// of the bytes codec. (zarr-extensions, data-types/structured.)
func TestBase64FillOrder(t *testing.T) {
	reg := builtin.Registry()
	typ := `{"name":"structured","configuration":{"fields":[["a","int16"],["b","uint8"]]}}`
	for endian, want := range map[string]string{"little": "\x01\x02\x03", "big": "\x02\x01\x03"} {
		doc := metatest.Edit(t, metatest.ArrayDoc, "data_type", typ, "fill_value", `"AQID"`, "codecs", `[{"name":"bytes","configuration":{"endian":"`+endian+`"}}]`)
		m, err := meta.ParseV3([]byte(doc), reg)
		if err != nil || string(m.Fill) != want {
			t.Fatalf("%s: %q, %v", endian, m.Fill, err)
		}
		metatest.CheckPrint(t, m, map[string]string{meta.DocV3: doc}, reg)
		// Another byte order changes what base64 would mean.
		c := m.Clone()
		c.Codecs = must.Get(reg.ParseV3(json.RawMessage(`[{"name":"bytes","configuration":{"endian":"` + map[string]string{"little": "big", "big": "little"}[endian] + `"}}]`)))(t)
		docs := must.Get(c.Print())(t)
		if again, err := meta.ParseV3(docs[meta.DocV3], reg); err != nil || string(again.Fill) != want {
			t.Errorf("%s: %s: %v", endian, docs[meta.DocV3], err)
		}
	}
}

// TestDimensionsV2: xarray's attribute names the dimensions of v2 arrays.
func TestDimensionsV2(t *testing.T) {
	reg := builtin.Registry()
	for attr, want := range map[string]string{
		`{"_ARRAY_DIMENSIONS":["y","x"]}`:     `["y","x"]`,
		`{"_ARRAY_DIMENSIONS":["y"]}`:         `[]`,
		`{"_ARRAY_DIMENSIONS":["y",1]}`:       `[]`,
		`{"_ARRAY_DIMENSIONS":"yx"}`:          `[]`,
		`{"_ARRAY_DIMENSIONS":["y","x","z"]}`: `[]`,
		`{}`:                                  `[]`,
	} {
		m := must.Get(meta.ParseV2Array([]byte(metatest.ArrayDocV2), []byte(attr), reg))(t)
		if got := string(meta.AppendNames(nil, m.DimensionNames)); got != want || string(m.Attributes.Text()) != attr {
			t.Errorf("%s: %s, %s", attr, got, m.Attributes.Text())
		}
		metatest.CheckPrint(t, m, map[string]string{meta.DocArrayV2: metatest.ArrayDocV2, meta.DocAttrsV2: attr}, reg)
	}
}

func TestVersionString(t *testing.T) {
	if s := fmt.Sprint(meta.V1, meta.V2, meta.V3, meta.Draft3, meta.Version(9)); s != "1 2 3 3-draft Version(9)" {
		t.Error(s)
	}
}

var specV1 = []metatest.Row{
	{Section: "metadata", Why: "the document as it is", Base: metatest.ArrayDocV1, Set: nil, Field: ""},
	{Section: "metadata", Why: "other keys may be present", Base: metatest.ArrayDocV1, Set: []string{"x", "1"}, Field: ""},
	{Section: "zarr_format", Why: "mandatory", Base: metatest.ArrayDocV1, Set: []string{"zarr_format", ""}, Field: "zarr_format"},
	{Section: "zarr_format", Why: "must be 1", Base: metatest.ArrayDocV1, Set: []string{"zarr_format", "2"}, Field: "zarr_format"},
	{Section: "shape", Why: "mandatory", Base: metatest.ArrayDocV1, Set: []string{"shape", ""}, Field: "shape"},
	{Section: "shape", Why: "a list of integers", Base: metatest.ArrayDocV1, Set: []string{"shape", `[4, "6"]`}, Field: "shape[1]"},
	{Section: "chunks", Why: "mandatory", Base: metatest.ArrayDocV1, Set: []string{"chunks", ""}, Field: "chunks"},
	{Section: "chunks", Why: "as many as dimensions", Base: metatest.ArrayDocV1, Set: []string{"chunks", "[2]"}, Field: "chunks"},
	{Section: "dtype", Why: "mandatory", Base: metatest.ArrayDocV1, Set: []string{"dtype", ""}, Field: "dtype"},
	{Section: "dtype", Why: "the byte order must be specified", Base: metatest.ArrayDocV1, Set: []string{"dtype", `"i2"`}, Field: "dtype"},
	{Section: "dtype", Why: "structures are lists of fields", Base: metatest.ArrayDocV1, Set: []string{"dtype", `[["r","|u1"],["g","|u1"]]`, "fill_value", "null"}, Field: ""},
	{Section: "compression", Why: "mandatory", Base: metatest.ArrayDocV1, Set: []string{"compression", ""}, Field: "compression"},
	{Section: "compression", Why: "is a name", Base: metatest.ArrayDocV1, Set: []string{"compression", `{"id":"zlib"}`}, Field: "compression"},
	{Section: "compression", Why: "must be known", Base: metatest.ArrayDocV1, Set: []string{"compression", `"brotli9"`}, Field: "compression"},
	{Section: "compression", Why: "null is none", Base: metatest.ArrayDocV1, Set: []string{"compression", "null", "compression_opts", "null"}, Field: ""},
	{Section: "compression_opts", Why: "mandatory", Base: metatest.ArrayDocV1, Set: []string{"compression_opts", ""}, Field: "compression_opts"},
	{Section: "compression_opts", Why: "a dictionary", Base: metatest.ArrayDocV1, Set: []string{"compression", `"blosc"`, "compression_opts", `{"cname":"lz4","clevel":5,"shuffle":1}`}, Field: ""},
	{Section: "compression_opts", Why: "of the library", Base: metatest.ArrayDocV1, Set: []string{"compression_opts", "12"}, Field: "compression_opts.level"},
	{Section: "fill_value", Why: "mandatory", Base: metatest.ArrayDocV1, Set: []string{"fill_value", ""}, Field: "fill_value"},
	{Section: "fill_value", Why: "null leaves chunks undefined", Base: metatest.ArrayDocV1, Set: []string{"fill_value", "null"}, Field: ""},
	{Section: "order", Why: "mandatory", Base: metatest.ArrayDocV1, Set: []string{"order", ""}, Field: "order"},
	{Section: "order", Why: "C or F", Base: metatest.ArrayDocV1, Set: []string{"order", `"F"`}, Field: ""},
	{Section: "order", Why: "C or F", Base: metatest.ArrayDocV1, Set: []string{"order", `"K"`}, Field: "order"},
}

func TestSpecV1(t *testing.T) {
	for _, r := range specV1 {
		t.Run(r.Section+"/"+r.Why, func(t *testing.T) { r.Check(t, meta.DocArrayV1, metatest.ReadV1) })
	}
}
