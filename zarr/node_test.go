package zarr

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
)

func attributesOf(text string) Attributes { return must.Have(ParseAttributes([]byte(text))) }

// paths walks a hierarchy and returns the paths, groups with a slash behind,
// and errors by their text.
func paths(view kv.Reader, path string, o *OpenOptions) (list []string) {
	for n, err := range Walk(context.Background(), view, path, o) {
		switch {
		case err != nil:
			list = append(list, "error: "+err.Error())
		case n.Meta().Array:
			list = append(list, n.Path())
		default:
			list = append(list, n.Path()+"/")
		}
	}
	return list
}

func TestCreate(t *testing.T) {
	ctx := context.Background()
	for _, v := range []Version{V2, V3} {
		store := kv.NewMem()
		spec := Spec{Version: v, Shape: []int64{4}, DataType: "int32", Attributes: attributesOf(`{"units":"K"}`), DimensionNames: []string{"time"}}
		a := must.Have(Create(ctx, store, "/x/y/a", spec, nil))
		if a.Path() != "x/y/a" || a.Meta().Version != v || a.DimensionNames()[0] != "time" {
			t.Errorf("%q v%d %v", a.Path(), a.Meta().Version, a.DimensionNames())
		}
		want := map[Version][]string{
			V2: {".zgroup", "x/.zgroup", "x/y/.zgroup", "x/y/a/.zarray", "x/y/a/.zattrs"},
			V3: {"x/y/a/zarr.json", "x/y/zarr.json", "x/zarr.json", "zarr.json"},
		}[v]
		if keys := must.Have(kv.Keys(ctx, store, "")); !slices.Equal(keys, want) {
			t.Errorf("v%d: keys %v", v, keys)
		}
		// Existing nodes decide the format of new nodes beside them.
		must.Have(CreateGroup(ctx, store, "x/g", Attributes{}, nil))
		b := must.Have(Create(ctx, store, "x/g/b", Spec{Shape: []int64{1}, DataType: "bool"}, nil))
		if b.Meta().Version != v {
			t.Errorf("v%d below a group of v%d", b.Meta().Version, v)
		}
		got := paths(store, "", nil)
		if want := []string{"/", "x/", "x/g/", "x/g/b", "x/y/", "x/y/a"}; !slices.Equal(got, want) {
			t.Errorf("v%d: %q", v, got)
		}
		n := must.Have(Open(ctx, store, "x/y/a", nil))
		if units, _ := n.Attributes().Get("units"); string(units) != `"K"` || n.Name() != "a" || n.Version() != v {
			t.Errorf("%s %q %v", units, n.Name(), n.Version())
		}
		// Neither nodes nor what lies below them are replaced unasked.
		for _, path := range []string{"x", "x/y/a", ""} {
			if _, err := Create(ctx, store, path, spec, nil); !errors.Is(err, ErrExists) {
				t.Errorf("%q: %v", path, err)
			}
			if _, err := CreateGroup(ctx, store, path, Attributes{}, nil); !errors.Is(err, ErrExists) {
				t.Errorf("group %q: %v", path, err)
			}
		}
		if _, err := Create(ctx, store, "x/y/a/b", spec, nil); !errors.Is(err, ErrKind) {
			t.Errorf("below an array: %v", err)
		}
		other := spec
		other.Version = V2 + V3 - v
		if _, err := Create(ctx, store, "x/z", other, nil); !errors.Is(err, ErrKind) {
			t.Errorf("another format: %v", err)
		}
		must.Have(Create(ctx, store, "x", spec, &OpenOptions{Overwrite: true}))
		if got := paths(store, "", nil); !slices.Equal(got, []string{"/", "x"}) {
			t.Errorf("v%d: after replacing a group: %q", v, got)
		}
	}
}

// TestCreateOnKeys: keys without a node would become part of a new array, but
// not of a new group.
func TestCreateOnKeys(t *testing.T) {
	ctx := context.Background()
	store := kv.NewMem()
	must.Have(0, store.Set(ctx, "a/c/0", []byte("old chunk")))
	spec := Spec{Shape: []int64{4}, DataType: "int32"}
	if _, err := Create(ctx, store, "a", spec, nil); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	must.Have(0, store.Set(ctx, "g/x/zarr.json", []byte(`{"zarr_format":3,"node_type":"group"}`)))
	must.Have(CreateGroup(ctx, store, "g", Attributes{}, nil))
	if got := paths(store, "g", nil); !slices.Equal(got, []string{"g/", "g/x/"}) {
		t.Errorf("%q", got)
	}
	a := must.Have(Create(ctx, store, "a", spec, &OpenOptions{Overwrite: true}))
	if got := mustRead(Read[int32](ctx, a, Sel())); !slices.Equal(got, []int32{0, 0, 0, 0}) {
		t.Errorf("%v", got)
	}
}

// TestCreateSpec checks defaults and what a spec can say.
func TestCreateSpec(t *testing.T) {
	ctx := context.Background()
	struct2 := must.Have(dtype.NewStruct([]dtype.Field{{Name: "a", Type: dtype.NewInt(16)}, {Name: "b", Type: dtype.NewFloat(64)}}))
	for _, c := range []struct {
		spec Spec
		want string // codecs, chunks, fill, key
	}{
		{Spec{DataType: "float32", Shape: []int64{1000, 1000}},
			`[{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":3,"checksum":false}}] [500 500] 00000000 a/c/0/0`},
		{Spec{DataType: "bool", Shape: []int64{10, 0}, FillValue: []byte("true")},
			`[{"name":"bytes"},{"name":"zstd","configuration":{"level":3,"checksum":false}}] [10 1] 01 a/c/0/0`},
		{Spec{DataType: ">i2", Shape: []int64{4}, Separator: '.', Fill: []byte{1, 2}},
			`[{"name":"bytes","configuration":{"endian":"big"}},{"name":"zstd","configuration":{"level":3,"checksum":false}}] [4] 0102 a/c.0`},
		{Spec{DataType: "string", Shape: []int64{4}, FillValue: []byte(`"x"`)},
			`[{"name":"vlen-utf8"},{"name":"zstd","configuration":{"level":3,"checksum":false}}] [4] 78 a/c/0`},
		{Spec{Type: struct2, Shape: []int64{4}, Codecs: []byte(rawCodecs)},
			rawCodecs + ` [4] 00000000000000000000 a/c/0`},
		{Spec{DataType: `{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":1}}`, Shape: []int64{4}, FillValue: []byte(`"NaT"`), Codecs: []byte(rawCodecs)},
			rawCodecs + ` [4] 0000000000000080 a/c/0`},
		{Spec{DataType: "uint8", Shape: []int64{64, 64}, Chunks: []int64{8, 8}, Shards: []int64{32, 64}, Codecs: []byte(`["bytes"]`)},
			`[{"name":"sharding_indexed","configuration":{"chunk_shape":[8,8],"codecs":[{"name":"bytes","configuration":{}}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}],"index_location":"end"}}] [32 64] 00 a/c/0/0`},
		{Spec{DataType: "float64", Shape: []int64{3000, 10}, Shards: []int64{3000 * 1000, 10}, Codecs: []byte(rawCodecs)},
			`[{"name":"sharding_indexed","configuration":{"chunk_shape":[3125,10],"codecs":` + rawCodecs + `,"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}],"index_location":"end"}}] [3000000 10] 0000000000000000 a/c/0/0`},
	} {
		a, err := Create(ctx, kv.NewMem(), "a", c.spec, nil)
		if err != nil {
			t.Errorf("%+v: %v", c.spec, err)
			continue
		}
		m := a.Meta()
		got := fmt.Sprintf("%s %v %x %s", must.Have(m.Codecs.PrintV3()), m.Grid.Regular(), m.Fill, a.ChunkKey(make([]int64, len(m.Shape))))
		if got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.spec, got, c.want)
		}
	}
	for _, c := range []struct {
		spec Spec
		want string // order, filters, compressor, type, null fill, key
	}{
		{Spec{DataType: "float32", Shape: []int64{4, 4}}, `C null {"id":"zstd","level":3} "<f4" false a/0.0`},
		{Spec{DataType: ">f4", Shape: []int64{4, 4}, Codecs: []byte("null"), FillValue: []byte("null")}, `C null null ">f4" true a/0.0`},
		{Spec{DataType: "string", Shape: []int64{4}, Separator: '/', Codecs: []byte(`{"id":"zlib","level":1}`)}, `C [{"id":"vlen-utf8"}] {"id":"zlib","level":1} "|O" false a/0`},
		{Spec{DataType: `[["x","<i4"],["y","|S3"]]`, Shape: []int64{4, 1}, Codecs: []byte(`{"order":"F","filters":[{"id":"zlib"}]}`)}, `F [{"id":"zlib"}] null [["x", "<i4"], ["y", "|S3"]] false a/0.0`},
	} {
		c.spec.Version = V2
		a, err := Create(ctx, kv.NewMem(), "a", c.spec, nil)
		if err != nil {
			t.Errorf("%+v: %v", c.spec, err)
			continue
		}
		m := a.Meta()
		v2 := must.Have(m.Codecs.V2())
		got := fmt.Sprintf("%s %s %s %s %v %s", v2.Order, jsontext.OrNull(v2.Filters), jsontext.OrNull(v2.Compressor), must.Have(m.Type.PrintV2()), m.NullFill, a.ChunkKey(make([]int64, len(m.Shape))))
		if strings.Join(strings.Fields(got), "") != strings.Join(strings.Fields(c.want), "") {
			t.Errorf("%+v:\n got %s\nwant %s", c.spec, got, c.want)
		}
	}
}

func TestCreateErrors(t *testing.T) {
	ctx := context.Background()
	ok := Spec{Shape: []int64{4}, DataType: "int32"}
	with := func(change func(*Spec)) Spec {
		s := ok
		change(&s)
		return s
	}
	for _, c := range []struct {
		path string
		spec Spec
		want error
	}{
		{"a//b", ok, ErrPath},
		{"__a", ok, ErrPath},
		{"a/..", ok, ErrPath},
		{"a", with(func(s *Spec) { s.DataType = "" }), ErrMetadata},
		{"a", with(func(s *Spec) { s.DataType = "int31" }), dtype.ErrType},
		{"a", with(func(s *Spec) { s.DataType = `{"name":` }), ErrMetadata},
		{"a", with(func(s *Spec) { s.FillValue = []byte(`"x"`) }), dtype.ErrValue},
		{"a", with(func(s *Spec) { s.Fill = []byte{1} }), ErrMetadata},
		{"a", with(func(s *Spec) { s.Shape = []int64{-1} }), nil},
		{"a", with(func(s *Spec) { s.Shape = make([]int64, 33) }), nil},
		{"a", with(func(s *Spec) { s.Chunks = []int64{1, 2} }), ErrMetadata},
		{"a", with(func(s *Spec) { s.Chunks = []int64{0} }), ErrMetadata},
		{"a", with(func(s *Spec) { s.Chunks, s.Shards = []int64{3}, []int64{4} }), ErrMetadata},
		{"a", with(func(s *Spec) { s.Codecs = []byte(`["foo"]`) }), codecs.ErrUnknown},
		{"a", with(func(s *Spec) { s.Codecs = []byte(`[]`) }), codecs.ErrConfig},
		{"a", with(func(s *Spec) { s.Separator = '-' }), ErrNoForm},
		{"a", with(func(s *Spec) { s.DimensionNames = []string{"x", "y"} }), ErrMetadata},
		{"a", with(func(s *Spec) { s.Version, s.Shards = V2, []int64{4} }), ErrNoForm},
		{"a", with(func(s *Spec) { s.Version = Draft3 + 1 }), ErrNoForm},
		{"a", with(func(s *Spec) { s.Version = Draft3 }), ErrDraft3},
		{"a", with(func(s *Spec) { s.Version, s.Separator = V1, '/' }), ErrNoForm},
		{"a", with(func(s *Spec) { s.Version, s.DataType = V1, "string" }), ErrNoForm},
		{"a", with(func(s *Spec) { s.Version, s.Codecs = V1, []byte(`{"filters":[{"id":"delta","dtype":"<i4"}]}`) }), ErrNoForm},
		{"a", with(func(s *Spec) { s.Version, s.Codecs = V1, []byte(`{"order":"X"}`) }), nil},
		{"a", with(func(s *Spec) { s.Version, s.Shards = V1, []int64{4} }), ErrNoForm},
		{"a", with(func(s *Spec) { s.Version, s.Codecs = V2, []byte(`3`) }), ErrMetadata},
	} {
		store := kv.NewMem()
		_, err := Create(ctx, store, c.path, c.spec, nil)
		var e *Error
		if !errors.As(err, &e) || e.Op != "create" || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%q %+v: %v, want %v", c.path, c.spec, err, c.want)
		}
		if store.Len() != 0 {
			t.Errorf("%q %+v: keys were written", c.path, c.spec)
		}
	}
	if _, err := Create(ctx, struct{ kv.ReadLister }{kv.NewMem()}, "a", ok, nil); !errors.Is(err, kv.ErrReadOnly) {
		t.Error(err)
	}
	if _, err := CreateGroup(ctx, struct{ kv.ReadLister }{kv.NewMem()}, "a", Attributes{}, nil); !errors.Is(err, kv.ErrReadOnly) {
		t.Error(err)
	}
}

func TestOpenErrors(t *testing.T) {
	ctx := context.Background()
	store := kv.NewMem()
	must.Have(Create(ctx, store, "g/a", Spec{Shape: []int64{4}, DataType: "int32"}, nil))
	must.Have(0, store.Set(ctx, "g/bad/zarr.json", []byte("{}")))
	for _, c := range []struct {
		path string
		o    *OpenOptions
		want error
	}{
		{"x", nil, ErrNotFound},
		{"g/a/c", nil, ErrNotFound},
		{"g/a", &OpenOptions{Version: V2}, ErrNotFound},
		{"g/../g", nil, ErrPath},
		{"__x", &OpenOptions{Version: V3}, ErrNotFound},
		{"g/bad", nil, ErrMetadata},
	} {
		_, err := Open(ctx, store, c.path, c.o)
		var e *Error
		if !errors.Is(err, c.want) || !errors.As(err, &e) || e.Op != "open" || e.Path != c.path {
			t.Errorf("%q: %v, want %v", c.path, err, c.want)
		}
	}
	if _, err := OpenArray(ctx, store, "g", nil); !errors.Is(err, ErrKind) {
		t.Error(err)
	}
	if _, err := OpenGroup(ctx, store, "g/a", nil); !errors.Is(err, ErrKind) {
		t.Error(err)
	}
	g := must.Have(OpenGroup(ctx, store, "/g/", &OpenOptions{Version: 0}))
	if _, ok := g.Array(); ok || g.Path() != "g" {
		t.Errorf("%q is an array: %v", g.Path(), ok)
	}
}

// TestWalk: errors do not end a walk, plain directories are looked into, and
// formats may be mixed.
func TestWalk(t *testing.T) {
	ctx := context.Background()
	store := kv.NewMem()
	group2, group3 := `{"zarr_format":2}`, `{"zarr_format":3,"node_type":"group"}`
	for key, doc := range map[string]string{
		"b/zarr.json":            group3,
		"b/broken/zarr.json":     "{",
		"b/c/zarr.json":          group3,
		"b/plain/deep/zarr.json": group3,
		"b/old/.zgroup":          group2,
		"b/old/x/.zgroup":        group2,
		"b/__reserved/zarr.json": group3,
		"b/file":                 "no prefix",
		"z/.zgroup":              group2,
		"z/new/zarr.json":        group3,
		"z/a-b/.zgroup":          group2,
		"z/a/.zgroup":            group2,
		"top":                    "",
	} {
		must.Have(0, store.Set(ctx, key, []byte(doc)))
	}
	got := paths(store, "", nil)
	want := []string{"b/", "b/__reserved/", "error: open b/broken: zarr.json: not JSON: ", "b/c/", "b/old/", "b/old/x/", "b/plain/deep/", "z/", "z/a/", "z/a-b/", "z/new/"}
	if !slices.EqualFunc(got, want, func(a, b string) bool { return a == b || strings.HasPrefix(b, "error") && strings.HasPrefix(a, b) }) {
		t.Errorf("%q", got)
	}
	if got := paths(store, "", &OpenOptions{Version: V2}); !slices.Equal(got, []string{"b/old/", "b/old/x/", "z/", "z/a/", "z/a-b/"}) {
		t.Errorf("v2 only: %q", got)
	}
	if got := paths(store, "nothing", nil); !slices.Equal(got, []string{"error: open nothing: zarr: not found"}) {
		t.Errorf("%q", got)
	}
	if got := paths(store, "b/../b", nil); len(got) != 1 || !strings.HasPrefix(got[0], "error: open b/../b: zarr: bad path") {
		t.Errorf("%q", got)
	}
	for range Walk(ctx, store, "", nil) {
		break // a walk can be left at any time
	}
	var names []string
	for n, err := range must.Have(Open(ctx, store, "b", nil)).Children(ctx) {
		if err != nil {
			names = append(names, "error")
			continue
		}
		names = append(names, n.Name())
	}
	if !slices.Equal(names, []string{"__reserved", "error", "c"}) {
		t.Errorf("children %q", names)
	}
	// Without listing.
	for _, err := range must.Have(Open(ctx, writeOnly{store, store}, "b", nil)).Children(ctx) {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
	}
	if got := paths(writeOnly{store, store}, "b", nil); len(got) != 2 || !strings.HasPrefix(got[1], "error: list b: ") {
		t.Errorf("%q", got)
	}
}

// TestWalkMany opens more children than fit one batch.
func TestWalkMany(t *testing.T) {
	ctx := context.Background()
	for _, v := range []Version{V2, V3} {
		store := kv.NewMem()
		var want []string
		for i := range 3*openBatch + 1 {
			path := fmt.Sprintf("a%03d", i)
			must.Have(Create(ctx, store, path, Spec{Version: v, DataType: "int8"}, nil))
			want = append(want, path)
		}
		if got := paths(store, "", nil); !slices.Equal(got[1:], want) {
			t.Errorf("v%d: %q", v, got)
		}
		n := 0
		for range must.Have(Open(ctx, store, "", nil)).Children(ctx) {
			if n++; n == openBatch+1 {
				break
			}
		}
	}
}

func TestConsolidate(t *testing.T) {
	ctx := context.Background()
	known := &OpenOptions{Consolidated: true}
	for _, v := range []Version{V2, V3} {
		for _, base := range []string{"", "base", "e"} { // e has a child of its own name
			store := kv.NewMem()
			must.Have(CreateGroup(ctx, store, base, Attributes{}, &OpenOptions{Version: v}))
			for _, path := range []string{"a/b/c", "a/d", "a-b", "e"} {
				must.Have(Create(ctx, store, joinPath(base, path), Spec{Shape: []int64{3}, DataType: "int8", Attributes: attributesOf(`{"n":1}`)}, nil))
			}
			want := paths(store, base, nil)
			if err := Consolidate(ctx, store, base, known); err != nil {
				t.Fatalf("v%d: %v", v, err)
			}
			// What is told is not looked for.
			for _, key := range must.Have(kv.Keys(ctx, store, "")) {
				if dir := key[:max(strings.LastIndexByte(key, '/'), 0)]; dir != base {
					must.Have(0, store.Delete(ctx, key))
				}
			}
			var view kv.Reader = writeOnly{store, store}
			if got := paths(view, base, known); !slices.Equal(got, want) {
				t.Errorf("v%d: %q, want %q", v, got, want)
			}
			var names []string
			for n, err := range must.Have(Open(ctx, view, base, known)).Children(ctx) {
				must.Have(0, err)
				names = append(names, n.Name())
				if a, ok := n.Array(); ok {
					if got := mustRead(Read[int8](ctx, a, Sel())); len(got) != 3 {
						t.Error(got)
					}
				}
			}
			if !slices.Equal(names, []string{"a", "a-b", "e"}) {
				t.Errorf("v%d: children %q", v, names)
			}
		}
	}
	// Consolidated metadata with a node but not the groups above it, and with a broken node.
	store := kv.NewMem()
	must.Have(0, store.Set(ctx, "zarr.json", []byte(`{"zarr_format":3,"node_type":"group","consolidated_metadata":{"kind":"inline","must_understand":false,
		"metadata":{"x/y":{"zarr_format":3,"node_type":"group"},"bad":{"zarr_format":3}}}}`)))
	got := paths(store, "", known)
	if len(got) != 3 || got[0] != "/" || !strings.HasPrefix(got[1], "error: open bad: ") || got[2] != "x/y/" {
		t.Errorf("%q", got)
	}
	if err := Consolidate(ctx, kv.NewMem(), "", nil); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestAttributesStored(t *testing.T) {
	ctx := context.Background()
	for _, v := range []Version{V2, V3} {
		store := kv.NewMem()
		must.Have(CreateGroup(ctx, store, "g", Attributes{}, &OpenOptions{Version: v}))
		a := must.Have(Create(ctx, store, "g/a", Spec{Shape: []int64{3}, DataType: "int8", DimensionNames: []string{"x"}}, nil))
		must.Have(0, Write(ctx, a, Sel(), []int8{1, 2, 3}))
		for _, path := range []string{"g", "g/a"} {
			n := must.Have(Open(ctx, store, path, nil))
			attrs := n.Attributes()
			must.Have(0, attrs.Set("units", "K"))
			must.Have(0, n.SetAttributes(ctx, attrs))
			if got, _ := n.Attributes().Get("units"); string(got) != `"K"` {
				t.Errorf("v%d %s: %s", v, path, got)
			}
			again := must.Have(Open(ctx, store, path, nil))
			if !again.Attributes().Equal(attrs) {
				t.Errorf("v%d %s: stored %v", v, path, again.Attributes().Keys())
			}
			attrs.Delete("units")
			must.Have(0, again.SetAttributes(ctx, attrs))
			if _, ok := must.Have(Open(ctx, store, path, nil)).Attributes().Get("units"); ok {
				t.Errorf("v%d %s: units are still there", v, path)
			}
		}
		b := must.Have(OpenArray(ctx, store, "g/a", nil))
		if got := mustRead(Read[int8](ctx, b, Sel())); !slices.Equal(got, []int8{1, 2, 3}) || b.DimensionNames()[0] != "x" {
			t.Errorf("v%d: %v %v", v, got, b.DimensionNames())
		}
		ro := must.Have(Open(ctx, struct{ kv.ReadLister }{store}, "g", nil))
		if err := ro.SetAttributes(ctx, Attributes{}); !errors.Is(err, kv.ErrReadOnly) {
			t.Error(err)
		}
	}
}

func TestDelete(t *testing.T) {
	ctx := context.Background()
	store := kv.NewMem()
	for _, path := range []string{"g/a", "g/ab", "g/a2/x"} {
		a := must.Have(Create(ctx, store, path, Spec{Shape: []int64{3}, DataType: "int8"}, nil))
		must.Have(0, Fill(ctx, a, Sel(), int8(1)))
	}
	must.Have(0, must.Have(OpenArray(ctx, store, "g/a", nil)).Delete(ctx))
	if got := paths(store, "", nil); !slices.Equal(got, []string{"/", "g/", "g/a2/", "g/a2/x", "g/ab"}) {
		t.Errorf("%q", got)
	}
	must.Have(0, must.Have(Open(ctx, store, "g/a2", nil)).Delete(ctx))
	if keys := must.Have(kv.Keys(ctx, store, "g/")); !slices.Equal(keys, []string{"g/ab/c/0", "g/ab/zarr.json", "g/zarr.json"}) {
		t.Errorf("%q", keys)
	}
	if err := must.Have(Open(ctx, struct{ kv.ReadLister }{store}, "g", nil)).Delete(ctx); !errors.Is(err, kv.ErrReadOnly) {
		t.Error(err)
	}
	must.Have(0, must.Have(Open(ctx, store, "", nil)).Delete(ctx))
	if store.Len() != 0 {
		t.Errorf("%d keys are left", store.Len())
	}
}

// TestCreateObjects: what the objects of a v2 array are, its filters say.
func TestCreateObjects(t *testing.T) {
	for filters, kind := range map[string]dtype.Kind{
		`[{"id":"vlen-utf8"}]`:                dtype.String,
		`[{"id":"vlen-bytes"}]`:               dtype.Bytes,
		`[{"id":"json2"}]`:                    dtype.JSON,
		`[{"id":"vlen-array","dtype":"<i4"}]`: dtype.Ragged,
		`[{"id":"categorize","labels":["a"],"dtype":"|O","astype":"|u1"}]`: dtype.String,
	} {
		store := kv.NewMem()
		a := create(t, store, "a", Spec{Version: V2, Shape: []int64{2}, DataType: "|O", Codecs: []byte(`{"filters":` + filters + `}`)})
		if b := must.Have(OpenArray(context.Background(), store, "a", nil)); a.Type().Kind() != kind || b.Type().Kind() != kind {
			t.Errorf("%s: %v, %v", filters, a.Type(), b.Type())
		}
	}
}

// TestSpellOut: new arrays have codecs as objects with a configuration.
func TestSpellOut(t *testing.T) {
	const little = `{"name":"bytes","configuration":{"endian":"little"}}`
	for in, want := range map[string]string{
		`["bytes"]`: `[{"name":"bytes","configuration":{}}]`,
		`["bytes",{"name":"numcodecs.lz4"},"crc32c"]`:    `[{"name":"bytes","configuration":{}},{"name":"numcodecs.lz4","configuration":{}},{"name":"crc32c","configuration":{}}]`,
		`["bytes",{"must_understand":false,"name":"x"}]`: `[{"name":"bytes","configuration":{}},{"must_understand":false,"name":"x","configuration":{}}]`,
		`[{"configuration":{"index_codecs":[` + little + `,"crc32c"],"codecs":["bytes"],"chunk_shape":[1]},"name":"sharding_indexed"}]`: `[{"configuration":{"index_codecs":[` + little +
			`,{"name":"crc32c","configuration":{}}],"codecs":[{"name":"bytes","configuration":{}}],"chunk_shape":[1]},"name":"sharding_indexed"}]`,
	} {
		if got := newDoc(t, Spec{Shape: []int64{2}, DataType: "uint8", Codecs: []byte(in)})["codecs"]; string(jsontext.Canonical(got)) != string(jsontext.Canonical([]byte(want))) {
			t.Errorf("%s: %s", in, got)
		}
	}
	for _, in := range []string{"", "null", "7", "[", `["bytes"`, `[7]`, `{"a":1}`, `[{"name":"sharding_indexed","configuration":7}]`} {
		if got := spellOut([]byte(in)); string(got) != in {
			t.Errorf("%s: %s", in, got)
		}
	}
}

// cancelMem refuses many requests at once when the context has ended, as the
// views of servers do.
type cancelMem struct{ *kv.Mem }

func (m cancelMem) GetMany(ctx context.Context, reqs []kv.Request) ([][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return kv.GetMany(ctx, m.Mem, reqs)
}

// List goes to the end of a listing that has begun.
func (m cancelMem) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return m.Mem.List(context.WithoutCancel(ctx), opts)
}

// The context ends right after a full batch of children, and nothing is left to
// open: the sequence just ends. With one more child it ends with the error.
func TestChildrenCancelledAfterBatch(t *testing.T) {
	for _, more := range []int{0, 1} {
		ctx, cancel := context.WithCancel(context.Background())
		m := cancelMem{kv.NewMem()}
		must.Have(CreateGroup(ctx, m, "", Attributes{}, nil))
		for i := range openBatch + more {
			must.Have(CreateGroup(ctx, m, fmt.Sprintf("g%03d", i), Attributes{}, nil))
		}
		n := 0
		var last error
		for _, err := range must.Have(OpenGroup(ctx, m, "", nil)).Children(ctx) {
			if last = err; err == nil {
				n++
			}
			if n == openBatch {
				cancel()
			}
		}
		cancel()
		if n != openBatch || errors.Is(last, context.Canceled) != (more > 0) {
			t.Errorf("%d more: %d children, then %v", more, n, last)
		}
	}
}

// yieldingMem lets others run right after a value was stored.
type yieldingMem struct{ *kv.Mem }

func (m yieldingMem) Set(ctx context.Context, key string, value []byte) error {
	err := m.Mem.Set(ctx, key, value)
	for range 4 {
		runtime.Gosched()
	}
	return err
}

// After changes at the same time through one handle it shows what is stored.
func TestConcurrentChangesOfOneHandle(t *testing.T) {
	ctx := context.Background()
	for _, v := range []Version{V2, V3} {
		m := yieldingMem{kv.NewMem()}
		g := must.Have(CreateGroup(ctx, m, "g", Attributes{}, &OpenOptions{Version: v}))
		a := must.Have(Create(ctx, m, "g/a", Spec{Shape: []int64{4}, DataType: "int8"}, nil))
		for round := range 100 {
			var wg sync.WaitGroup
			for i := range 4 {
				attrs := attributesOf(fmt.Sprintf(`{"i":%d}`, i))
				for _, change := range []func() error{
					func() error { return g.SetAttributes(ctx, attrs) },
					func() error { return a.SetAttributes(ctx, attrs) },
					func() error { return a.Resize(ctx, []int64{int64(4 + i)}, ResizeOptions{}) },
				} {
					wg.Go(func() {
						if err := change(); err != nil {
							t.Error(err)
						}
					})
				}
			}
			wg.Wait()
			for path, here := range map[string]*Meta{"g": g.Meta(), "g/a": a.Meta()} {
				there := must.Have(Open(ctx, m, path, nil)).Meta()
				x, _ := here.Attributes.Get("i")
				y, _ := there.Attributes.Get("i")
				if string(x) != string(y) || !slices.Equal(here.Shape, there.Shape) {
					t.Fatalf("v%d, round %d: the handle of %s has %s %v, the store %s %v", v, round, path, x, here.Shape, y, there.Shape)
				}
			}
		}
	}
}

// Metadata of an image without usable axes leaves the dimensions of its arrays without names.
func TestImageWithoutAxes(t *testing.T) {
	ctx, store := t.Context(), kv.NewMem()
	for path, axes := range map[string]string{"bad": `[{"type":"space"}]`, "long": `["z","y","x"]`, "good": `["y","x"]`} {
		image := attributesOf(`{"ome":{"version":"0.5","multiscales":[{"axes":` + axes + `,"datasets":[{"path":"0"}]}]}}`)
		must.Get(CreateGroup(ctx, store, path, image, nil))(t)
		must.Get(Create(ctx, store, joinPath(path, "0"), Spec{Shape: []int64{2, 3}, DataType: "uint8"}, nil))(t)
		want := []string{"", ""}
		if path == "good" {
			want = []string{"y", "x"}
		}
		a, _ := must.Get(Open(ctx, store, joinPath(path, "0"), nil))(t).Array()
		if names := a.DimensionNames(); !slices.Equal(names, want) {
			t.Errorf("%s: %q", axes, names)
		}
	}
}
