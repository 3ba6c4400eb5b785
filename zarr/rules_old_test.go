package zarr

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
	"github.com/zarrdb/zarrdb/zarr/internal/metatest"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// followsOld is follows for documents of v1 and v2.
func followsOld(name string, parse func([]byte) (*Meta, error), rows ...metatest.Row) func(*testing.T) {
	return func(t *testing.T) {
		for _, r := range rows {
			r.Check(t, name, parse)
		}
	}
}

// lacking has a row for each member that a document must have.
func lacking(base string, members ...string) (rows []metatest.Row) {
	for _, name := range members {
		rows = append(rows, metatest.Row{Base: base, Set: []string{name, ""}, Field: name})
	}
	return rows
}

// typeRows has rows for data types, of which the wrong ones follow an empty one.
func typeRows(base string, types ...string) (rows []metatest.Row) {
	field := ""
	for _, t := range types {
		if t == "" {
			field = "dtype"
			continue
		}
		rows = append(rows, metatest.Row{Base: base, Set: []string{"dtype", t, "fill_value", "null"}, Field: field})
	}
	return rows
}

// uninitialized: where there is no chunk, and in a chunk that is written in part,
// elements have the fill value.
func uninitialized(v Version) func(*testing.T) {
	return func(t *testing.T) {
		ctx, store := context.Background(), kv.NewMem()
		a := create(t, store, "a", Spec{Version: v, Shape: []int64{5}, Chunks: []int64{2}, DataType: "int32", FillValue: json.RawMessage("-7")})
		if got := mustRead(Read[int32](ctx, a, Sel())); !slices.Equal(got, []int32{-7, -7, -7, -7, -7}) {
			t.Errorf("%v", got)
		}
		must.Do(t, Write(ctx, a, Sel(At(2)), []int32{1}))
		if got := mustRead(Read[int32](ctx, must.Have(OpenArray(ctx, store, "a", nil)), Sel())); !slices.Equal(got, []int32{-7, -7, 1, -7, -7}) {
			t.Errorf("%v", got)
		}
	}
}

// ancestors creates below existing and missing groups of v2.
func ancestors(array bool, path string, before, after []string) func(*testing.T) {
	return func(t *testing.T) {
		store := kv.NewMem()
		for _, p := range before {
			makeGroup(t, store, p, V2)
		}
		if array {
			create(t, store, path, Spec{Version: V2, Shape: []int64{1}, DataType: "int8"})
		} else {
			makeGroup(t, store, path, V2)
		}
		if got := paths(store, "", nil); !slices.Equal(got, after) {
			t.Errorf("%q, want %q", got, after)
		}
		for _, key := range must.Have(kv.Keys(context.Background(), store, "")) {
			if doc := document(t, store, key); len(doc) > 1 && !array {
				t.Errorf("%s: %s", key, doc)
			}
		}
	}
}

var oldRules = checks{
	"v1: Metadata 1": followsOld(meta.DocArrayV1, metatest.ReadV1, lacking(metatest.ArrayDocV1, "zarr_format", "shape", "chunks", "dtype", "compression", "compression_opts", "fill_value", "order")...),
	"v1: Metadata 2": func(t *testing.T) {
		plain := must.Have(metatest.ReadV1([]byte(metatest.ArrayDocV1)))
		for _, x := range [][]string{{"filters", `[{"id":"delta","dtype":"<i2"}]`}, {"compressor", "null"}, {"dimension_separator", `"/"`}, {"x", "{}"}, {"node_type", `"group"`}} {
			m := must.Have(metatest.ReadV1([]byte(metatest.Edit(t, metatest.ArrayDocV1, x...))))
			if m.Keys != plain.Keys || !m.Type.Equal(plain.Type) || !jsontext.Same(must.Have(m.Codecs.PrintV3()), must.Have(plain.Codecs.PrintV3())) || string(m.Fill) != string(plain.Fill) {
				t.Errorf("%q is taken into account", x)
			}
		}
	},
	"v1: Metadata 3": followsOld(meta.DocArrayV1, metatest.ReadV1, typeRows(metatest.ArrayDocV1, `"<i4"`, `">i4"`, `"|b1"`, `"|S12"`, "", `"i4"`, `"|i4"`, `"|f8"`, `"=f8"`, `[["a","f4"]]`)...),
	"v1: Chunks 1":   uninitialized(V1),
	"v1: Attributes 1": func(t *testing.T) {
		store := kv.NewMem()
		create(t, store, "a", Spec{Version: V1, Shape: []int64{1}, DataType: "int8"})
		wantKeys(t, store, "a/attrs", "a/meta")
		if got := document(t, store, "a/attrs"); len(got) != 0 {
			t.Errorf("%s", got)
		}
	},

	"v2: Metadata 1": followsOld(meta.DocArrayV2, metatest.ReadV2, lacking(metatest.ArrayDocV2, "zarr_format", "shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters")...),
	"v2: Metadata 2": followsOld(meta.DocArrayV2, metatest.ReadV2, metatest.Row{Base: metatest.ArrayDocV2, Set: []string{"compressor", `{"level":1}`}, Field: "compressor"},
		metatest.Row{Base: metatest.ArrayDocV2, Set: []string{"compressor", `"zlib"`}, Field: "compressor"}, metatest.Row{Base: metatest.ArrayDocV2, Set: []string{"compressor", `{"id":7}`}, Field: "compressor"}),
	"v2: Metadata 3": followsOld(meta.DocArrayV2, metatest.ReadV2, metatest.Row{Base: metatest.ArrayDocV2, Set: []string{"filters", `[{"dtype":"<i2"}]`}, Field: "filters[0]"},
		metatest.Row{Base: metatest.ArrayDocV2, Set: []string{"filters", `["delta"]`}, Field: "filters[0]"}),
	"v2: Metadata 4": func(t *testing.T) {
		for set, want := range map[string]string{"": "1.2", `"."`: "1.2", `"/"`: "1/2"} {
			m := must.Have(metatest.ReadV2([]byte(metatest.Edit(t, metatest.ArrayDocV2, "dimension_separator", set))))
			if got := string(m.Keys.Append(nil, []int64{1, 2})); got != want {
				t.Errorf("%q: %q", set, got)
			}
		}
	},
	"v2: Metadata 5": followsOld(meta.DocArrayV2, metatest.ReadV2, typeRows(metatest.ArrayDocV2, `"<i4"`, `">i4"`, `"|b1"`, `"|S12"`, `"|u1"`, "", `"i4"`, `"|i4"`, `"|f8"`, `"=f8"`, `"|U3"`, `[["a","f4"]]`)...),
	"v2: Metadata 6": followsOld(meta.DocArrayV2, metatest.ReadV2, typeRows(metatest.ArrayDocV2, `"<M8[ns]"`, `">m8[D]"`, `"<M8[25s]"`, "", `"<M8"`, `"<m8"`, `"<M8[]"`, `"<M8[x]"`, `"<m4[s]"`, `[["t","<M8"]]`)...),
	"v2: Metadata 7": uninitialized(V2),
	"v2: Logical storage paths 1": func(t *testing.T) {
		for in, want := range map[string]string{`\a\b`: "a/b", "//a": "a", "a//": "a", "a///b": "a/b", `\\a/\/b\`: "a/b", "": "", "/": ""} {
			if got, err := meta.CleanPathV2(in); err != nil || got != want {
				t.Errorf("%q: %q, %v", in, got, err)
			}
		}
		store := kv.NewMem()
		create(t, store, `/foo\\bar//`, Spec{Version: V2, Shape: []int64{1}, DataType: "int8"})
		wantKeys(t, store, ".zgroup", "foo/.zgroup", "foo/bar/.zarray")
	},
	"v2: Logical storage paths 2": func(t *testing.T) {
		for _, path := range []string{".", "..", "a/./b", `a\..\b`, "/../", "a/.."} {
			store := kv.NewMem()
			if _, err := Create(context.Background(), store, path, Spec{Version: V2, Shape: []int64{1}, DataType: "int8"}, nil); !errors.Is(err, ErrPath) {
				t.Errorf("%q: %v", path, err)
			}
			wantKeys(t, store)
		}
	},
	"v2: Groups 1": ancestors(false, "foo/bar", nil, []string{"/", "foo/", "foo/bar/"}),
	"v2: Groups 2": ancestors(false, "foo/bar", []string{"foo"}, []string{"/", "foo/", "foo/bar/"}),
	"v2: Groups 3": ancestors(true, "foo/bar/baz", nil, []string{"/", "foo/", "foo/bar/", "foo/bar/baz"}),
	"v2: Groups 4": ancestors(true, "foo/bar/baz", []string{"foo/other"}, []string{"/", "foo/", "foo/bar/", "foo/bar/baz", "foo/other/"}),
	"v2: Groups 5": func(t *testing.T) {
		for _, doc := range []string{`{}`, `{"zarr_format":3}`, `{"zarr_format":"2"}`, `[]`} {
			if _, err := meta.ParseV2Group([]byte(doc), nil); !errors.Is(err, ErrMetadata) {
				t.Errorf("%s: %v", doc, err)
			}
		}
		must.Have(meta.ParseV2Group([]byte(`{"zarr_format":2}`), nil))
	},
	"v2: Groups 6": func(t *testing.T) {
		store := kv.NewMem()
		must.Have(CreateGroup(context.Background(), store, "g", attributesOf(`{"x":1}`), &OpenOptions{Version: V2}))
		for _, key := range []string{".zgroup", "g/.zgroup"} {
			if doc := document(t, store, key); len(doc) != 1 || string(doc["zarr_format"]) != "2" {
				t.Errorf("%s: %s", key, doc)
			}
		}
	},
	"early draft: Store interface 1": storeOperations,
}
