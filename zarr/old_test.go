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
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
)

// This file tests writing Zarr v1.

func create(t *testing.T, view kv.Reader, path string, s Spec) *Array {
	t.Helper()
	a := must.Get(Create(context.Background(), view, path, s, nil))(t)
	return a
}

func makeGroup(t *testing.T, view kv.Reader, path string, v Version) *Group {
	t.Helper()
	g := must.Get(CreateGroup(context.Background(), view, path, Attributes{}, &OpenOptions{Version: v}))(t)
	return g
}

func wantKeys(t *testing.T, view kv.Lister, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := must.Have(kv.Keys(context.Background(), view, "")); !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
}

// document returns the members of a stored document.
func document(t *testing.T, view kv.Reader, key string) map[string]json.RawMessage {
	t.Helper()
	var doc map[string]json.RawMessage
	must.Do(t, json.Unmarshal(must.Have(kv.Get(context.Background(), view, key)), &doc))
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
			if got := jsontext.Canonical(must.Have(kv.Get(ctx, store, "meta"))); string(got) != want {
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
				if string(doc["compression"]) != c[1] || string(jsontext.Canonical(doc["compression_opts"])) != c[2] {
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
			must.Have(0, Write(ctx, a, Sel(), []uint8{1, 2, 3, 4}))
			if b := must.Have(kv.Get(ctx, store, "0.0")); !bytes.Equal(b, []byte{1, 3, 2, 4}) {
				t.Errorf("%v", b)
			}
		},
		"Data type encoding: the byte order is specified": func(t *testing.T, store *kv.Mem) {
			for i, c := range [][2]string{{"int32", `"<i4"`}, {">f8", `">f8"`}, {"uint8", `"|u1"`}, {"bool", `"|b1"`}, {"|S12", `"|S12"`},
				{`[["r","|u1"],["g","|u1"]]`, `[["r","|u1"],["g","|u1"]]`}} {
				path := fmt.Sprint("a", i)
				create(t, store, path, with(func(s *Spec) { s.DataType, s.FillValue = c[0], nil }))
				if got := jsontext.Canonical(document(t, store, path+"/meta")["dtype"]); string(got) != c[1] {
					t.Errorf("%s: %s", c[0], got)
				}
			}
		},
		"Chunks: indices with periods between them": func(t *testing.T, store *kv.Mem) {
			a := create(t, store, "", with(func(s *Spec) { s.Shape, s.Chunks = []int64{10000, 10000}, []int64{1000, 1000} }))
			must.Have(0, Write(ctx, a, Sel(At(2500), At(4500)), []int32{1}))
			wantKeys(t, store, "2.4", "attrs", "meta")
		},
		"Chunks: nothing is added to the compressed bytes": func(t *testing.T, store *kv.Mem) {
			a := create(t, store, "", spec)
			must.Have(0, Fill(ctx, a, Sel(Slice(0, 10, 1), Slice(0, 10, 1)), int32(1)))
			r := must.Have(zlib.NewReader(bytes.NewReader(must.Have(kv.Get(ctx, store, "0.0")))))
			if b := must.Have(io.ReadAll(r)); !bytes.Equal(b, bytes.Repeat([]byte{1, 0, 0, 0}, 100)) {
				t.Errorf("%x", b)
			}
		},
		"Chunks: one that is not there holds the fill value": func(t *testing.T, store *kv.Mem) {
			a := create(t, store, "", spec)
			must.Have(0, Write(ctx, a, Sel(At(0), At(0)), []int32{1}))
			must.Have(0, Write(ctx, a, Sel(At(0), At(0)), []int32{42}))
			wantKeys(t, store, "attrs", "meta")
			if got := mustRead(Read[int32](ctx, a, Sel(At(3), At(19)))); !slices.Equal(got, []int32{42}) {
				t.Errorf("%v", got)
			}
		},
		"Chunks: all have the same shape, also at the edge": func(t *testing.T, store *kv.Mem) {
			a := create(t, store, "", Spec{Version: V1, Shape: []int64{3}, Chunks: []int64{2}, DataType: ">i2", Codecs: json.RawMessage("null")})
			must.Have(0, Write(ctx, a, Sel(), []int16{1, 2, 3}))
			if b := must.Have(kv.Get(ctx, store, "1")); len(b) != 4 || binary.BigEndian.Uint16(b) != 3 {
				t.Errorf("%x", b)
			}
		},
		"Attributes: the key is there even if they are empty": func(t *testing.T, store *kv.Mem) {
			a := create(t, store, "", spec)
			for _, text := range []string{`{}`, `{"foo":42,"bar":"apples"}`, `{}`} {
				must.Do(t, a.SetAttributes(ctx, attributesOf(text)))
				if got := must.Have(kv.Get(ctx, store, "attrs")); !jsontext.Same(got, json.RawMessage(text)) {
					t.Errorf("%s, want %s", got, text)
				}
			}
		},
		"Delete: everything in the directory": func(t *testing.T, store *kv.Mem) {
			a := create(t, store, "x/a", spec)
			create(t, store, "x/ab", spec)
			must.Have(0, Fill(ctx, a, Sel(), int32(1)))
			must.Do(t, a.Delete(ctx))
			wantKeys(t, store, "x/ab/attrs", "x/ab/meta")
		},
	} {
		t.Run(name, func(t *testing.T) { test(t, kv.NewMem()) })
	}
}

// TestOldModel writes, resizes and reopens random arrays of Zarr v1.
func TestOldModel(t *testing.T) {
	n := 150
	if testing.Short() {
		n = 40
	}
	for _, seed := range seeds(t, n) {
		runOld(t, seed)
	}
}

func runOld(t *testing.T, seed uint64) {
	t.Helper()
	ctx := context.Background()
	r := rand.New(rand.NewPCG(seed, 7))
	spec := Spec{Version: V1, Shape: []int64{}, Chunks: []int64{}}
	for range r.IntN(4) {
		spec.Shape = append(spec.Shape, r.Int64N(9))
		spec.Chunks = append(spec.Chunks, 1+r.Int64N(6))
	}
	types := []string{"|u1", "bool", "<i4", ">f8", "|S3", `[["a","<i4"],["b","|i1"]]`}
	spec.DataType = types[r.IntN(len(types))]
	spec.Codecs = json.RawMessage(fmt.Sprintf(`{"order":%q,"compressor":%s}`, []string{"C", "F"}[r.IntN(2)],
		[]string{"null", `{"id":"zlib","level":1}`, `{"id":"blosc","cname":"lz4","clevel":5,"shuffle":1}`}[r.IntN(3)]))
	if r.IntN(4) == 0 {
		spec.FillValue = json.RawMessage("null")
	}
	name := fmt.Sprintf("seed %d: %+v", seed, spec)
	store := kv.NewMem()
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
			if err := a.Resize(ctx, shape, ResizeOptions{}); err != nil {
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
			if d := a.Meta().Diff(was.Meta()); len(d) > 0 || a.Meta().Version != V1 {
				t.Fatalf("%s: stored with another %v", name, d)
			}
		}
		m.check(t, a, m.whole(), name)
		m.check(t, a, pick(r, m.shape), name)
		want := append(m.keys(a, fill), "p/q/attrs", "p/q/meta")
		slices.Sort(want)
		if got := must.Have(kv.Keys(ctx, store, "")); !slices.Equal(got, want) {
			t.Fatalf("%s: keys %v, want %v", name, got, want)
		}
	}
	if err := a.Delete(ctx); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if got := must.Have(kv.Keys(ctx, store, "")); len(got) > 0 {
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

// TestOldStoresRewritten makes every array that other software wrote in Zarr v1
// anew: documents come out byte for byte as that software wrote them,
// but for a line break at the end, and chunks too where nothing compresses them.
func TestOldStoresRewritten(t *testing.T) {
	ctx := context.Background()
	exact := 0
	for _, c := range storeCases(t, "v1") {
		if c.Kind != "array" && c.Kind != "hierarchy" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			view := c.view(t)
			copied := kv.NewMem()
			for n, err := range Walk(ctx, view, "", nil) {
				must.Do(t, err)
				rewrite(t, n, copied)
			}
			for _, key := range must.Have(kv.Keys(ctx, copied, "")) {
				got, want := must.Have(kv.Get(ctx, copied, key)), must.Have(kv.Get(ctx, view, key))
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
		return
	}
	m := a.Meta()
	v2 := must.Have(m.Codecs.V2())
	spec := Spec{Version: m.Version, Shape: m.Shape, Type: m.Type, Attributes: m.Attributes,
		Codecs: fmt.Appendf(nil, `{"order":%q,"filters":%s,"compressor":%s}`, v2.Order, jsontext.OrNull(v2.Filters), jsontext.OrNull(v2.Compressor))}
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
	b := must.Get(Create(ctx, to, n.Path(), spec, &OpenOptions{WriteEmptyChunks: true}))(t)
	// Chunks are copied one by one, so that missing chunks stay missing.
	for key, err := range n.view.(kv.Lister).List(ctx, kv.ListOptions{Prefix: a.loc.chunks}) {
		must.Do(t, err)
		coords, ok := m.Keys.Parse(key[len(a.loc.chunks):])
		if !ok {
			continue
		}
		index := make([]Index, len(coords))
		for d, c := range coords {
			lo := m.Grid.Start(d, c)
			index[d] = Slice(lo, min(lo+spec.Chunks[d], m.Shape[d]), 1)
		}
		shape := must.Have(a.Resolve(Sel(index...)))
		count, _ := elements(shape)
		data := make([]byte, count*int64(m.Type.Size()))
		must.Do(t, a.ReadBytes(ctx, Sel(index...), data))
		must.Do(t, b.WriteBytes(ctx, Sel(index...), data))
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
	for _, name := range slices.Sorted(maps.Keys(was)) {
		var a, b float64 // 0.0 is 0
		if json.Unmarshal(was[name], &a) == nil && json.Unmarshal(is[name], &b) == nil && a == b {
			continue
		}
		if !jsontext.Same(was[name], is[name]) {
			t.Errorf("%s: %s is %s, was %s", key, name, is[name], was[name])
		}
	}
}
