package zarr

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// This file tests arrays in forms that the specification does not have and that
// writers in use have stored.

// wildStore returns a store with the given documents and chunks.
func wildStore(t *testing.T, values map[string]string) *kv.Mem {
	t.Helper()
	store := kv.NewMem()
	for key, value := range values {
		must.Have(0, store.Set(context.Background(), key, []byte(value)))
	}
	return store
}

// zarr-python 3 stores null as the fill value of times in v2, reads it as NaT and
// leaves out chunks that hold NaT alone.
func TestNullTimesOfZarrPython(t *testing.T) {
	ctx := context.Background()
	for dataType, one := range map[string]string{
		"<M8[ns]": "\x01\x00\x00\x00\x00\x00\x00\x00", "<m8[s]": "\x01\x00\x00\x00\x00\x00\x00\x00",
		">M8[D]": "\x00\x00\x00\x00\x00\x00\x00\x01",
	} {
		store := wildStore(t, map[string]string{
			".zarray": `{"shape": [4], "chunks": [2], "dtype": "` + dataType + `", "fill_value": null, "order": "C",
  "filters": null, "dimension_separator": ".", "compressor": null, "zarr_format": 2}`,
			".zattrs": "{}", "0": one + one,
		})
		a := must.Have(OpenArray(ctx, store, "", nil))
		if got := mustRead(Read[int64](ctx, a, Sel())); !slices.Equal(got, []int64{1, 1, math.MinInt64, math.MinInt64}) {
			t.Errorf("%s: %d, want 1, 1, NaT, NaT", dataType, got)
		}
		if docs := must.Have(a.Meta().Print()); string(docs[meta.DocArrayV2]) != string(must.Have(kv.Get(ctx, store, ".zarray"))) {
			t.Errorf("%s: printed as %s", dataType, docs[meta.DocArrayV2])
		}
	}
}

// bioformats2raw before 0.7 and n5-zarr, so Fiji, stored numbers as strings.
func TestFillStringsOfJava(t *testing.T) {
	ctx := context.Background()
	for _, fill := range []struct{ dataType, text, want string }{
		{">u2", "65535", "65535"}, {">i4", "-1", "-1"}, {"|u1", "0", "0"}, {">f4", "0.0", "0.0"}, {"<f8", "0", "0.0"},
	} {
		doc := `{"zarr_format":2,"shape":[2,3],"chunks":[1,3],"dtype":"` + fill.dataType + `","fill_value":"` + fill.text + `",` +
			`"order":"C","filters":null,"dimension_separator":"/","compressor":null}`
		a := must.Have(OpenArray(ctx, wildStore(t, map[string]string{".zarray": doc}), "", nil))
		m := a.Meta()
		if got := string(must.Have(m.Type.PrintFillV2(m.Fill))); got != fill.want {
			t.Errorf("%s %q: %s, want %s", fill.dataType, fill.text, got, fill.want)
		}
		if docs := must.Have(must.Have(m.ToV3(builtin.Registry())).Print()); !strings.Contains(string(docs[meta.DocV3]), `"fill_value": `+fill.want+",") {
			t.Errorf("%s %q is written as %s", fill.dataType, fill.text, docs[meta.DocV3])
		}
	}
}

// Filters name data types in every spelling that numpy.dtype takes; zarr-python keeps
// what it was given. New documents have type strings.
func TestFilterTypesOfNumPy(t *testing.T) {
	ctx := context.Background()
	v2 := must.Have(OpenArray(ctx, wildStore(t, map[string]string{
		".zarray": `{"zarr_format":2,"shape":[4],"chunks":[4],"dtype":"<i4","fill_value":0,"order":"C","compressor":null,` +
			`"filters":[{"id":"delta","dtype":"int32","astype":"i2"}]}`,
		"0": "\x05\x00\x01\x00\x01\x00\xfd\xff",
	}), "", nil))
	v3 := must.Have(OpenArray(ctx, wildStore(t, map[string]string{
		"zarr.json": `{"zarr_format":3,"node_type":"array","shape":[4],"data_type":"int32","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4]}},` +
			`"chunk_key_encoding":{"name":"v2"},"fill_value":0,"codecs":[{"name":"numcodecs.delta","configuration":{"dtype":"i4","astype":"int16"}},` +
			`{"name":"bytes","configuration":{"endian":"little"}}]}`,
		"0": "\x05\x00\x01\x00\x01\x00\xfd\xff",
	}), "", nil))
	for _, a := range []*Array{v2, v3} {
		if got := mustRead(Read[int32](ctx, a, Sel())); !slices.Equal(got, []int32{5, 6, 7, 4}) {
			t.Errorf("%v: %v", a.Meta().Version, got)
		}
	}
	docs := must.Have(must.Have(v2.Meta().ToV3(builtin.Registry())).Print())
	if doc := string(docs[meta.DocV3]); !strings.Contains(doc, `"<i4"`) || !strings.Contains(doc, `"<i2"`) {
		t.Errorf("written as %s", doc)
	}
	docs = must.Have(must.Have(v3.Meta().ToV2(builtin.Registry())).Print())
	if doc := string(docs[meta.DocArrayV2]); !strings.Contains(doc, `"dtype": "<i4"`) || !strings.Contains(doc, `"astype": "<i2"`) {
		t.Errorf("written as %s", doc)
	}
}

// The first accepted text of v3, which zarrita and zarr-python wrote early on, is told
// by its codec "endian". Its forms are refused in other documents.
func TestFirstTextOfV3(t *testing.T) {
	ctx := context.Background()
	doc := func(order, bytes string) string {
		return `{"zarr_format":3,"node_type":"array","shape":[2,3],"data_type":"bool","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,3]}},` +
			`"chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}},"fill_value":0,"codecs":[{"name":"transpose","configuration":{"order":"` + order + `"}},` +
			`{"name":"` + bytes + `","configuration":{"endian":"little"}}],"attributes":{}}`
	}
	for order, want := range map[string][]bool{"C": {true, true, false, false, false, true}, "F": {true, false, false, true, false, true}} {
		a := must.Have(OpenArray(ctx, wildStore(t, map[string]string{"zarr.json": doc(order, "endian"), "c/0/0": "\x01\x01\x00\x00\x00\x01"}), "", nil))
		if got := mustRead(Read[bool](ctx, a, Sel())); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", order, got, want)
		}
		if docs := must.Have(a.Meta().Print()); string(docs[meta.DocV3]) != doc(order, "endian") {
			t.Errorf("%s: printed as %s", order, docs[meta.DocV3])
		}
		if _, err := meta.ParseV3([]byte(doc(order, "bytes")), builtin.Registry()); err == nil {
			t.Errorf("%s: accepted without endian", order)
		}
	}
}

// Python stores half a surrogate pair, which is no text, in the names of attributes as
// in their values. Names stay apart, and are printed as they were.
func TestHalfSurrogatesInNames(t *testing.T) {
	text := `{"a\ud800b":1,"a\ud801b":"\udfff","\ud83d\ude00":2,"\udc00\ud800\n":{"\uDABC":3}}`
	a := must.Have(ParseAttributes([]byte(text)))
	if a.Len() != 4 || len(slices.Compact(a.Keys())) != 4 {
		t.Errorf("names %q", a.Keys())
	}
	if raw, ok := a.Get("a\xed\xa0\x80b"); !ok || string(raw) != "1" {
		t.Errorf("%s, %v", raw, ok)
	}
	must.Have(0, a.Set("more", 1))
	printed := must.Have(a.MarshalJSON())
	for _, part := range []string{`"a\ud800b":1`, `"a\ud801b":"\udfff"`, `"😀":2`, `"\udc00\ud800\n":{"\uDABC":3}`} {
		if !strings.Contains(string(printed), part) {
			t.Errorf("%s lacks %s", printed, part)
		}
	}
	if again := must.Have(ParseAttributes(printed)); !again.Equal(a) {
		t.Errorf("%s is not %s", printed, text)
	}
	if b := must.Have(ParseAttributes([]byte(strings.Replace(text, "d801", "d802", 1)))); b.Equal(must.Have(ParseAttributes([]byte(text)))) {
		t.Error("other names are equal")
	}
}

// What goes out as v3 has to open in zarr-python: it knows opaque bytes as raw_bytes,
// and does not know that quantize can change the data type.
func TestToV3ForZarrPython(t *testing.T) {
	arrayOf := func(dataType, filters string) *Meta {
		return must.Have(meta.ParseV2Array([]byte(`{"zarr_format":2,"shape":[4],"chunks":[2],"dtype":"`+dataType+`","fill_value":null,"order":"C","compressor":null,"filters":`+filters+`}`), nil, builtin.Registry()))
	}
	docs := must.Have(must.Have(arrayOf("|V4", "null").ToV3(builtin.Registry())).Print())
	if doc := string(docs[meta.DocV3]); !strings.Contains(doc, `"raw_bytes"`) || !strings.Contains(doc, `"fill_value": "AAAAAA=="`) {
		t.Errorf("written as %s", doc)
	}
	if _, err := arrayOf("<f8", `[{"id":"quantize","digits":1,"dtype":"<f8","astype":"<f4"}]`).ToV3(builtin.Registry()); !errors.Is(err, codecs.ErrNoForm) {
		t.Errorf("quantize to float32: %v", err)
	}
	if _, err := arrayOf("<f8", `[{"id":"quantize","digits":1,"dtype":"<f8","astype":"<f8"}]`).ToV3(builtin.Registry()); err != nil {
		t.Error(err)
	}
}

// A member that is missing inside another one is reported as missing, by its path.
func TestMissingMembersAreNamed(t *testing.T) {
	doc := func(grid, keys string) string {
		return `{"zarr_format":3,"node_type":"array","shape":[4],"data_type":"int8","chunk_grid":` + grid + `,"chunk_key_encoding":` + keys + `,"fill_value":0,"codecs":["bytes"]}`
	}
	for text, want := range map[string]string{
		doc(`{"name":"regular"}`, `"default"`):                                       "zarr.json: chunk_grid.configuration.chunk_shape: missing",
		doc(`{"configuration":{"chunk_shape":[2]}}`, `"default"`):                    "zarr.json: chunk_grid.name: missing",
		doc(`{"name":"rectilinear","configuration":{}}`, `"default"`):                "zarr.json: chunk_grid.configuration.kind: missing",
		doc(`{"name":"rectilinear","configuration":{"kind":"inline"}}`, `"default"`): "zarr.json: chunk_grid.configuration.chunk_shapes: missing",
		doc(`{"name":"regular","configuration":{"chunk_shape":[2]}}`, `{}`):          "zarr.json: chunk_key_encoding.name: missing",
	} {
		if _, err := meta.ParseV3([]byte(text), builtin.Registry()); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
