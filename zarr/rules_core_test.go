package zarr

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
	"github.com/zarrdb/zarrdb/zarr/internal/metatest"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// follows checks documents of v3 that keep or break a rule.
func follows(rows ...metatest.Row) func(*testing.T) {
	return func(t *testing.T) {
		for _, r := range rows {
			r.Check(t, meta.DocV3, func(doc []byte) (*Meta, error) { return meta.ParseV3(doc, builtin.Registry()) })
		}
	}
}

// all is follows for a row for each value of a member: right ones, and wrong ones
// by the field that the error must name.
func all(base, member string, right []string, wrong map[string]string) func(*testing.T) {
	var rows []metatest.Row
	for _, v := range right {
		rows = append(rows, metatest.Row{Base: base, Set: []string{member, v}})
	}
	for v, field := range wrong {
		rows = append(rows, metatest.Row{Base: base, Set: []string{member, v}, Field: field})
	}
	return follows(rows...)
}

// mandatory is follows for documents that lack a member.
func mandatory(base string, names ...string) func(*testing.T) {
	var rows []metatest.Row
	for _, name := range names {
		rows = append(rows, metatest.Row{Base: base, Set: []string{name, ""}, Field: name})
	}
	return follows(rows...)
}

// newDoc is the document of an array of v3 that was created from a spec.
func newDoc(t *testing.T, s Spec) map[string]json.RawMessage {
	t.Helper()
	store := kv.NewMem()
	create(t, store, "a", s)
	return document(t, store, "a/"+meta.DocV3)
}

var anyJSON = []string{`{}`, `{"a":null,"":[1,{"b":-2.5e3}],"c":"é\n","d":true,"e":{"f":{}}}`}

// extension holds the ways to spell and to misspell an extension.
func extension(member, good string) func(*testing.T) {
	with := func(extra string) string { return strings.TrimSuffix(good, "}") + extra + "}" }
	wrong := map[string]string{
		`7`:                        member,
		with(`,"extra":1`):         member + ".extra",
		`{"name":7}`:               member + ".name",
		`{"configuration":{}}`:     member + ".name",
		`{"name":"no such thing"}`: member + ".name",
	}
	if member == "data_type" { // its errors do not say more
		for v := range wrong {
			wrong[v] = member
		}
	}
	return all(metatest.ArrayDoc, member, []string{good, with(`,"must_understand":true`)}, wrong)
}

// codecList is a list with a codec after the one that makes the bytes.
func codecList(c string) string {
	return `[{"name":"bytes","configuration":{"endian":"little"}},` + c + `]`
}

var coreRules = checks{
	"core: Concepts and terminology 1": func(t *testing.T) {
		for path, want := range map[string]string{"/": "", "/a": "a", "/a/b": "a/b"} {
			if got, err := meta.CleanPath(path); err != nil || got != want {
				t.Errorf("%q: %q, %v", path, got, err)
			}
		}
		for _, path := range []string{"/a/", "//", "/a//b"} {
			if _, err := meta.CleanPath(path); !errors.Is(err, ErrPath) {
				t.Errorf("%q: %v", path, err)
			}
		}
	},
	"core: Array metadata 1": func(t *testing.T) {
		store := kv.NewMem()
		create(t, store, "a", Spec{Shape: []int64{1}, DataType: "int8"})
		wantKeys(t, store, "a/zarr.json", "zarr.json")
	},
	"core: Mandatory 1": mandatory(metatest.ArrayDoc, "zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"),
	"core: Mandatory 2": mandatory(metatest.GroupDoc, "zarr_format", "node_type"),
	"core: zarr_format 1": all(metatest.ArrayDoc, "zarr_format", []string{"3"},
		map[string]string{"2": "zarr_format", "4": "zarr_format", `"3"`: "zarr_format", "3.0": "zarr_format", "null": "zarr_format"}),
	"core: zarr_format 2": all(metatest.GroupDoc, "zarr_format", []string{"3"}, map[string]string{"2": "zarr_format", `"3"`: "zarr_format"}),
	"core: node_type 1":   all(metatest.ArrayDoc, "node_type", []string{`"array"`}, map[string]string{`"Array"`: "node_type", "null": "node_type", `"group"`: "shape"}),
	"core: node_type 2":   all(metatest.GroupDoc, "node_type", []string{`"group"`}, map[string]string{`"Group"`: "node_type", "null": "node_type", `"array"`: "shape"}),
	"core: data_type 1":   extension("data_type", `{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":1}}`),
	"core: data_type 2": func(t *testing.T) {
		for _, name := range []string{"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128", "r16"} {
			if got := newDoc(t, Spec{Shape: []int64{1}, DataType: name})["data_type"]; string(got) != `"`+name+`"` {
				t.Errorf("%s: %s", name, got)
			}
		}
	},
	"core: chunk_grid 1": extension("chunk_grid", `{"name":"regular","configuration":{"chunk_shape":[2,3]}}`),
	"core: chunk_grid 2": func(t *testing.T) {
		all(metatest.ArrayDoc, "chunk_grid", nil, map[string]string{`"regular"`: "chunk_grid.configuration.chunk_shape", `{"name":"regular"}`: "chunk_grid.configuration.chunk_shape"})(t)
		got := newDoc(t, Spec{Shape: []int64{4}, Chunks: []int64{3}, DataType: "int8"})["chunk_grid"]
		if !jsontext.Same(got, json.RawMessage(`{"name":"regular","configuration":{"chunk_shape":[3]}}`)) {
			t.Errorf("%s", got)
		}
	},
	"core: chunk_grid 3": all(metatest.ArrayDoc, "chunk_grid", nil, map[string]string{
		`{"name":"Regular","configuration":{"chunk_shape":[2,3]}}`: "chunk_grid.name",
		`{"name":"regular","configuration":{"shape":[2,3]}}`:       "chunk_grid.configuration.shape",
		`{"name":"regular","configuration":{}}`:                    "chunk_grid.configuration.chunk_shape"}),
	"core: chunk_grid 4": all(metatest.ArrayDoc, "chunk_grid", nil, map[string]string{
		`{"name":"regular","configuration":{"chunk_shape":6}}`:       "chunk_grid.configuration.chunk_shape",
		`{"name":"regular","configuration":{"chunk_shape":[2]}}`:     "chunk_grid.configuration.chunk_shape",
		`{"name":"regular","configuration":{"chunk_shape":[2,3,1]}}`: "chunk_grid.configuration.chunk_shape",
		`{"name":"regular","configuration":{"chunk_shape":[2,3.5]}}`: "chunk_grid.configuration.chunk_shape[1]",
		`{"name":"regular","configuration":{"chunk_shape":["2",3]}}`: "chunk_grid.configuration.chunk_shape[0]"}),
	"core: chunk_key_encoding 1": extension("chunk_key_encoding", `{"name":"default","configuration":{"separator":"/"}}`),
	"core: fill_value 2": func(t *testing.T) {
		mandatory(metatest.ArrayDoc, "fill_value")(t)
		create(t, kv.NewMem(), "a", Spec{Shape: []int64{1}, DataType: "float64"})
	},
	"core: fill_value 3": func(t *testing.T) {
		for name, want := range map[string]string{"bool": "false", "int8": "0", "float32": "0.0", "complex64": "[0.0,0.0]", "string": `""`, "bytes": `""`, "r16": "[0,0]"} {
			if got := newDoc(t, Spec{Shape: []int64{1}, DataType: name})["fill_value"]; string(jsontext.Canonical(got)) != want {
				t.Errorf("%s: %s", name, got)
			}
		}
	},
	"core: codecs 1": all(metatest.ArrayDoc, "codecs",
		[]string{codecList(`{"name":"gzip","configuration":{"level":1}}`), codecList(`{"name":"crc32c"}`), codecList(`"crc32c"`), codecList(`{"name":"crc32c","must_understand":true}`)},
		map[string]string{codecList(`7`): "codecs[1]", codecList(`{"name":7}`): "codecs[1]", codecList(`{"name":null,"must_understand":false}`): "codecs[1]", codecList(`{"configuration":{}}`): "codecs[1]",
			codecList(`{"name":"crc32c","extra":1}`): "codecs[1]", codecList(`{"name":"crc32c","configuration":[]}`): "codecs[1]"}),
	"core: codecs 2":     all(metatest.ArrayDoc, "codecs", nil, map[string]string{`[]`: "codecs", `[{"name":"gzip","configuration":{"level":1}}]`: "codecs[0]", `[{"name":"transpose","configuration":{"order":[0,1]}}]`: "codecs"}),
	"core: attributes 1": all(metatest.ArrayDoc, "attributes", anyJSON, map[string]string{`[]`: "attributes", `null`: "attributes", `"a"`: "attributes"}),
	"core: attributes 2": attributesKept(metatest.ArrayDoc),
	"core: attributes 3": all(metatest.GroupDoc, "attributes", anyJSON, map[string]string{`[]`: "attributes", `null`: "attributes", `1`: "attributes"}),
	"core: attributes 4": attributesKept(metatest.GroupDoc),
	"core: storage_transformers 1": all(metatest.ArrayDoc, "storage_transformers", []string{`[]`, `[{"name":"x","must_understand":false}]`, `[{"name":"x","configuration":{"a":1},"must_understand":false}]`},
		map[string]string{`{}`: "storage_transformers", `[7]`: "storage_transformers[0]", `[{"name":"x"}]`: "storage_transformers[0]", `[{"must_understand":false}]`: "storage_transformers[0].name",
			`[{"name":"x","configuration":7,"must_understand":false}]`: "storage_transformers[0].configuration"}),
	"core: dimension_names 1": all(metatest.ArrayDoc, "dimension_names", []string{`["y","x"]`, `[null,"x"]`, `[null,null]`, `["",""]`},
		map[string]string{`["x"]`: "dimension_names", `["x","y","z"]`: "dimension_names", `"xy"`: "dimension_names", `["x",1]`: "dimension_names[1]"}),
	"core: dimension_names 2": all(metatest.ArrayDoc, "dimension_names", []string{`["x","x"]`}, nil),
	"core: Unknown 1":         all(metatest.ArrayDoc, "x", []string{`{"must_understand":false}`}, map[string]string{`{}`: "x", `1`: "x", `{"must_understand":true}`: "x"}),
	"core: Unknown 2":         all(metatest.GroupDoc, "x", []string{`{"must_understand":false}`}, map[string]string{`{}`: "x", `1`: "x", `{"must_understand":true}`: "x"}),

	"core: Node names 1": names([]string{"a", "é", "漢", "\U0001f600", " ", "a b", "A", "c"}, "\xff", "a\xc3"),
	"core: Node names 2": names(nil, ""),
	"core: Node names 3": names([]string{`\`}, "/", "a/b", "/a"),
	"core: Node names 4": names([]string{"...a", ".a."}, ".", "..", "...", "......"),
	"core: Node names 5": names([]string{"_", "_a", "a__"}, "__", "__a", "__zarr"),

	"core: Chunk grids 1": func(t *testing.T) {
		for _, k := range []ChunkKeys{meta.DefaultKeys('/', 3), meta.DefaultKeys('.', 3), meta.V2Keys('/', 3), meta.V2Keys('.', 3)} {
			seen := map[string]bool{}
			for i := range int64(13 * 13 * 13) {
				coords := []int64{i % 13, i / 13 % 13, i / 169}
				key := string(k.Append(nil, coords))
				if got, ok := k.Parse(key); seen[key] || strings.Trim(key, "c0123456789./") != "" || !ok || !slices.Equal(got, coords) {
					t.Fatalf("%v: %q", coords, key)
				}
				seen[key] = true
			}
		}
	},
	"core: Codecs 1": func(t *testing.T) {
		flip, little, gzip := `{"name":"transpose","configuration":{"order":[1,0]}}`, `{"name":"bytes","configuration":{"endian":"little"}}`, `{"name":"gzip","configuration":{"level":1}}`
		list := func(c ...string) string { return "[" + strings.Join(c, ",") + "]" }
		all(metatest.ArrayDoc, "codecs", []string{list(little), list(flip, flip, little), list(little, gzip, gzip, `"crc32c"`), list(flip, little, gzip)},
			map[string]string{list(gzip, little): "codecs[0]", list(little, flip): "codecs[1]", list(little, little): "codecs[1]", list(flip): "codecs", list(flip, gzip): "codecs[1]"})(t)
	},
	"core: Codecs 4": follows(
		metatest.Row{Base: metatest.ArrayDoc, Set: []string{"data_type", `"string"`, "fill_value", `""`}, Field: "codecs[0]"},
		metatest.Row{Base: metatest.ArrayDoc, Set: []string{"codecs", `["vlen-utf8"]`}, Field: "codecs[0]"},
		metatest.Row{Base: metatest.ArrayDoc, Set: []string{"codecs", `[{"name":"numcodecs.packbits","configuration":{}},"bytes"]`}, Field: "codecs[0]"},
	),
	"core: Determination of encoded representations 1": func(t *testing.T) {
		// The shard comes after the transpose, so it has the shape [3, 2].
		inner := func(shape string) string {
			return `[{"name":"transpose","configuration":{"order":[1,0]}},{"name":"sharding_indexed","configuration":{"chunk_shape":` + shape +
				`,"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}]`
		}
		all(metatest.ArrayDoc, "codecs", []string{inner("[3,1]"), inner("[1,2]")}, map[string]string{inner("[1,3]"): "codecs[1].configuration.chunk_shape", inner("[2,1]"): "codecs[1].configuration.chunk_shape"})(t)
	},
	"core: Operations 1": func(t *testing.T) {
		store := kv.NewMem()
		must.Do(t, store.Set(context.Background(), "zarr.json", []byte(metatest.GroupDoc)))
		must.Do(t, store.Set(context.Background(), "a/zarr.json", []byte(metatest.ArrayDoc)))
		must.Do(t, store.Set(context.Background(), "g/zarr.json", []byte(metatest.GroupDoc)))
		must.Do(t, store.Set(context.Background(), "other/x", nil))
		if got := paths(store, "", nil); !slices.Equal(got, []string{"/", "a", "g/"}) {
			t.Errorf("%q", got)
		}
	},
	"core: Operations 2": func(t *testing.T) {
		store := kv.NewMem()
		create(t, store, "a", Spec{Shape: []int64{1}, DataType: "int8"})
		view := struct{ kv.Reader }{store}
		for n, err := range must.Have(OpenGroup(context.Background(), view, "", nil)).Children(context.Background()) {
			if !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%v, %v", n, err)
			}
		}
		must.Have(OpenArray(context.Background(), view, "a", nil))
	},
	"core: Stores 1":                   storeOperations,
	"core: Abstract store interface 2": storeRanges,
	"core: Objects 1": all(metatest.ArrayDoc, "chunk_grid", nil, map[string]string{
		`{"name":["regular"],"configuration":{"chunk_shape":[2,3]}}`: "chunk_grid.name", `{"name":null}`: "chunk_grid.name", `{}`: "chunk_grid.name"}),
	"core: Objects 2": all(metatest.ArrayDoc, "chunk_grid", nil, map[string]string{
		`{"name":"regular","configuration":[2,3]}`: "chunk_grid.configuration", `{"name":"regular","configuration":null}`: "chunk_grid.configuration"}),
	"core: Short-hand names 1": func(t *testing.T) {
		reg := builtin.Registry()
		for member, forms := range map[string][2]string{
			"data_type":          {`"int16"`, `{"name":"int16"}`},
			"chunk_key_encoding": {`"default"`, `{"name":"default"}`},
			"codecs":             {codecList(`"crc32c"`), codecList(`{"name":"crc32c"}`)},
		} {
			a, b := must.Have(meta.ParseV3([]byte(metatest.Edit(t, metatest.ArrayDoc, member, forms[0])), reg)), must.Have(meta.ParseV3([]byte(metatest.Edit(t, metatest.ArrayDoc, member, forms[1])), reg))
			if d := a.Diff(b); len(d) > 0 {
				t.Errorf("%s: %v", member, d)
			}
		}
	},
	"core: must_understand 1": func(t *testing.T) {
		for base, members := range map[string][]string{metatest.ArrayDoc: {"x", "storage_transformer", "$schema"}, metatest.GroupDoc: {"x", "shape", "members"}} {
			for _, m := range members {
				all(base, m, []string{`{"must_understand":false}`, `{"must_understand":false,"name":"y","z":[]}`},
					map[string]string{`{}`: m, `null`: m, `[]`: m, `{"must_understand":"false"}`: m, `{"must_understand":0}`: m, `{"must_understand":true}`: m})(t)
			}
		}
	},
	"core: Extension naming 1": func(t *testing.T) {
		name := regexp.MustCompile(`^[a-z][a-z0-9-_.]+$`)
		_, list := builtin.Registry().Names()
		for _, n := range append(list, dtype.Names()...) {
			if !name.MatchString(n) {
				t.Errorf("%q", n)
			}
		}
	},
	"data-types: Permitted fill values 1": fills("bool", []string{"true", "false"}, "0", "1", `"true"`, "null", "[]"),
	"data-types: Permitted fill values 2": func(t *testing.T) {
		for bits, typ := range map[uint]string{8: "int8", 16: "int16", 32: "int32", 64: "int64"} {
			lo, hi, top := int64(-1)<<(bits-1), int64(1)<<(bits-1)-1, uint64(1)<<(bits-1)
			fills(typ, []string{"0", "-1", fmt.Sprint(lo), fmt.Sprint(hi)}, fmt.Sprint(top), fmt.Sprintf("-%d", top+1), "1.0", "1e0", "1.5", `"1"`, "null", "true")(t)
		}
		for typ, top := range map[string]string{"uint8": "255", "uint16": "65535", "uint32": "4294967295", "uint64": "18446744073709551615"} {
			fills(typ, []string{"0", top}, "-1", "18446744073709551616", "1.0", "1E0", `"1"`, "null")(t)
		}
		fills("uint8", nil, "256")(t)
		fills("uint16", nil, "65536")(t)
		fills("uint32", nil, "4294967296")(t)
	},
	"data-types: Permitted fill values 3": func(t *testing.T) {
		for _, typ := range []string{"complex64", "complex128"} {
			fills(typ, []string{"[1,2]", `["-Infinity","NaN"]`, "[0.5,-1e3]"}, "1", "[1]", "[1,2,3]", `[1,"2"]`, `["inf",0]`, "[1,null]", "null", `"1+2j"`)(t)
		}
		fills("complex64", []string{`["0x7fc00001",0]`}, `["0x7ff8000000000001",0]`)(t)
		fills("complex128", []string{`["0x7ff8000000000001",0]`}, `["0x7fc00001",0]`)(t)
	},

	"chunk-key-encodings/default: Description 1": separators("default", "c/1/2", "c.1.2"),
	"chunk-key-encodings/v2: Description 1":      separators("v2", "1.2", "1/2"),
}

// attributesKept: attributes come back as they were, whatever they are.
func attributesKept(base string) func(*testing.T) {
	return func(t *testing.T) {
		for _, text := range append(anyJSON, `{"a":[[[]]],"zarr_format":1,"must_understand":7}`) {
			m := must.Have(meta.ParseV3([]byte(metatest.Edit(t, base, "attributes", text)), builtin.Registry()))
			if !jsontext.Same(m.Attributes.Text(), json.RawMessage(text)) {
				t.Errorf("%s: %s", text, m.Attributes.Text())
			}
		}
	}
}

// names checks what nodes may be called.
func names(right []string, wrong ...string) func(*testing.T) {
	return func(t *testing.T) {
		spec := Spec{Shape: []int64{1}, DataType: "int8"}
		for _, name := range right {
			store := kv.NewMem()
			create(t, store, "g/"+name, spec)
			if n := must.Have(Open(context.Background(), store, "/g/"+name, nil)); n.Name() != name {
				t.Errorf("%q: %q", name, n.Name())
			}
		}
		for _, name := range wrong {
			if err := cmp.Or(meta.CheckName(name), meta.CheckNewPath(V3, name)); !errors.Is(err, ErrPath) {
				t.Errorf("%q: %v", name, err)
			}
			if strings.Contains(name, "/") {
				continue // a path
			}
			if _, err := Create(context.Background(), kv.NewMem(), "g/"+name+"/x", spec, nil); !errors.Is(err, ErrPath) {
				t.Errorf("%q was created: %v", name, err)
			}
		}
	}
}

// fills checks the fill values of a data type of v3.
func fills(typ string, right []string, wrong ...string) func(*testing.T) {
	return func(t *testing.T) {
		d, ok := dtype.Named(typ)
		if !ok {
			t.Fatal(typ)
		}
		for _, v := range right {
			if elem, err := d.ParseFillV3(json.RawMessage(v)); err != nil || len(elem) != d.Size() {
				t.Errorf("%s %s: %x, %v", typ, v, elem, err)
			}
		}
		for _, v := range wrong {
			if elem, err := d.ParseFillV3(json.RawMessage(v)); err == nil {
				t.Errorf("%s %s: %x", typ, v, elem)
			}
		}
	}
}

// separators checks a chunk key encoding with the separators that it may have,
// the default first.
func separators(name, byDefault, other string) func(*testing.T) {
	return func(t *testing.T) {
		object := func(config string) string { return `{"name":"` + name + `","configuration":` + config + `}` }
		sep := func(key string) string { return string(strings.Trim(key, "c012")[0]) }
		for doc, want := range map[string]string{`"` + name + `"`: byDefault, `{"name":"` + name + `"}`: byDefault, object(`{}`): byDefault,
			object(`{"separator":"` + sep(byDefault) + `"}`): byDefault, object(`{"separator":"` + sep(other) + `"}`): other} {
			m := must.Have(meta.ParseV3([]byte(metatest.Edit(t, metatest.ArrayDoc, "chunk_key_encoding", doc)), builtin.Registry()))
			if got := string(m.Keys.Append(nil, []int64{1, 2})); got != want {
				t.Errorf("%s: %q, want %q", doc, got, want)
			}
		}
		field := "chunk_key_encoding.configuration."
		all(metatest.ArrayDoc, "chunk_key_encoding", nil, map[string]string{
			object(`{"separator":"-"}`): field + "separator", object(`{"separator":""}`): field + "separator", object(`{"separator":"./"}`): field + "separator",
			object(`{"separator":null}`): field + "separator", object(`{"sep":"."}`): field + "sep"})(t)
	}
}

// storeOperations does once what the abstract store interface lists.
func storeOperations(t *testing.T) {
	ctx, s := context.Background(), kv.NewMem()
	for _, key := range []string{"a", "d/e", "d/f/g", "d/f/h", "A"} {
		must.Do(t, s.Set(ctx, key, []byte("value of "+key)))
	}
	if got := must.Have(kv.Get(ctx, s, "a")); string(got) != "value of a" {
		t.Errorf("get: %q", got)
	}
	if got := must.Have(kv.GetMany(ctx, s, []kv.Request{{Key: "d/e", Range: kv.Span(0, 5)}, {Key: "d/e", Range: kv.From(9)}, {Key: "d/e", Range: kv.Span(0, 1)}})); string(slices.Concat(got...)) != "valued/ev" {
		t.Errorf("get_partial_values: %q", got)
	}
	if got := must.Have(kv.Keys(ctx, s, "")); !slices.Equal(got, []string{"A", "a", "d/e", "d/f/g", "d/f/h"}) {
		t.Errorf("list: %q", got)
	}
	if got := must.Have(kv.Keys(ctx, s, "d/f/")); !slices.Equal(got, []string{"d/f/g", "d/f/h"}) {
		t.Errorf("list_prefix: %q", got)
	}
	var dir []string
	for e, err := range kv.ListDir(ctx, s, "d/") {
		must.Do(t, err)
		dir = append(dir, fmt.Sprint(e.Name, e.Prefix))
	}
	if !slices.Equal(dir, []string{"efalse", "ftrue"}) {
		t.Errorf("list_dir: %q", dir)
	}
	must.Do(t, s.Delete(ctx, "a"))
	must.Do(t, kv.DeleteAll(ctx, s, []string{"A", "nothing"}))
	must.Do(t, kv.DeletePrefix(ctx, s, "d/f/"))
	wantKeys(t, s, "d/e")
	if _, err := kv.Get(ctx, s, "a"); !errors.Is(err, kv.ErrNotFound) || must.Have(kv.Exists(ctx, s, "a")) {
		t.Errorf("erase: %v", err)
	}
}

// storeRanges writes parts of a value.
func storeRanges(t *testing.T) {
	ctx, s := context.Background(), kv.NewMem()
	must.Do(t, s.Set(ctx, "a", []byte("0123456789")))
	for _, at := range []int64{2, 6, 4, 9} {
		must.Do(t, kv.SetRange(ctx, s, "a", at, []byte("xy")))
	}
	if got := must.Have(kv.Get(ctx, s, "a")); string(got) != "01xyxyxy8xy" {
		t.Errorf("%q", got)
	}
}
