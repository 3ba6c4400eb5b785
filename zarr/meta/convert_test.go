package meta_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
	"github.com/zarrdb/zarrdb/zarr/internal/metatest"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

func noForm(err error) bool {
	return errors.Is(err, meta.ErrNoForm) || errors.Is(err, dtype.ErrNoForm) || errors.Is(err, codecs.ErrNoForm)
}

func TestToV3(t *testing.T) {
	reg := builtin.Registry()
	for _, c := range []struct {
		set   []string
		attrs string
		want  []string // members of the v3 document that are not as below
	}{
		{nil, "", nil},
		{[]string{"dtype", `">i2"`}, "", []string{"codecs", `[{"name":"bytes","configuration":{"endian":"big"}}]`}},
		{[]string{"fill_value", "null"}, "", []string{"fill_value", "0"}},
		{[]string{"dimension_separator", `"/"`}, "", []string{"chunk_key_encoding", `{"name":"v2","configuration":{"separator":"/"}}`}},
		{nil, `{"_ARRAY_DIMENSIONS":["y","x"],"v":NaN}`, []string{"attributes", `{"v":"NaN"}`, "dimension_names", `["y","x"]`}},
		{nil, `{"_ARRAY_DIMENSIONS":["y"]}`, []string{"attributes", `{"_ARRAY_DIMENSIONS":["y"]}`}},
		{[]string{"compressor", `{"id":"gzip","level":1}`}, "", []string{"codecs", `[{"name":"bytes","configuration":{"endian":"little"}},{"name":"gzip","configuration":{"level":1}}]`}},
		{[]string{"order", `"F"`}, "", []string{"codecs", `[{"name":"transpose","configuration":{"order":[1,0]}},{"name":"bytes","configuration":{"endian":"little"}}]`}},
		{[]string{"dtype", `[["a","<i4"],["b","|S2"]]`, "fill_value", "null"}, "", []string{"data_type", `{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int32"},{"name":"b","data_type":{"name":"null_terminated_bytes","configuration":{"length_bytes":2}}}]}}`, "fill_value", `{"a":0,"b":""}`}},
		{[]string{"dtype", `"|O"`, "filters", `[{"id":"vlen-utf8"}]`}, "", []string{"data_type", `"string"`, "fill_value", `""`, "codecs", `["vlen-utf8"]`}},
	} {
		doc := metatest.Edit(t, metatest.ArrayDocV2, append([]string{"compressor", "null", "fill_value", "0"}, c.set...)...)
		m := parseV2(t, doc, c.attrs)
		v3, err := m.ToV3(reg)
		if err != nil {
			t.Errorf("%s: %v", doc, err)
			continue
		}
		want := metatest.Edit(t, metatest.ArrayDoc, append([]string{"fill_value", "0", "chunk_key_encoding", `{"name":"v2","configuration":{"separator":"."}}`}, c.want...)...)
		if d := v3.Diff(parseV3(t, want)); len(d) > 0 {
			t.Errorf("%s differs in %v from %s: %s", doc, d, want, printed(t, v3)[meta.DocV3])
		}
		// And back: the same chunks again.
		v2, err := v3.ToV2(reg)
		if err != nil {
			t.Errorf("%s back: %v", doc, err)
			continue
		}
		for _, d := range v2.Diff(m) {
			switch d {
			case "fill_value": // null has become 0
				if !m.NullFill {
					t.Errorf("%s: fill value %x", doc, v2.Fill)
				}
			case "attributes": // NaN has become a string
			case "codecs":
				a, b := must.Have(v2.Codecs.V2()), must.Have(m.Codecs.V2())
				if a.Order != b.Order || !a.Type.Equal(b.Type) {
					t.Errorf("%s: codecs %v", doc, a)
				}
			default:
				t.Errorf("%s comes back with another %s", doc, d)
			}
		}
	}
	for _, set := range [][]string{
		{"dtype", `[["a","<i4"],["b",">i4"]]`, "fill_value", "null"},
		{"dtype", `[["a","<i4",[2]]]`, "fill_value", "null"},
		{"dtype", `">i2"`, "filters", `[{"id":"delta","dtype":">i2"}]`},
	} {
		if _, err := parseV2(t, metatest.Edit(t, metatest.ArrayDocV2, set...), "").ToV3(reg); !noForm(err) {
			t.Errorf("%v: %v", set, err)
		}
	}
	if _, err := must.Have(meta.ParseDraft3Array([]byte(metatest.ArrayDocDraft), reg)).ToV3(reg); !noForm(err) {
		t.Errorf("draft: %v", err)
	}
	m := parseV3(t, metatest.ArrayDoc)
	if c := must.Have(m.ToV3(reg)); c == m || !c.Equal(m) {
		t.Error("v3 to v3")
	}
}

func TestToV2(t *testing.T) {
	reg := builtin.Registry()
	v2keys := []string{"chunk_key_encoding", `"v2"`}
	for _, set := range [][]string{
		{"chunk_key_encoding", `"default"`},
		{"chunk_grid", `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[2,2],6]}}`},
		{"data_type", `"complex_float16"`, "fill_value", "[0,0]"},
		{"data_type", `"float32"`, "fill_value", `"0x7fc00001"`},
		{"dimension_names", `["x",null]`},
		{"codecs", `[{"name":"sharding_indexed","configuration":{"chunk_shape":[1,1],"codecs":["bytes"],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}]`, "data_type", `"int8"`},
	} {
		doc := metatest.Edit(t, metatest.ArrayDoc, append(slices.Clone(v2keys), set...)...)
		if c, err := parseV3(t, doc).ToV2(reg); !noForm(err) {
			t.Errorf("%s: %v, %v", doc, c, err)
		}
	}
	m := parseV3(t, metatest.Edit(t, metatest.ArrayDoc, append(v2keys, "dimension_names", `["y","x"]`, "attributes", `{"a":1}`, "data_type", `"float32"`, "codecs", `[{"name":"bytes","configuration":{"endian":"big"}}]`, "fill_value", `"NaN"`)...))
	c := must.Have(m.ToV2(reg))
	docs := printed(t, c)
	if got := string(jsontext.Canonical(json.RawMessage(docs[meta.DocArrayV2]))); got != `{"chunks":[2,3],"compressor":null,"dtype":">f4","fill_value":"NaN","filters":null,"order":"C","shape":[4,6],"zarr_format":2}` {
		t.Error(got)
	}
	if got := string(jsontext.Canonical(json.RawMessage(docs[meta.DocAttrsV2]))); got != `{"_ARRAY_DIMENSIONS":["y","x"],"a":1}` {
		t.Error(got)
	}
	if g := must.Have(parseV3(t, metatest.Edit(t, metatest.GroupDoc, "attributes", `{"a":1}`)).ToV2(reg)); g.Array || string(g.Attributes.Text()) != `{"a":1}` {
		t.Error("group")
	}
	// v1 arrays have the chunks of v2.
	v1 := must.Have(meta.ParseV1([]byte(`{"zarr_format":1,"shape":[4],"chunks":[2],"dtype":"<i2","compression":"zlib","compression_opts":1,"fill_value":3,"order":"C"}`), nil, reg))
	c = must.Have(v1.ToV2(reg))
	if got := string(jsontext.Canonical(json.RawMessage(printed(t, c)[meta.DocArrayV2]))); got != `{"chunks":[2],"compressor":{"id":"zlib","level":1},"dtype":"<i2","fill_value":3,"filters":null,"order":"C","shape":[4],"zarr_format":2}` {
		t.Error(got)
	}
}
