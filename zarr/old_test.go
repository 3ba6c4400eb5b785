package zarr

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// This file tests writing the formats before v3: Zarr v1 and both layouts of the
// early v3 draft.

// oldFormat is a format or layout before v3.
type oldFormat struct {
	version Version
	layout  DraftLayout
}

var oldFormats = []oldFormat{{V1, 0}, {Draft3, DraftSuffix}, {Draft3, DraftRoot}}

// store returns an empty store of the format.
func (f oldFormat) store() *kv.Mem {
	m := kv.NewMem()
	if f.layout == DraftRoot {
		must(0, InitDraft3(context.Background(), m))
	}
	return m
}

// documents are the keys that an array at path has beside its chunks.
func (f oldFormat) documents(path string) []string {
	switch {
	case f.version == V1:
		return []string{below(path) + docArrayV1, below(path) + docAttrsV1}
	case f.layout == DraftRoot:
		return []string{docV3, f.layout.ArrayKey(path)}
	}
	return []string{f.layout.ArrayKey(path)}
}

func create(t *testing.T, view kv.Reader, path string, s Spec) *Array {
	t.Helper()
	a, err := Create(context.Background(), view, path, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func makeGroup(t *testing.T, view kv.Reader, path string, v Version) *Group {
	t.Helper()
	g, err := CreateGroup(context.Background(), view, path, Attributes{}, &OpenOptions{Version: v})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func wantKeys(t *testing.T, view kv.Lister, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := must(kv.Keys(context.Background(), view, "")); !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
}

// document returns the members of a stored document.
func document(t *testing.T, view kv.Reader, key string) map[string]json.RawMessage {
	t.Helper()
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(must(kv.Get(context.Background(), view, key)), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestWriteV1Spec has a case for each thing that the specification of v1 asks of
// a writer, under the section that does.
func TestWriteV1Spec(t *testing.T) {
	ctx := context.Background()
	spec := Spec{Version: V1, Shape: []int64{20, 20}, Chunks: []int64{10, 10}, DataType: "int32", FillValue: json.RawMessage("42"),
		Codecs: json.RawMessage(`{"id":"zlib","level":1}`)}
	with := func(change func(*Spec)) Spec {
		s := spec
		change(&s)
		return s
	}
	for name, test := range map[string]func(t *testing.T, store *kv.Mem){
		"Storage: an array is a directory, what is above has no documents": func(t *testing.T, store *kv.Mem) {
			a := create(t, store, "x/y/a", spec)
			wantKeys(t, store, "x/y/a/attrs", "x/y/a/meta")
			if got := paths(store, "", nil); !slices.Equal(got, []string{"x/y/a"}) || a.Meta().Version != V1 {
				t.Errorf("%q, %v", got, a.Meta().Version)
			}
			if _, err := CreateGroup(ctx, store, "g", Attributes{}, &OpenOptions{Version: V1}); !errors.Is(err, ErrNoForm) {
				t.Error(err)
			}
			if _, err := Create(ctx, store, "x/y/a/b", spec, nil); !errors.Is(err, ErrKind) {
				t.Error(err)
			}
		},
		"Storage: never inside a group of another format": func(t *testing.T, store *kv.Mem) {
			makeGroup(t, store, "g", V3)
			if _, err := Create(ctx, store, "g/a", spec, nil); !errors.Is(err, ErrKind) {
				t.Error(err)
			}
		},
		"Metadata: the required members, and no others": func(t *testing.T, store *kv.Mem) {
			create(t, store, "", spec)
			want := `{"chunks":[10,10],"compression":"zlib","compression_opts":1,"dtype":"<i4","fill_value":42,"order":"C","shape":[20,20],"zarr_format":1}`
			if got := canonical(must(kv.Get(ctx, store, "meta"))); string(got) != want {
				t.Errorf("%s", got)
			}
		},
		"Metadata: compression and compression_opts": func(t *testing.T, store *kv.Mem) {
			for i, c := range [][3]string{
				{`null`, `"none"`, `null`},
				{`{"id":"zlib","level":3}`, `"zlib"`, `3`},
				{`{"id":"bz2","level":9}`, `"bz2"`, `9`},
				{`{"id":"blosc","cname":"zstd","clevel":2,"shuffle":2}`, `"blosc"`, `{"clevel":2,"cname":"zstd","shuffle":2}`},
				{``, `"blosc"`, `{"clevel":5,"cname":"lz4","shuffle":1}`},
			} {
				path := fmt.Sprint("a", i)
				create(t, store, path, with(func(s *Spec) { s.Codecs = nil; s.Codecs = append(s.Codecs, c[0]...) }))
				doc := document(t, store, path+"/meta")
				if string(doc["compression"]) != c[1] || string(canonical(doc["compression_opts"])) != c[2] {
					t.Errorf("%s: %s, %s", c[0], doc["compression"], doc["compression_opts"])
				}
			}
		},
		"Metadata: fill_value null": func(t *testing.T, store *kv.Mem) {
			a := create(t, store, "", with(func(s *Spec) { s.FillValue = json.RawMessage("null") }))
			if doc := document(t, store, "meta"); string(doc["fill_value"]) != "null" || !a.Meta().NullFill {
				t.Errorf("%s", doc["fill_value"])
			}
		},
		"Metadata: order": func(t *testing.T, store *kv.Mem) {
			a := create(t, store, "", Spec{Version: V1, Shape: []int64{2, 2}, DataType: "uint8", Codecs: json.RawMessage(`{"order":"F"}`)})
			must(0, Write(ctx, a, Sel(), []uint8{1, 2, 3, 4}))
			if b := must(kv.Get(ctx, store, "0.0")); !bytes.Equal(b, []byte{1, 3, 2, 4}) {
				t.Errorf("%v", b)
			}
		},
		"Data type encoding: the byte order is specified": func(t *testing.T, store *kv.Mem) {
			for i, c := range [][2]string{{"int32", `"<i4"`}, {">f8", `">f8"`}, {"uint8", `"|u1"`}, {"bool", `"|b1"`}, {"|S12", `"|S12"`},
				{`[["r","|u1"],["g","|u1"]]`, `[["r","|u1"],["g","|u1"]]`}} {
				path := fmt.Sprint("a", i)
				create(t, store, path, with(func(s *Spec) { s.DataType, s.FillValue = c[0], nil }))
				if got := canonical(document(t, store, path+"/meta")["dtype"]); string(got) != c[1] {
					t.Errorf("%s: %s", c[0], got)
				}
			}
		},
		"Chunks: indices with periods between them": func(t *testing.T, store *kv.Mem) {
			a := create(t, store, "", with(func(s *Spec) { s.Shape, s.Chunks = []int64{10000, 10000}, []int64{1000, 1000} }))
			must(0, Write(ctx, a, Sel(At(2500), At(4500)), []int32{1}))
			wantKeys(t, store, "2.4", "attrs", "meta")
		},
		"Chunks: nothing is added to the compressed bytes": func(t *testing.T, store *kv.Mem) {
			a := create(t, store, "", spec)
			must(0, Write(ctx, a, Sel(Slice(0, 10, 1), Slice(0, 10, 1)), []int32{1}))
			r := must(zlib.NewReader(bytes.NewReader(must(kv.Get(ctx, store, "0.0")))))
			if b := must(io.ReadAll(r)); !bytes.Equal(b, bytes.Repeat([]byte{1, 0, 0, 0}, 100)) {
				t.Errorf("%x", b)
			}
		},
		"Chunks: one that is not there holds the fill value": func(t *testing.T, store *kv.Mem) {
			a := create(t, store, "", spec)
			must(0, Write(ctx, a, Sel(At(0), At(0)), []int32{1}))
			must(0, Write(ctx, a, Sel(At(0), At(0)), []int32{42}))
			wantKeys(t, store, "attrs", "meta")
			if got := must(Read[int32](ctx, a, Sel(At(3), At(19)))); !slices.Equal(got, []int32{42}) {
				t.Errorf("%v", got)
			}
		},
		"Chunks: all have the same shape, also at the edge": func(t *testing.T, store *kv.Mem) {
			a := create(t, store, "", Spec{Version: V1, Shape: []int64{3}, Chunks: []int64{2}, DataType: ">i2", Codecs: json.RawMessage("null")})
			must(0, Write(ctx, a, Sel(), []int16{1, 2, 3}))
			if b := must(kv.Get(ctx, store, "1")); len(b) != 4 || binary.BigEndian.Uint16(b) != 3 {
				t.Errorf("%x", b)
			}
		},
		"Attributes: the key is there even if they are empty": func(t *testing.T, store *kv.Mem) {
			a := create(t, store, "", spec)
			for _, text := range []string{`{}`, `{"foo":42,"bar":"apples"}`, `{}`} {
				check(t, a.SetAttributes(ctx, attributesOf(text)))
				if got := must(kv.Get(ctx, store, "attrs")); !sameJSON(got, json.RawMessage(text)) {
					t.Errorf("%s, want %s", got, text)
				}
			}
		},
		"Delete: everything in the directory": func(t *testing.T, store *kv.Mem) {
			a := create(t, store, "x/a", spec)
			create(t, store, "x/ab", spec)
			must(0, Write(ctx, a, Sel(), []int32{1}))
			check(t, a.Delete(ctx))
			wantKeys(t, store, "x/ab/attrs", "x/ab/meta")
		},
	} {
		t.Run(name, func(t *testing.T) { test(t, kv.NewMem()) })
	}
}

// draftKey is what the draft allows in keys.
var draftKey = regexp.MustCompile(`^[a-zA-Z0-9/._-]+$`)

// TestWriteDraftSpec has a case for each thing that the text of the early v3
// draft asks of a writer, under the section that does.
func TestWriteDraftSpec(t *testing.T) {
	ctx := context.Background()
	spec := Spec{Version: Draft3, Shape: []int64{4}, Chunks: []int64{2}, DataType: "int32"}
	for name, test := range map[string]func(t *testing.T, store *kv.Mem){
		"Key prefixes: groups": func(t *testing.T, store *kv.Mem) {
			makeGroup(t, store, "/", Draft3)
			makeGroup(t, store, "/foo/bar", Draft3)
			wantKeys(t, store, "meta/group.json", "meta/foo.g/bar.g/group.json")
		},
		"Key prefixes: arrays and their chunks": func(t *testing.T, store *kv.Mem) {
			a := create(t, store, "/spam/eggs", spec)
			must(0, Write(ctx, a, Sel(), []int32{1}))
			wantKeys(t, store, "meta/spam.g/eggs.a/array.json", "data/spam.g/eggs.a/0", "data/spam.g/eggs.a/1")
		},
		"Create a group: groups above exist without documents, and can get one": func(t *testing.T, store *kv.Mem) {
			makeGroup(t, store, "a/b/c", Draft3)
			wantKeys(t, store, "meta/a.g/b.g/c.g/group.json")
			if got := paths(store, "", nil); !slices.Equal(got, []string{"/", "a/", "a/b/", "a/b/c/"}) {
				t.Errorf("%q", got)
			}
			makeGroup(t, store, "a", 0) // of the format that is there
			check(t, must(OpenGroup(ctx, store, "a/b", nil)).SetAttributes(ctx, attributesOf(`{"x":1}`)))
			wantKeys(t, store, "meta/a.g/b.g/c.g/group.json", "meta/a.g/group.json", "meta/a.g/b.g/group.json")
			makeGroup(t, store, "", 0)
			if ok := must(kv.Exists(ctx, store, "meta/group.json")); !ok {
				t.Error("the root got another document")
			}
			if x, _ := must(Open(ctx, store, "a/b", nil)).Attributes().Get("x"); string(x) != "1" {
				t.Errorf("%s", x)
			}
		},
		"Conceptual model: siblings have different names, arrays no children": func(t *testing.T, store *kv.Mem) {
			create(t, store, "x/a", spec)
			makeGroup(t, store, "x/g", Draft3)
			for _, path := range []string{"x/a", "x/g", "x"} {
				if _, err := Create(ctx, store, path, spec, nil); !errors.Is(err, ErrExists) {
					t.Errorf("%s: %v", path, err)
				}
			}
			for _, path := range []string{"x/a", "x/g"} {
				if _, err := CreateGroup(ctx, store, path, Attributes{}, nil); !errors.Is(err, ErrExists) {
					t.Errorf("%s: %v", path, err)
				}
			}
			if _, err := Create(ctx, store, "x/a/b", spec, nil); !errors.Is(err, ErrKind) {
				t.Error(err)
			}
		},
		"List: children, and all nodes": func(t *testing.T, store *kv.Mem) {
			create(t, store, "spam/eggs", spec)
			makeGroup(t, store, "foo/bar", Draft3)
			create(t, store, "top", spec)
			if got := paths(store, "", nil); !slices.Equal(got, []string{"/", "foo/", "foo/bar/", "spam/", "spam/eggs", "top"}) {
				t.Errorf("%q", got)
			}
			var names []string
			for n, err := range must(OpenGroup(ctx, store, "", nil)).Children(ctx) {
				check(t, err)
				names = append(names, n.Name())
			}
			if !slices.Equal(names, []string{"foo", "spam", "top"}) {
				t.Errorf("%q", names)
			}
		},
		"Delete an array: both prefixes": func(t *testing.T, store *kv.Mem) {
			for _, path := range []string{"spam/eggs", "spam/eggs2"} {
				must(0, Write(ctx, create(t, store, path, spec), Sel(At(0)), []int32{1}))
			}
			must(0, store.Set(ctx, "meta/spam.g/eggs.a/mine", nil))
			check(t, must(OpenArray(ctx, store, "spam/eggs", nil)).Delete(ctx))
			wantKeys(t, store, "meta/spam.g/eggs2.a/array.json", "data/spam.g/eggs2.a/0")
		},
		"Delete a group: both prefixes": func(t *testing.T, store *kv.Mem) {
			for _, path := range []string{"foo/bar/a", "foo/bar/b/c", "foo/bar2"} {
				must(0, Write(ctx, create(t, store, path, spec), Sel(At(0)), []int32{1}))
			}
			check(t, must(Open(ctx, store, "foo/bar", nil)).Delete(ctx))
			wantKeys(t, store, "meta/foo.g/bar2.a/array.json", "data/foo.g/bar2.a/0")
		},
		"Replace: an array by a group, a group by an array": func(t *testing.T, store *kv.Mem) {
			o := &OpenOptions{Version: Draft3, Overwrite: true}
			must(0, Write(ctx, create(t, store, "x/a", spec), Sel(), []int32{1}))
			must(CreateGroup(ctx, store, "x/a", Attributes{}, o))
			wantKeys(t, store, "meta/x.g/a.g/group.json")
			must(Create(ctx, store, "x", spec, o))
			wantKeys(t, store, "meta/x.a/array.json")
			must(CreateGroup(ctx, store, "", Attributes{}, o))
			wantKeys(t, store, "meta/group.json")
		},
		"Store interface: characters of keys": func(t *testing.T, store *kv.Mem) {
			create(t, store, "a-b_c.d/X9", Spec{Version: Draft3, Shape: []int64{4, 4}, DataType: "int32"})
			for _, path := range []string{"a b", "é", "a\\b", "a//b", "..", "x/./y", "a:b", "a\x00", "a%20b", "x/~"} {
				if _, err := Create(ctx, store, path, spec, nil); !errors.Is(err, ErrPath) {
					t.Errorf("%q: %v", path, err)
				}
				if _, err := CreateGroup(ctx, store, path, Attributes{}, nil); !errors.Is(err, ErrPath) {
					t.Errorf("group %q: %v", path, err)
				}
			}
			for _, key := range must(kv.Keys(ctx, store, "")) {
				if !draftKey.MatchString(key) {
					t.Errorf("key %q", key)
				}
			}
			wantKeys(t, store, "meta/a-b_c.d.g/X9.a/array.json")
		},
		"Stores: chunks that lie about are no part of a new array": func(t *testing.T, store *kv.Mem) {
			must(0, store.Set(ctx, "data/a.a/0", []byte("old")))
			if _, err := Create(ctx, store, "a", spec, nil); !errors.Is(err, ErrExists) {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { test(t, kv.NewMem()) })
	}
}

// TestDraftIsNotV3: neither format is ever written into a store of the other.
func TestDraftIsNotV3(t *testing.T) {
	ctx := context.Background()
	draft := Spec{Version: Draft3, Shape: []int64{4}, DataType: "int32"}
	v3 := Spec{Version: V3, Shape: []int64{4}, DataType: "int32"}
	refused := func(view kv.Lister, s Spec, path string) {
		t.Helper()
		before := must(kv.Keys(ctx, view, ""))
		if _, err := Create(ctx, view.(kv.Reader), path, s, nil); !errors.Is(err, ErrKind) && !errors.Is(err, ErrExists) {
			t.Errorf("%v at %q: %v", s.Version, path, err)
		}
		if _, err := CreateGroup(ctx, view.(kv.Reader), path, Attributes{}, &OpenOptions{Version: s.Version}); !errors.Is(err, ErrKind) && !errors.Is(err, ErrExists) {
			t.Errorf("group of %v at %q: %v", s.Version, path, err)
		}
		if after := must(kv.Keys(ctx, view, "")); !slices.Equal(before, after) {
			t.Errorf("%v at %q wrote %q", s.Version, path, after)
		}
	}
	for _, path := range []string{"", "x", "x/y", "meta", "data"} {
		store := kv.NewMem()
		makeGroup(t, store, "g", V3)
		refused(store, draft, path)

		store = oldFormat{Draft3, DraftRoot}.store()
		refused(store, v3, path) // there is nothing but the entry document
		if doc := must(kv.Get(ctx, store, docV3)); !IsDraft3Entry(doc) {
			t.Errorf("%s", doc)
		}
		for _, layout := range []DraftLayout{DraftSuffix, DraftRoot} {
			store := oldFormat{Draft3, layout}.store()
			create(t, store, "z", draft)
			refused(store, v3, path)
			if a := create(t, store, "other", Spec{Shape: []int64{1}, DataType: "int8"}); a.Meta().Version != Draft3 {
				t.Errorf("beside the draft: %v", a.Meta().Version)
			}
		}
	}
	for name, view := range map[string]*kv.Mem{"v3": kv.NewMem(), "draft": kv.NewMem()} {
		if name == "v3" {
			makeGroup(t, view, "", V3)
		} else {
			makeGroup(t, view, "g", Draft3)
		}
		before := must(kv.Keys(ctx, view, ""))
		if err := InitDraft3(ctx, view); !errors.Is(err, ErrExists) {
			t.Errorf("%s: %v", name, err)
		}
		wantKeys(t, view, before...)
	}
	store := oldFormat{Draft3, DraftRoot}.store()
	makeGroup(t, store, "g", 0)
	check(t, InitDraft3(ctx, store))
	must(CreateGroup(ctx, store, "", attributesOf(`{"x":1}`), &OpenOptions{Overwrite: true}))
	wantKeys(t, store, docV3, "meta/root.group.json")
	must(CreateGroup(ctx, store, "", Attributes{}, &OpenOptions{Overwrite: true, Version: V3}))
	if n := must(Open(ctx, store, "", nil)); n.Version() != V3 {
		t.Errorf("%v", n.Version())
	}
	wantKeys(t, store, docV3)
	if err := InitDraft3(ctx, kv.ReadOnly(kv.NewMem())); !errors.Is(err, kv.ErrReadOnly) {
		t.Error(err)
	}
}

// TestDraftFilters: the draft keeps filters among the attributes, where they
// survive what users do with attributes.
func TestDraftFilters(t *testing.T) {
	ctx := context.Background()
	for _, f := range oldFormats[1:] {
		store := f.store()
		a := create(t, store, "s", Spec{Version: Draft3, Shape: []int64{2}, DataType: "string"})
		must(0, a.WriteVar(ctx, Sel(), variableFrom([][]byte{[]byte("a"), []byte("bcd")})))
		check(t, a.SetAttributes(ctx, attributesOf(`{"x":1}`)))
		b := must(OpenArray(ctx, store, "s", nil))
		if v := must(b.ReadVar(ctx, Sel())); string(v.At(0))+string(v.At(1)) != "abcd" {
			t.Errorf("%v: %q", f, v.At(1))
		}
		if !b.Meta().Attributes.Equal(a.Meta().Attributes) {
			t.Errorf("%v: attributes %v, stored %v", f, a.Meta().Attributes, b.Meta().Attributes)
		}
		if err := b.SetAttributes(ctx, attributesOf(`{"filters":[{"id":"zlib"}]}`)); !errors.Is(err, ErrNoForm) {
			t.Errorf("%v: %v", f, err)
		}
		plain := create(t, store, "p", Spec{Version: Draft3, Shape: []int64{2}, DataType: "int8"})
		if err := plain.SetAttributes(ctx, attributesOf(`{"filters":[{"id":"zlib"}]}`)); !errors.Is(err, ErrNoForm) {
			t.Errorf("%v: %v", f, err)
		}
		check(t, plain.SetAttributes(ctx, attributesOf(`{"filters":["mine"]}`)))
	}
}

// TestOldModel writes, resizes and reopens random arrays of the old formats.
func TestOldModel(t *testing.T) {
	n := 150
	if testing.Short() {
		n = 40
	}
	for _, seed := range seeds(n) {
		for _, f := range oldFormats {
			runOld(t, f, seed)
		}
	}
}

func runOld(t *testing.T, f oldFormat, seed uint64) {
	t.Helper()
	ctx := context.Background()
	r := rand.New(rand.NewPCG(seed, 7))
	spec := Spec{Version: f.version, Shape: []int64{}, Chunks: []int64{}}
	for range r.IntN(4) {
		spec.Shape = append(spec.Shape, r.Int64N(9))
		spec.Chunks = append(spec.Chunks, 1+r.Int64N(6))
	}
	types := []string{"|u1", "bool", "<i4", ">f8", "|S3", `[["a","<i4"],["b","|i1"]]`}
	if f.version == Draft3 {
		types = append(types, "string")
	}
	spec.DataType = types[r.IntN(len(types))]
	spec.Codecs = json.RawMessage(fmt.Sprintf(`{"order":%q,"compressor":%s}`, []string{"C", "F"}[r.IntN(2)],
		[]string{"null", `{"id":"zlib","level":1}`, `{"id":"blosc","cname":"lz4","clevel":5,"shuffle":1}`}[r.IntN(3)]))
	if f.version == V1 && r.IntN(4) == 0 || r.IntN(6) == 0 {
		spec.FillValue = json.RawMessage("null")
	}
	name := fmt.Sprintf("seed %d: format %v layout %d: %+v", seed, f.version, f.layout, spec)
	store := f.store()
	a, err := Create(ctx, store, "p/q", spec, nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	fill := a.Meta().Fill
	m := newModel(spec.Shape, fill)
	for step := range 8 {
		m.write(t, r, a, pickOnce(r, m.shape), fill, name)
		switch r.IntN(4) {
		case 0:
			shape := slices.Clone(m.shape)
			for d := range shape {
				shape[d] = r.Int64N(10)
			}
			if err := a.Resize(ctx, shape, ResizeOptions{ResetEdges: true}); err != nil {
				t.Fatalf("%s: resize to %v: %v", name, shape, err)
			}
			m.resize(shape, fill)
		case 1:
			attrs := attributesOf(fmt.Sprintf(`{"step":%d}`, step))
			if err := a.SetAttributes(ctx, attrs); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		case 2:
			was := a
			if a, err = OpenArray(ctx, store, "p/q", nil); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if d := a.Meta().Diff(was.Meta()); len(d) > 0 || a.Meta().Version != f.version {
				t.Fatalf("%s: stored with another %v", name, d)
			}
		}
		m.check(t, a, m.whole(), name)
		m.check(t, a, pick(r, m.shape), name)
		want := append(m.keys(a, fill), f.documents("p/q")...)
		slices.Sort(want)
		if got := must(kv.Keys(ctx, store, "")); !slices.Equal(got, want) {
			t.Fatalf("%s: keys %v, want %v", name, got, want)
		}
	}
	if err := a.Delete(ctx); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if got := must(kv.Keys(ctx, store, "")); len(got) > 0 && !slices.Equal(got, []string{docV3}) {
		t.Fatalf("%s: after deleting: %v", name, got)
	}
}

// pickOnce selects every element once at most, so that the order of writing does
// not matter.
func pickOnce(r *rand.Rand, shape []int64) picked {
	for {
		p := pick(r, shape)
		if once := slices.Compact(slices.Sorted(slices.Values(p.flat))); len(once) == len(p.flat) {
			return p
		}
	}
}

// TestOldStoresRewritten makes every array that other software wrote in the old
// formats anew: documents come out byte for byte as that software wrote them,
// but for a line break at the end, and chunks too where nothing compresses them.
func TestOldStoresRewritten(t *testing.T) {
	ctx := context.Background()
	exact := 0
	for _, area := range []string{"v1", "early-v3"} {
		for _, c := range storeCases(t, area) {
			if c.Kind != "array" && c.Kind != "hierarchy" {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				view := c.view(t)
				copied := kv.NewMem()
				if _, entry, err := draftLayout(ctx, view); err == nil && entry {
					check(t, InitDraft3(ctx, copied))
				}
				for n, err := range Walk(ctx, view, "", nil) {
					check(t, err)
					rewrite(t, n, copied)
				}
				for _, key := range must(kv.Keys(ctx, copied, "")) {
					got, want := must(kv.Get(ctx, copied, key)), must(kv.Get(ctx, view, key))
					if strings.TrimSpace(string(got)) == strings.TrimSpace(string(want)) {
						exact++
						continue
					}
					checkRewritten(t, key, got, want)
				}
				if c.Kind == "array" {
					checkStoreNode(t, copied, c.storeNode)
					return
				}
				checkWalk(t, copied, c.Nodes)
				for _, n := range c.Nodes {
					checkStoreNode(t, copied, n)
				}
			})
		}
	}
	if exact < 20 {
		t.Errorf("only %d values are as they were", exact)
	}
}

// rewrite makes a node with its values anew.
func rewrite(t *testing.T, n *Node, to *kv.Mem) {
	t.Helper()
	ctx := context.Background()
	a, ok := n.Array()
	if !ok {
		if n.Meta().src != nil {
			must(CreateGroup(ctx, to, n.Path(), n.Attributes(), &OpenOptions{Version: n.Version()}))
		}
		return
	}
	m := a.Meta()
	v2 := must(m.Codecs.V2())
	spec := Spec{Version: m.Version, Shape: m.Shape, Type: m.Type, Attributes: m.Attributes,
		Codecs: fmt.Appendf(nil, `{"order":%q,"filters":%s,"compressor":%s}`, v2.Order, orNull(v2.Filters), orNull(v2.Compressor))}
	for _, l := range m.Grid.Regular() {
		spec.Chunks = append(spec.Chunks, int64(l))
	}
	if spec.Chunks == nil {
		spec.Chunks = []int64{}
	}
	spec.Fill = m.Fill
	if m.NullFill {
		spec.FillValue = json.RawMessage("null")
	}
	b, err := Create(ctx, to, n.Path(), spec, &OpenOptions{WriteEmptyChunks: true})
	if err != nil {
		t.Fatal(err)
	}
	// Chunk by chunk, so that those that are missing stay so.
	for key, err := range n.view.(kv.Lister).List(ctx, kv.ListOptions{Prefix: a.loc.chunks}) {
		check(t, err)
		coords, ok := m.Keys.Parse(key[len(a.loc.chunks):])
		if !ok {
			continue
		}
		index := make([]Index, len(coords))
		for d, c := range coords {
			lo := m.Grid.Start(d, c)
			index[d] = Slice(lo, min(lo+spec.Chunks[d], m.Shape[d]), 1)
		}
		shape := must(a.Resolve(Sel(index...)))
		count, _ := elements(shape)
		data := make([]byte, count*int64(m.Type.Size()))
		check(t, a.ReadBytes(ctx, Sel(index...), data))
		check(t, b.WriteBytes(ctx, Sel(index...), data))
	}
}

// checkRewritten judges a value that is not as it was: a compressed chunk, one at
// the edge, whose outside is undefined, or a document in another spelling.
func checkRewritten(t *testing.T, key string, got, want []byte) {
	t.Helper()
	var was, is map[string]json.RawMessage
	if json.Unmarshal(want, &was) != nil {
		return // a chunk: its values are compared
	}
	if err := json.Unmarshal(got, &is); err != nil {
		t.Errorf("%s: %s", key, got)
	}
	if _, other := was["memory_layout"]; other {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		var a, b float64 // 0.0 is 0
		if json.Unmarshal(was[name], &a) == nil && json.Unmarshal(is[name], &b) == nil && a == b {
			continue
		}
		if !sameJSON(was[name], is[name]) {
			t.Errorf("%s: %s is %s, was %s", key, name, is[name], was[name])
		}
	}
}

// TestDraftTypes: data types that the draft spells in its own way.
func TestDraftTypes(t *testing.T) {
	ctx := context.Background()
	for _, c := range [][2]string{{"bool", `"bool"`}, {"int8", `"i1"`}, {"uint8", `"u1"`}, {"int32", `"<i4"`}, {">f8", `">f8"`}, {"complex64", `"<c8"`}} {
		store := kv.NewMem()
		a := create(t, store, "a", Spec{Version: Draft3, Shape: []int64{1}, DataType: c[0]})
		if got := document(t, store, "meta/a.a/array.json")["data_type"]; string(got) != c[1] {
			t.Errorf("%s: %s", c[0], got)
		}
		if b := must(OpenArray(ctx, store, "a", nil)); !b.Type().Equal(a.Type()) || b.Type().Kind() == dtype.Invalid {
			t.Errorf("%s: %v, %v", c[0], a.Type(), b.Type())
		}
	}
	if err := DraftRoot.CheckPath("x/a.array.json"); !errors.Is(err, ErrPath) {
		t.Error(err)
	}
	check(t, DraftSuffix.CheckPath("/x/a.array.json"))
}
