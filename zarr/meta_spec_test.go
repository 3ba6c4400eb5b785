package zarr

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// arrayDoc is a v3 array to be changed member by member.
const arrayDoc = `{"zarr_format": 3, "node_type": "array", "shape": [4, 6], "data_type": "int16",
 "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
 "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
 "fill_value": 7, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}`

const groupDoc = `{"zarr_format": 3, "node_type": "group"}`

// edit sets members of a document, in place or at the end; an empty value
// removes one.
func edit(t testing.TB, doc string, set ...string) string {
	t.Helper()
	list, ok := members(json.RawMessage(doc))
	if !ok {
		t.Fatal(doc)
	}
	for i := 0; i < len(set); i += 2 {
		name, value := set[i], json.RawMessage(set[i+1])
		var out []jsonMember
		done := false
		for _, m := range list {
			if m.name == name {
				if done = true; len(value) == 0 {
					continue
				}
				m.value = value
			}
			out = append(out, m)
		}
		if !done && len(value) > 0 {
			out = append(out, jsonMember{name, value})
		}
		list = out
	}
	return string(joinMembers(list))
}

// specRow is one demand of the specification, and a document that keeps or
// breaks it.
type specRow struct {
	section string // of the Zarr v3 core specification
	why     string
	base    string
	set     []string // edits
	field   string   // that the error must name; "" if the document is right
}

func array(section, why, field string, set ...string) specRow {
	return specRow{section, why, arrayDoc, set, field}
}

func group(section, why, field string, set ...string) specRow {
	return specRow{section, why, groupDoc, set, field}
}

var specV3 = []specRow{
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
	array("fill_value", "null is no value of a core type", "fill_value", "fill_value", `null`),
	array("fill_value", "within the range", "fill_value", "fill_value", `32768`),
	array("fill_value", "no fraction", "fill_value", "fill_value", `1.0`),

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
	array("unknown", "what is no object cannot say otherwise", "extra", "extra", `1`),
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

// check parses the document, which is called name.
func (r specRow) check(t *testing.T, name string, parse func([]byte) (*Meta, error)) {
	t.Helper()
	doc := edit(t, r.base, r.set...)
	m, err := parse([]byte(doc))
	switch {
	case r.field == "" && err != nil:
		t.Errorf("%s: %v", doc, err)
	case r.field == "" && name == docArrayV1:
		if key := string(m.Keys.Append(nil, []int64{1, 2})); key != "1.2" {
			t.Errorf("chunk key %q", key)
		}
	case r.field == "":
		checkPrint(t, m, map[string]string{name: doc}, codecs.Default())
	case err == nil:
		t.Errorf("accepted: %s", doc)
	case !errors.Is(err, ErrMetadata) || !strings.HasPrefix(err.Error(), name+": "+r.field+": "):
		t.Errorf("%s: error %q does not name %s", doc, err, r.field)
	}
}

func TestSpecV3(t *testing.T) {
	reg := codecs.Default()
	for _, r := range specV3 {
		t.Run(r.section+"/"+r.why, func(t *testing.T) {
			r.check(t, docV3, func(doc []byte) (*Meta, error) { return ParseV3(doc, reg) })
		})
	}
}

// arrayDocV2 is a v2 array to be changed member by member.
const arrayDocV2 = `{"zarr_format": 2, "shape": [4, 6], "chunks": [2, 3], "dtype": "<i2", "compressor": {"id": "zlib", "level": 1},
 "fill_value": 7, "order": "C", "filters": null}`

var specV2 = []specRow{
	{"arrays", "the document as it is", arrayDocV2, nil, ""},
	{"arrays", "unknown members are ignored", arrayDocV2, []string{"attributes", "{}", "x", "1"}, ""},
	{"zarr_format", "mandatory", arrayDocV2, []string{"zarr_format", ""}, "zarr_format"},
	{"zarr_format", "must be 2", arrayDocV2, []string{"zarr_format", "3"}, "zarr_format"},
	{"shape", "mandatory", arrayDocV2, []string{"shape", ""}, "shape"},
	{"chunks", "mandatory", arrayDocV2, []string{"chunks", ""}, "chunks"},
	{"chunks", "as many as dimensions", arrayDocV2, []string{"chunks", "[2]"}, "chunks"},
	{"chunks", "not zero", arrayDocV2, []string{"chunks", "[2, 0]"}, "chunks[1]"},
	{"chunks", "a list", arrayDocV2, []string{"chunks", "true"}, "chunks"},
	{"dtype", "mandatory", arrayDocV2, []string{"dtype", ""}, "dtype"},
	{"dtype", "the byte order must be specified", arrayDocV2, []string{"dtype", `"i2"`}, "dtype"},
	{"dtype", "objects need a filter", arrayDocV2, []string{"dtype", `"|O"`}, "dtype"},
	{"dtype", "objects with a filter", arrayDocV2, []string{"dtype", `"|O"`, "filters", `[{"id":"vlen-utf8"}]`, "fill_value", "0"}, ""},
	{"compressor", "mandatory", arrayDocV2, []string{"compressor", ""}, "compressor"},
	{"compressor", "null is none", arrayDocV2, []string{"compressor", "null"}, ""},
	{"compressor", "must have an id", arrayDocV2, []string{"compressor", `{"level":1}`}, "compressor"},
	{"compressor", "must be known", arrayDocV2, []string{"compressor", `{"id":"brotli9"}`}, "compressor"},
	{"compressor", "configuration", arrayDocV2, []string{"compressor", `{"id":"zlib","level":"x"}`}, "compressor.level"},
	{"fill_value", "mandatory", arrayDocV2, []string{"fill_value", ""}, "fill_value"},
	{"fill_value", "null is none", arrayDocV2, []string{"fill_value", "null"}, ""},
	{"fill_value", "of the type", arrayDocV2, []string{"fill_value", `"x"`}, "fill_value"},
	{"order", "mandatory", arrayDocV2, []string{"order", ""}, "order"},
	{"order", "F", arrayDocV2, []string{"order", `"F"`}, ""},
	{"order", "C or F", arrayDocV2, []string{"order", `"A"`}, "order"},
	{"filters", "mandatory", arrayDocV2, []string{"filters", ""}, "filters"},
	{"filters", "an empty list is none", arrayDocV2, []string{"filters", "[]"}, ""},
	{"filters", "a list or null", arrayDocV2, []string{"filters", "{}"}, "filters"},
	{"filters", "of objects", arrayDocV2, []string{"filters", "[1]"}, "filters[0]"},
	{"filters", "pickle runs code", arrayDocV2, []string{"filters", `[{"id":"pickle"}]`, "dtype", `"|O"`}, "filters[0].id"},
	{"dimension_separator", ". or /", arrayDocV2, []string{"dimension_separator", `"/"`}, ""},
	{"dimension_separator", ". or /", arrayDocV2, []string{"dimension_separator", `"-"`}, "dimension_separator"},
	{"dimension_separator", ". or /", arrayDocV2, []string{"dimension_separator", `null`}, "dimension_separator"},
}

func TestSpecV2(t *testing.T) {
	for _, r := range specV2 {
		t.Run(r.section+"/"+r.why, func(t *testing.T) { r.check(t, docArrayV2, readV2) })
	}
}

func readV2(doc []byte) (*Meta, error) { return ParseV2Array(doc, nil, codecs.Default()) }

// TestHostileDocuments has documents that ask for much with little text.
func TestHostileDocuments(t *testing.T) {
	reg := codecs.Default()
	deep := func(n int, open, middle, end string) string {
		return strings.Repeat(open, n) + middle + strings.Repeat(end, n)
	}
	for name, doc := range map[string]string{
		"deep attributes": edit(t, arrayDoc, "attributes", deep(10_000, `{"a":`, "1", "}")),
		"deep lists":      deep(1_000_000, "[", "", ""),
		"rank":            edit(t, arrayDoc, "shape", "["+strings.Repeat("2,", 99)+"2]", "chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[`+strings.Repeat("2,", 99)+`2]}}`),
		"chunk overflow":  edit(t, arrayDoc, "chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[4294967296,4294967296]}}`),
		"chunk wrap":      edit(t, arrayDoc, "chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[9223372036854775807,2]}}`),
		"run overflow":    edit(t, arrayDoc, "chunk_grid", `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[[9223372036854775807,1]],[[9223372036854775807,1]]]}}`),
		"element":         edit(t, arrayDoc, "data_type", `{"name":"raw_bytes","configuration":{"length_bytes":2147483647}}`, "fill_value", `"AA=="`),
		"struct":          edit(t, arrayDoc, "data_type", `{"name":"struct","configuration":{"fields":`+deep(60, `[{"name":"a","data_type":{"name":"struct","configuration":{"fields":`, `[]`, `}}}]`)+`}}`, "fill_value", `{}`),
		"shape 1e400":     edit(t, arrayDoc, "shape", "[1e400, 1]"),
		"deep shards":     edit(t, arrayDoc, "codecs", "["+deep(100, `{"name":"sharding_indexed","configuration":{"chunk_shape":[1,1],"index_codecs":["bytes"],"codecs":[`, `"bytes"`, `]}}`)+"]"),
	} {
		if m, err := ParseV3([]byte(doc), reg); !errors.Is(err, ErrMetadata) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
	// Many small nodes with large fill values.
	child := edit(t, arrayDoc, "data_type", `{"name":"null_terminated_bytes","configuration":{"length_bytes":16000000}}`, "fill_value", `""`, "codecs", `["bytes"]`)
	var nodes []jsonMember
	for i := range 1000 {
		nodes = append(nodes, jsonMember{fmt.Sprintf("a%d", i), json.RawMessage(child)})
	}
	doc := edit(t, groupDoc, "consolidated_metadata", `{"kind":"inline","must_understand":false,"metadata":`+string(joinMembers(nodes))+`}`)
	m, err := ParseV3([]byte(doc), reg)
	if err != nil || len(m.Consolidated) != 4 || len(m.ConsolidatedErrors) != len(nodes)-4 {
		t.Errorf("%d nodes, %d errors, %v", len(m.Consolidated), len(m.ConsolidatedErrors), err)
	}
	// 2^60 chunks in a few bytes are fine: nothing is expanded.
	doc = edit(t, arrayDoc, "shape", "[1152921504606846976, 6]", "chunk_grid", `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[[1,1152921504606846976]],6]}}`)
	m, err = ParseV3([]byte(doc), reg)
	if err != nil || m.ChunkCounts()[0] != 1<<60 {
		t.Errorf("long run: %v", err)
	}
}

// TestHostileOldDocuments does the same to the formats before v3.
func TestHostileOldDocuments(t *testing.T) {
	reg := codecs.Default()
	many := "[" + strings.Repeat("2,", 99) + "2]"
	deep := strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000)
	for _, f := range []struct {
		version             Version
		doc                 string
		chunks, dtype, free string                     // members
		grid                func(chunks string) string // the member chunks
		parse               func(doc []byte) (*Meta, error)
	}{
		{V1, arrayDocV1, "chunks", "dtype", "compression_opts", strings.Clone, func(doc []byte) (*Meta, error) { return ParseV1(doc, nil, reg) }},
		{V2, arrayDocV2, "chunks", "dtype", "compressor", strings.Clone, readV2},
		{Draft3, arrayDocDraft, "chunk_grid", "data_type", "attributes", func(chunks string) string {
			return `{"type":"regular","chunk_shape":` + chunks + `,"separator":"/"}`
		}, func(doc []byte) (*Meta, error) { return ParseDraft3Array(doc, reg) }},
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
			m, err := f.parse([]byte(edit(t, f.doc, change...)))
			if name == "" && err != nil || name != "" && !errors.Is(err, ErrMetadata) {
				t.Errorf("%v, %s: %v, %v", f.version, name, m, err)
			}
		}
	}
}

// TestBase64FillOrder: the bytes of a struct's fill value are in the byte order
// of the bytes codec. (zarr-extensions, data-types/structured.)
func TestBase64FillOrder(t *testing.T) {
	reg := codecs.Default()
	typ := `{"name":"structured","configuration":{"fields":[["a","int16"],["b","uint8"]]}}`
	for endian, want := range map[string]string{"little": "\x01\x02\x03", "big": "\x02\x01\x03"} {
		doc := edit(t, arrayDoc, "data_type", typ, "fill_value", `"AQID"`, "codecs", `[{"name":"bytes","configuration":{"endian":"`+endian+`"}}]`)
		m, err := ParseV3([]byte(doc), reg)
		if err != nil || string(m.Fill) != want {
			t.Fatalf("%s: %q, %v", endian, m.Fill, err)
		}
		checkPrint(t, m, map[string]string{docV3: doc}, reg)
		// Another byte order changes what base64 would mean.
		c := m.Clone()
		if c.Codecs, err = reg.ParseV3(json.RawMessage(`[{"name":"bytes","configuration":{"endian":"` + map[string]string{"little": "big", "big": "little"}[endian] + `"}}]`)); err != nil {
			t.Fatal(err)
		}
		docs, err := c.Print()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseV3(docs[docV3], reg); err != nil || string(again.Fill) != want {
			t.Errorf("%s: %s: %v", endian, docs[docV3], err)
		}
	}
}

// TestDimensionsV2: xarray's attribute names the dimensions of v2 arrays.
func TestDimensionsV2(t *testing.T) {
	reg := codecs.Default()
	for attr, want := range map[string]string{
		`{"_ARRAY_DIMENSIONS":["y","x"]}`:     `["y","x"]`,
		`{"_ARRAY_DIMENSIONS":["y"]}`:         `[]`,
		`{"_ARRAY_DIMENSIONS":["y",1]}`:       `[]`,
		`{"_ARRAY_DIMENSIONS":"yx"}`:          `[]`,
		`{"_ARRAY_DIMENSIONS":["y","x","z"]}`: `[]`,
		`{}`:                                  `[]`,
	} {
		m, err := ParseV2Array([]byte(arrayDocV2), []byte(attr), reg)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(appendNames(nil, m.DimensionNames)); got != want || string(m.Attributes.text()) != attr {
			t.Errorf("%s: %s, %s", attr, got, m.Attributes.text())
		}
		checkPrint(t, m, map[string]string{docArrayV2: arrayDocV2, docAttrsV2: attr}, reg)
	}
}

func TestVersionString(t *testing.T) {
	if s := fmt.Sprint(V1, V2, V3, Draft3, Version(9)); s != "1 2 3 3-draft Version(9)" {
		t.Error(s)
	}
}

func TestErrors(t *testing.T) {
	inner := &FieldError{Doc: docV3, Field: "shape", Err: dtype.ErrType}
	err := error(&Error{Op: "open", Path: "a/b", Err: inner})
	if err.Error() != "open a/b: zarr.json: shape: dtype: bad data type" || !errors.Is(err, ErrMetadata) || !errors.Is(err, dtype.ErrType) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if s := (&Error{Op: "open", Err: ErrNotFound}).Error(); s != "open /: zarr: not found" {
		t.Error(s)
	}
	if !errors.Is(&Error{Err: fmt.Errorf("x: %w", codecs.ErrCorrupt)}, ErrCorrupt) || !errors.Is(&Error{Err: ErrNotFound}, ErrNotFound) {
		t.Error("sentinels of other layers")
	}
}

// arrayDocV1 is a v1 array to be changed member by member.
const arrayDocV1 = `{"zarr_format": 1, "shape": [4, 6], "chunks": [2, 3], "dtype": "<i2", "compression": "zlib", "compression_opts": 1,
 "fill_value": 7, "order": "C"}`

var specV1 = []specRow{
	{"metadata", "the document as it is", arrayDocV1, nil, ""},
	{"metadata", "other keys may be present", arrayDocV1, []string{"x", "1"}, ""},
	{"zarr_format", "mandatory", arrayDocV1, []string{"zarr_format", ""}, "zarr_format"},
	{"zarr_format", "must be 1", arrayDocV1, []string{"zarr_format", "2"}, "zarr_format"},
	{"shape", "mandatory", arrayDocV1, []string{"shape", ""}, "shape"},
	{"shape", "a list of integers", arrayDocV1, []string{"shape", `[4, "6"]`}, "shape[1]"},
	{"chunks", "mandatory", arrayDocV1, []string{"chunks", ""}, "chunks"},
	{"chunks", "as many as dimensions", arrayDocV1, []string{"chunks", "[2]"}, "chunks"},
	{"dtype", "mandatory", arrayDocV1, []string{"dtype", ""}, "dtype"},
	{"dtype", "the byte order must be specified", arrayDocV1, []string{"dtype", `"i2"`}, "dtype"},
	{"dtype", "structures are lists of fields", arrayDocV1, []string{"dtype", `[["r","|u1"],["g","|u1"]]`, "fill_value", "null"}, ""},
	{"compression", "mandatory", arrayDocV1, []string{"compression", ""}, "compression"},
	{"compression", "is a name", arrayDocV1, []string{"compression", `{"id":"zlib"}`}, "compression"},
	{"compression", "must be known", arrayDocV1, []string{"compression", `"brotli9"`}, "compression"},
	{"compression", "null is none", arrayDocV1, []string{"compression", "null", "compression_opts", "null"}, ""},
	{"compression_opts", "mandatory", arrayDocV1, []string{"compression_opts", ""}, "compression_opts"},
	{"compression_opts", "a dictionary", arrayDocV1, []string{"compression", `"blosc"`, "compression_opts", `{"cname":"lz4","clevel":5,"shuffle":1}`}, ""},
	{"compression_opts", "of the library", arrayDocV1, []string{"compression_opts", "12"}, "compression_opts.level"},
	{"fill_value", "mandatory", arrayDocV1, []string{"fill_value", ""}, "fill_value"},
	{"fill_value", "null leaves chunks undefined", arrayDocV1, []string{"fill_value", "null"}, ""},
	{"order", "mandatory", arrayDocV1, []string{"order", ""}, "order"},
	{"order", "C or F", arrayDocV1, []string{"order", `"F"`}, ""},
	{"order", "C or F", arrayDocV1, []string{"order", `"K"`}, "order"},
}

func TestSpecV1(t *testing.T) {
	for _, r := range specV1 {
		t.Run(r.section+"/"+r.why, func(t *testing.T) { r.check(t, docArrayV1, readV1) })
	}
}

func readV1(doc []byte) (*Meta, error) { return ParseV1(doc, nil, codecs.Default()) }
