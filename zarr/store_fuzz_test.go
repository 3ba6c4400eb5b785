package zarr

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/internal/metatest"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// fuzzLayouts are where a store of each format has the document, the attributes
// and the chunks of an array at its root.
var fuzzLayouts = []struct{ doc, attrs, chunks, entry string }{
	{meta.DocV3, "", "", ""},
	{meta.DocArrayV2, meta.DocAttrsV2, "", ""},
	{meta.DocArrayV1, meta.DocAttrsV1, "", ""},
	{"meta/" + meta.DocArrayDraft, "", "data/", ""},
	{"meta/root." + meta.DocArrayDraft, "", "data/root/", metatest.EntryDocDraft},
}

const (
	shardDoc = `{"zarr_format":3,"node_type":"array","shape":[4,6],"data_type":"int16","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4,6]}},
"chunk_key_encoding":"default","fill_value":7,"codecs":[{"name":"sharding_indexed","configuration":{"chunk_shape":[2,3],"codecs":` + littleIndex + `,
"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},"crc32c"]}}]}`
	stringDoc = `{"zarr_format":3,"node_type":"array","shape":[3],"data_type":"string","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},
"chunk_key_encoding":"default","fill_value":"","codecs":["vlen-utf8"]}`
)

// FuzzStore opens arrays of any metadata with any bytes as their first chunk, and
// reads all of them and single elements, with and without a cache, in the ways of
// small and of large arrays: they must agree.
func FuzzStore(f *testing.F) {
	for _, s := range []struct {
		layout byte
		doc    string
	}{{0, metatest.ArrayDoc}, {0, shardDoc}, {0, stringDoc}, {0, metatest.GroupDoc}, {1, metatest.ArrayDocV2}, {2, metatest.ArrayDocV1}, {3, metatest.ArrayDocDraft}, {4, metatest.ArrayDocDraft}} {
		for _, chunk := range fuzzChunks(f, int(s.layout), s.doc) {
			f.Add(s.layout, []byte(s.doc), []byte(`{"x":1}`), chunk)
		}
	}
	f.Fuzz(func(t *testing.T, layout byte, doc, attrs, chunk []byte) {
		ctx, store := context.Background(), fuzzStore(t, int(layout), doc, attrs)
		for n, err := range Walk(ctx, store, "", nil) {
			if err == nil && n.Path() != "" && layout%5 < 3 {
				t.Fatalf("a node at %q", n.Path())
			}
		}
		a, err := OpenArray(ctx, store, "", nil)
		if err != nil {
			return
		}
		count, ok := elements(a.Shape())
		c := a.Meta().Grid.Regular()
		if c == nil || !ok || count > 1<<12 || count == 0 || a.Type().Size() > 64 {
			return
		}
		size := a.Type().Size() + 1
		for _, l := range c {
			if size *= l; size > 1<<16 {
				return
			}
		}
		zero := make([]int64, len(a.Shape()))
		must.Do(t, store.Set(ctx, fuzzLayouts[int(layout)%5].chunks+string(a.Meta().Keys.Append(nil, zero)), chunk))
		plain, err := readBothWays(t, a, count)
		undo := smallTuning()
		defer undo()
		b := must.Have(OpenArray(ctx, idStore{store}, "", &OpenOptions{Cache: &mapCache{}}))
		for range 2 {
			if got, err2 := readBothWays(t, b, count); (err == nil) != (err2 == nil) || err == nil && !bytes.Equal(got, plain) {
				t.Fatalf("%x, %v with a cache, %x, %v without", got, err2, plain, err)
			}
		}
		if got, err2 := readBothWays(t, must.Have(OpenArray(ctx, idStore{store}, "", nil)), count); (err == nil) != (err2 == nil) || err == nil && !bytes.Equal(got, plain) {
			t.Fatalf("%x, %v as of a large array, %x, %v of a small one", got, err2, plain, err)
		}
	})
}

// fuzzStore returns a store that holds the documents.
func fuzzStore(t testing.TB, layout int, doc, attrs []byte) *kv.Mem {
	ctx, store, at := context.Background(), kv.NewMem(), fuzzLayouts[layout%5]
	must.Do(t, store.Set(ctx, at.doc, doc))
	if at.attrs != "" {
		must.Do(t, store.Set(ctx, at.attrs, attrs))
	}
	if at.entry != "" {
		must.Do(t, store.Set(ctx, meta.DocV3, []byte(at.entry)))
	}
	return store
}

// fuzzChunks returns the first chunk as it is written, and damaged.
func fuzzChunks(f *testing.F, layout int, doc string) [][]byte {
	ctx, store := context.Background(), fuzzStore(f, layout, []byte(doc), []byte("{}"))
	out := [][]byte{nil, []byte("no chunk")}
	a, err := OpenArray(ctx, store, "", nil)
	if err != nil {
		return out
	}
	a.writer, a.readOnly = store, nil // chunks of the early v3 draft too
	if a.Type().Variable() {
		err = a.WriteVar(ctx, Sel(), variableFrom([][]byte{[]byte("a"), []byte("é"), nil}))
	} else {
		count, _ := elements(a.Shape())
		data := make([]byte, count*int64(a.Type().Size()))
		for i := range data {
			data[i] = byte(i * 7)
		}
		err = a.WriteBytes(ctx, Sel(), data)
	}
	must.Do(f, err)
	zero := make([]int64, len(a.Shape()))
	chunk := must.Have(kv.Get(ctx, store, fuzzLayouts[layout].chunks+string(a.Meta().Keys.Append(nil, zero))))
	bad := bytes.Clone(chunk)
	bad[len(bad)/2] ^= 0x55
	return append(out, chunk, chunk[:len(chunk)/2], bad)
}

// readBothWays compares reading everything, which it returns, with reading one
// element.
func readBothWays(t *testing.T, a *Array, count int64) ([]byte, error) {
	ctx := context.Background()
	first, ends := make([]Index, len(a.Shape())), make([][]int64, len(a.Shape()))
	for d, n := range a.Shape() {
		first[d], ends[d] = At(0), []int64{n - 1, 0}
	}
	if a.Type().Variable() {
		v, err := a.ReadVar(ctx, Sel())
		one, err1 := a.ReadVar(ctx, Sel(first...))
		if err == nil && (err1 != nil || !bytes.Equal(v.At(0), one.At(0))) {
			t.Fatalf("the first element: %v", err1)
		}
		var all []byte
		for i := range v.Len() {
			all = append(append(all, v.At(i)...), 0)
		}
		return all, err
	}
	size := a.Type().Size()
	whole, one := make([]byte, count*int64(size)), make([]byte, size)
	err, err1 := a.ReadBytes(ctx, Sel(), whole), a.ReadBytes(ctx, Sel(first...), one)
	if err == nil && (err1 != nil || !bytes.Equal(whole[:size], one)) {
		t.Fatalf("the first element is %x in %x: %v", one, whole[:size], err1)
	}
	if len(ends) == 0 {
		return whole, err
	}
	points := make([]byte, 2*size)
	if err1 := a.ReadBytes(ctx, Points(ends...), points); err == nil && (err1 != nil || !bytes.Equal(points[size:], one)) {
		t.Fatalf("the last point is %x, the first element %x: %v", points[size:], one, err1)
	}
	return whole, err
}

// FuzzSpec creates arrays of what users may give. What was created is opened as
// it was meant.
func FuzzSpec(f *testing.F) {
	for _, s := range [][3]string{{"int32", "", ""}, {"<f4", `{"id":"zlib","level":1}`, "NaN"}, {`{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":1}}`, `["bytes"]`, `"NaT"`},
		{"|O", `{"filters":[{"id":"vlen-array","dtype":"<i2"}]}`, "null"}, {`[["a","<i4"]]`, `{"order":"F","compressor":null}`, ""}, {"string", `["vlen-utf8","crc32c"]`, `"x"`}, {"|S3", "", `"YQ=="`}} {
		for v := range byte(3) {
			f.Add(v, s[0], s[1], s[2])
		}
	}
	raw := func(s string) json.RawMessage {
		if s == "" {
			return nil
		}
		return json.RawMessage(s)
	}
	f.Fuzz(func(t *testing.T, v byte, dataType, codecs, fill string) {
		version, store := []Version{V1, V2, V3}[v%3], kv.NewMem()
		a, err := Create(context.Background(), store, "a", Spec{Version: version, Shape: []int64{3, 2}, Chunks: []int64{2, 2}, DataType: dataType, Codecs: raw(codecs), FillValue: raw(fill)}, nil)
		if err != nil {
			wantKeys(t, store)
			return
		}
		b, err := OpenArray(context.Background(), store, "a", nil)
		if err != nil {
			t.Fatalf("%v %q %q %q: %v", version, dataType, codecs, fill, err)
		}
		if d := a.Meta().Diff(b.Meta()); len(d) > 0 {
			t.Fatalf("%v %q %q %q: opened with another %v", version, dataType, codecs, fill, d)
		}
	})
}

// FuzzAttributes parses any text as attributes, which are then safe to print.
func FuzzAttributes(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":[1,NaN,{"b":null}],"é":"\ud800"}`, `{"a":1,"a":2}`, `[]`, `{"a":-Infinity}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := ParseAttributes(text)
		if err != nil {
			return
		}
		strict, err := a.MarshalJSON()
		if err != nil || !json.Valid(strict) {
			t.Fatalf("%q is printed as %q: %v", text, strict, err)
		}
		var b Attributes
		if err := json.Unmarshal(strict, &b); err != nil || b.Len() != a.Len() {
			t.Fatalf("%q is printed as %q: %v", text, strict, err)
		}
	})
}

// FuzzDraftKeys parses any text as the key of a document of the early v3 draft.
func FuzzDraftKeys(f *testing.F) {
	for _, s := range []string{"meta/group.json", "meta/a.g/b.a/array.json", "meta/root.array.json", "meta/root/a/b.group.json", "meta/root/.array.json", "meta//array.json", "data/a.a/0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, key string) {
		for _, l := range []meta.DraftLayout{meta.DraftSuffix, meta.DraftRoot} {
			path, array, ok := l.ParseKey(key)
			if !ok {
				continue
			}
			again := l.GroupKey(path)
			if array {
				again = l.ArrayKey(path)
			}
			if again != key {
				t.Fatalf("%q is the document of %q, whose key is %q", key, path, again)
			}
		}
	})
}
