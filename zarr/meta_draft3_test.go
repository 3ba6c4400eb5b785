package zarr

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

func TestDraftLayouts(t *testing.T) {
	for _, c := range []struct {
		l                           DraftLayout
		path                        string
		array, group, chunks, below string
	}{
		{DraftSuffix, "", "meta/array.json", "meta/group.json", "data/", "meta/"},
		{DraftSuffix, "a", "meta/a.a/array.json", "meta/a.g/group.json", "data/a.a/", "meta/a.g/"},
		{DraftSuffix, "a/b", "meta/a.g/b.a/array.json", "meta/a.g/b.g/group.json", "data/a.g/b.a/", "meta/a.g/b.g/"},
		{DraftRoot, "", "meta/root.array.json", "meta/root.group.json", "data/root/", "meta/root/"},
		{DraftRoot, "a", "meta/root/a.array.json", "meta/root/a.group.json", "data/root/a/", "meta/root/a/"},
		{DraftRoot, "a/b", "meta/root/a/b.array.json", "meta/root/a/b.group.json", "data/root/a/b/", "meta/root/a/b/"},
	} {
		if got := []string{c.l.ArrayKey(c.path), c.l.GroupKey(c.path), c.l.ChunkPrefix(c.path), c.l.GroupPrefix(c.path)}; !slices.Equal(got, []string{c.array, c.group, c.chunks, c.below}) {
			t.Errorf("%d %q: %q", c.l, c.path, got)
		}
		for key, array := range map[string]bool{c.array: true, c.group: false} {
			if path, isArray, ok := c.l.ParseKey(key); !ok || path != c.path || isArray != array {
				t.Errorf("%d %s: %q %v %v", c.l, key, path, isArray, ok)
			}
			if !strings.HasPrefix(key, c.l.MetaPrefix()) {
				t.Errorf("%d %s does not begin with %s", c.l, key, c.l.MetaPrefix())
			}
		}
	}
	for _, key := range []string{"", "meta", "meta/", "meta/a/array.json", "meta/a.a/b.a/array.json", "meta/a.g/array.json", "meta/a.a/group.json", "meta/.g/group.json", "data/a.a/array.json", "meta/a.g/zarr.json"} {
		if path, _, ok := DraftSuffix.ParseKey(key); ok {
			t.Errorf("%s is %q", key, path)
		}
	}
	for _, key := range []string{"", "meta/root", "meta/root/", "meta/root/.array.json", "meta/roota.array.json", "meta/root/a.json", "meta/a.array.json"} {
		if path, _, ok := DraftRoot.ParseKey(key); ok {
			t.Errorf("%s is %q", key, path)
		}
	}
}

func TestDraftEntry(t *testing.T) {
	if !IsDraft3Entry([]byte(entryDocDraft)) {
		t.Error("not recognised")
	}
	for _, doc := range []string{``, `[]`, `{}`, groupDoc, arrayDoc, edit(t, entryDocDraft, "metadata_key_suffix", `".xml"`)} {
		if IsDraft3Entry([]byte(doc)) {
			t.Errorf("%s is an entry", doc)
		}
	}
}

const entryDocDraft = `{"extensions": [], "metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0", "metadata_key_suffix": ".json", "zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0"}`

const arrayDocDraft = `{"attributes": {}, "chunk_grid": {"chunk_shape": [4, 3], "separator": "/", "type": "regular"}, "chunk_memory_layout": "C",
 "compressor": {"codec": "https://purl.org/zarr/spec/codec/zlib/1.0", "configuration": {"level": 1}}, "data_type": "<i4", "extensions": [], "fill_value": 0, "shape": [6, 5]}`

func TestDraft3(t *testing.T) {
	reg := codecs.Default()
	for _, c := range []struct {
		set       []string
		typ, keys string
		err       string
	}{
		{nil, "int32", "c1/2", ""},
		{[]string{"data_type", `"bool"`, "fill_value", "false"}, "bool", "c1/2", ""},
		{[]string{"data_type", `"u1"`}, "uint8", "c1/2", ""},
		{[]string{"data_type", `{"extension":"https://example.org/complex/1.0","type":"<c8","fallback":null}`, "fill_value", "[0.0,0.0]"}, "complex64", "c1/2", ""},
		{[]string{"compressor", "null"}, "int32", "c1/2", ""},
		{[]string{"compressor", ""}, "int32", "c1/2", ""},
		{[]string{"fill_value", ""}, "int32", "c1/2", ""},
		{[]string{"chunk_grid", `{"type":"regular","chunk_shape":[4,3]}`, "chunk_memory_layout", "", "memory_layout", `"F"`, "codecs", "[]", "compressor", ""}, "int32", "1.2", ""},
		{[]string{"codecs", `[{"codec":"https://purl.org/zarr/spec/codec/gzip/1.0","configuration":{"level":1}}]`, "compressor", ""}, "int32", "c1/2", ""},
		{[]string{"attributes", `{"filters":[{"id":"vlen-utf8"}]}`, "data_type", `{"type":"|O"}`}, "string", "c1/2", ""},
		{[]string{"attributes", `{"filters":["mine"]}`}, "int32", "c1/2", ""},
		{[]string{"extensions", `[{"must_understand":false}]`}, "int32", "c1/2", ""},

		{[]string{"shape", ""}, "", "", "shape"},
		{[]string{"data_type", ""}, "", "", "data_type"},
		{[]string{"data_type", `"i4"`}, "", "", "data_type"},
		{[]string{"chunk_grid", ""}, "", "", "chunk_grid"},
		{[]string{"chunk_grid", `[]`}, "", "", "chunk_grid"},
		{[]string{"chunk_grid", `{"type":"x"}`}, "", "", "chunk_grid.type"},
		{[]string{"chunk_grid", `{"type":"regular"}`}, "", "", "chunk_grid.chunk_shape"},
		{[]string{"chunk_grid", `{"type":"regular","chunk_shape":[1,1],"separator":"-"}`}, "", "", "chunk_grid.separator"},
		{[]string{"chunk_memory_layout", ""}, "", "", "chunk_memory_layout"},
		{[]string{"chunk_memory_layout", `"X"`}, "", "", "order"},
		{[]string{"compressor", `[]`}, "", "", "compressor"},
		{[]string{"compressor", `{"codec":"zlib"}`}, "", "", "compressor.codec"},
		{[]string{"compressor", `{"codec":"a/zlib/1.0","configuration":{"id":"x"}}`}, "", "", "compressor.configuration"},
		{[]string{"compressor", `{"codec":"a/brotli9/1.0"}`}, "", "", "compressor"},
		{[]string{"codecs", `{}`}, "", "", "codecs"},
		{[]string{"codecs", `[1]`}, "", "", "codecs[0]"},
		{[]string{"fill_value", `"x"`}, "", "", "fill_value"},
		{[]string{"extensions", `[{"x":1}]`}, "", "", "extensions[0]"},
		{[]string{"extensions", `{}`}, "", "", "extensions"},
		{[]string{"attributes", `[]`}, "", "", "attributes"},
	} {
		doc := edit(t, arrayDocDraft, c.set...)
		m, err := ParseDraft3Array([]byte(doc), reg)
		if c.err != "" {
			if !errors.Is(err, ErrMetadata) || !strings.HasPrefix(err.Error(), docArrayDraft+": "+c.err+": ") {
				t.Errorf("%s: %v, not about %s", doc, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", doc, err)
			continue
		}
		if key := string(m.Keys.Append(nil, []int64{1, 2})); m.Type.String() != c.typ || key != c.keys || m.Version != Draft3 {
			t.Errorf("%s: %s, %s", doc, m.Type, key)
		}
		if _, ok := m.extra["extensions"]; !ok {
			t.Errorf("%s: extensions are lost", doc)
		}
		checkPrint(t, m, map[string]string{docArrayDraft: doc}, reg)
	}
	for _, bad := range []string{``, `[]`, `{"attributes":1}`, `{"extensions":[1]}`} {
		if m, err := ParseDraft3Group([]byte(bad)); !errors.Is(err, ErrMetadata) {
			t.Errorf("%s: %v, %v", bad, m, err)
		}
	}
}

// TestDraft3Change: what was parsed can be printed, and nothing else.
func TestDraft3Change(t *testing.T) {
	reg := codecs.Default()
	m := must(ParseDraft3Array([]byte(arrayDocDraft), reg))
	for what, change := range map[string]func(*Meta){
		"shape":      func(c *Meta) { c.Shape[0] = 7 },
		"fill value": func(c *Meta) { c.Fill = []byte{9, 0, 0, 0} },
		"attributes": func(c *Meta) { check(t, c.Attributes.Set("a", 1)) },
		"keys":       func(c *Meta) { c.Keys = V2Keys('.', 2) },
		"grid":       func(c *Meta) { c.Grid = RegularGrid([]int{1, 1}) },
		"type":       func(c *Meta) { c.Type = c.Type.WithOrder(dtype.Big) },
		"extensions": func(c *Meta) { delete(c.extra, "extensions") },
	} {
		c := m.Clone()
		change(c)
		if docs, err := c.Print(); !errors.Is(err, ErrNoForm) {
			t.Errorf("other %s: %s, %v", what, docs, err)
		}
	}
	for _, g := range []*Meta{must(ParseDraft3Group([]byte(`{"attributes":{"t":1}}`))), {Version: Draft3}} {
		g = g.Clone()
		g.Attributes.Delete("t")
		if docs, err := g.Print(); !errors.Is(err, ErrNoForm) {
			t.Errorf("group: %s, %v", docs, err)
		}
	}
}

// TestDraftReadOnly: every change of a store in the early v3 draft is refused,
// and changes nothing.
func TestDraftReadOnly(t *testing.T) {
	ctx := context.Background()
	groupDocDraft := []byte(`{"attributes":{}}`)
	for _, l := range []DraftLayout{DraftSuffix, DraftRoot} {
		store := kv.NewMem()
		if l == DraftRoot {
			must(0, store.Set(ctx, docV3, []byte(entryDocDraft)))
			if _, err := Create(ctx, store, "x", Spec{Shape: []int64{1}, DataType: "int8"}, nil); !errors.Is(err, ErrDraft3) {
				t.Errorf("below an entry document alone: %v", err)
			}
		}
		must(0, store.Set(ctx, l.ArrayKey("g/a"), []byte(arrayDocDraft)))
		must(0, store.Set(ctx, l.GroupKey("g/h"), groupDocDraft))
		keys := must(kv.Keys(ctx, store, ""))
		a, g := must(OpenArray(ctx, store, "g/a", nil)), must(OpenGroup(ctx, store, "g", nil))
		if got := paths(store, "", nil); !slices.Equal(got, []string{"/", "g/", "g/a", "g/h/"}) {
			t.Errorf("layout %d: %q", l, got)
		}
		spec := Spec{Shape: []int64{1}, DataType: "int8"}
		for what, do := range map[string]func() error{
			"write":            func() error { return Fill(ctx, a, Sel(), int32(1)) },
			"write fill":       func() error { return a.WriteFill(ctx, Sel()) },
			"resize":           func() error { return a.Resize(ctx, []int64{1, 1}, ResizeOptions{}) },
			"array attributes": func() error { return a.SetAttributes(ctx, attributesOf(`{"x":1}`)) },
			"group attributes": func() error { return g.SetAttributes(ctx, attributesOf(`{"x":1}`)) },
			"delete an array":  func() error { return a.Delete(ctx) },
			"delete a group":   func() error { return g.Delete(ctx) },
			"create an array":  func() error { _, err := Create(ctx, store, "g/b", spec, nil); return err },
			"create a group":   func() error { _, err := CreateGroup(ctx, store, "c", Attributes{}, nil); return err },
			"create in v2": func() error {
				_, err := CreateGroup(ctx, store, "c", Attributes{}, &OpenOptions{Version: V2})
				return err
			},
			"replace": func() error { _, err := Create(ctx, store, "g/a", spec, &OpenOptions{Overwrite: true}); return err },
		} {
			if err := do(); !errors.Is(err, ErrDraft3) || !errors.Is(err, kv.ErrReadOnly) {
				t.Errorf("layout %d: %s: %v", l, what, err)
			}
			wantKeys(t, store, keys...)
		}
		// Another store may take its place.
		must(CreateGroup(ctx, store, "", Attributes{}, &OpenOptions{Overwrite: true}))
		wantKeys(t, store, docV3)
	}
	if _, err := CreateGroup(ctx, kv.NewMem(), "", Attributes{}, &OpenOptions{Version: Draft3}); !errors.Is(err, ErrDraft3) {
		t.Error(err)
	}
}
