package meta_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/internal/metatest"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

func TestDraftLayouts(t *testing.T) {
	for _, c := range []struct {
		l                           meta.DraftLayout
		path                        string
		array, group, chunks, below string
	}{
		{meta.DraftSuffix, "", "meta/array.json", "meta/group.json", "data/", "meta/"},
		{meta.DraftSuffix, "a", "meta/a.a/array.json", "meta/a.g/group.json", "data/a.a/", "meta/a.g/"},
		{meta.DraftSuffix, "a/b", "meta/a.g/b.a/array.json", "meta/a.g/b.g/group.json", "data/a.g/b.a/", "meta/a.g/b.g/"},
		{meta.DraftRoot, "", "meta/root.array.json", "meta/root.group.json", "data/root/", "meta/root/"},
		{meta.DraftRoot, "a", "meta/root/a.array.json", "meta/root/a.group.json", "data/root/a/", "meta/root/a/"},
		{meta.DraftRoot, "a/b", "meta/root/a/b.array.json", "meta/root/a/b.group.json", "data/root/a/b/", "meta/root/a/b/"},
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
		if path, _, ok := meta.DraftSuffix.ParseKey(key); ok {
			t.Errorf("%s is %q", key, path)
		}
	}
	for _, key := range []string{"", "meta/root", "meta/root/", "meta/root/.array.json", "meta/roota.array.json", "meta/root/a.json", "meta/a.array.json"} {
		if path, _, ok := meta.DraftRoot.ParseKey(key); ok {
			t.Errorf("%s is %q", key, path)
		}
	}
}

func TestDraftEntry(t *testing.T) {
	if !meta.IsDraft3Entry([]byte(metatest.EntryDocDraft)) {
		t.Error("not recognised")
	}
	for _, doc := range []string{``, `[]`, `{}`, metatest.GroupDoc, metatest.ArrayDoc, metatest.Edit(t, metatest.EntryDocDraft, "metadata_key_suffix", `".xml"`)} {
		if meta.IsDraft3Entry([]byte(doc)) {
			t.Errorf("%s is an entry", doc)
		}
	}
}

func TestDraft3(t *testing.T) {
	reg := builtin.Registry()
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
		doc := metatest.Edit(t, metatest.ArrayDocDraft, c.set...)
		m, err := meta.ParseDraft3Array([]byte(doc), reg)
		if c.err != "" {
			if !errors.Is(err, meta.ErrMetadata) || !strings.HasPrefix(err.Error(), meta.DocArrayDraft+": "+c.err+": ") {
				t.Errorf("%s: %v, not about %s", doc, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", doc, err)
			continue
		}
		if key := string(m.Keys.Append(nil, []int64{1, 2})); m.Type.String() != c.typ || key != c.keys || m.Version != meta.Draft3 {
			t.Errorf("%s: %s, %s", doc, m.Type, key)
		}
		if _, ok := m.Extra()["extensions"]; !ok {
			t.Errorf("%s: extensions are lost", doc)
		}
		metatest.CheckPrint(t, m, map[string]string{meta.DocArrayDraft: doc}, reg)
	}
	for _, bad := range []string{``, `[]`, `{"attributes":1}`, `{"extensions":[1]}`} {
		if m, err := meta.ParseDraft3Group([]byte(bad)); !errors.Is(err, meta.ErrMetadata) {
			t.Errorf("%s: %v, %v", bad, m, err)
		}
	}
}

// TestDraft3Change: what was parsed can be printed, and nothing else.
func TestDraft3Change(t *testing.T) {
	reg := builtin.Registry()
	m := must.Have(meta.ParseDraft3Array([]byte(metatest.ArrayDocDraft), reg))
	for what, change := range map[string]func(*meta.Meta){
		"shape":      func(c *meta.Meta) { c.Shape[0] = 7 },
		"fill value": func(c *meta.Meta) { c.Fill = []byte{9, 0, 0, 0} },
		"attributes": func(c *meta.Meta) { must.Do(t, c.Attributes.Set("a", 1)) },
		"keys":       func(c *meta.Meta) { c.Keys = meta.V2Keys('.', 2) },
		"grid":       func(c *meta.Meta) { c.Grid = meta.RegularGrid([]int{1, 1}) },
		"type":       func(c *meta.Meta) { c.Type = c.Type.WithOrder(dtype.Big) },
		"extensions": func(c *meta.Meta) { delete(c.Extra(), "extensions") },
	} {
		c := m.Clone()
		change(c)
		if docs, err := c.Print(); !errors.Is(err, meta.ErrNoForm) {
			t.Errorf("other %s: %s, %v", what, docs, err)
		}
	}
	for _, g := range []*meta.Meta{must.Have(meta.ParseDraft3Group([]byte(`{"attributes":{"t":1}}`))), {Version: meta.Draft3}} {
		g = g.Clone()
		g.Attributes.Delete("t")
		if docs, err := g.Print(); !errors.Is(err, meta.ErrNoForm) {
			t.Errorf("group: %s, %v", docs, err)
		}
	}
}
