package meta_test

import (
	"bytes"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/internal/metatest"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// reparse prints m, as it is and made anew, and parses it again.
func reparse(t *testing.T, m *meta.Meta, reg *codecs.Registry) {
	t.Helper()
	for _, fresh := range []bool{false, true} {
		c := m.Clone()
		if fresh {
			c = m.Anew()
		}
		docs, err := c.Print()
		if err != nil {
			if noForm(err) && fresh {
				continue
			}
			t.Fatalf("cannot be printed: %v", err)
		}
		again, err := metatest.ParseDocs(m, docs, reg)
		if err != nil {
			t.Fatalf("printed as %s it cannot be parsed: %v", docs, err)
		}
		if d := again.Diff(m); len(d) > 0 {
			t.Fatalf("printed as %s it differs in %v", docs, d)
		}
		if !bytes.Equal(again.StructureKey(), m.StructureKey()) {
			t.Fatalf("printed as %s it has another structure", docs)
		}
	}
	if c := m.Clone(); !c.Equal(m) {
		t.Fatal("a clone differs")
	}
	if !m.Array {
		return
	}
	if err := m.Validate(); err != nil {
		t.Fatalf("what was parsed is not valid: %v", err)
	}
	for d, n := range m.ChunkCounts() {
		if n > 0 {
			if first, end := m.Grid.Range(d, m.Shape[d]-1, m.Shape[d]); end != n || first != n-1 {
				t.Fatalf("dimension %d of %d elements in %d chunks ends in %d to %d", d, m.Shape[d], n, first, end)
			}
		}
	}
}

func FuzzParseV3(f *testing.F) {
	for _, r := range specV3 {
		f.Add([]byte(metatest.Edit(f, r.Base, r.Set...)))
	}
	for i, c := range readCases(f) {
		if text, ok := c.Docs[meta.DocV3]; ok && i%5 == 0 {
			f.Add([]byte(text))
		}
	}
	reg := builtin.Registry()
	f.Fuzz(func(t *testing.T, doc []byte) {
		meta.FormOf(meta.DocV3, doc)
		meta.IsDraft3Entry(doc)
		m, err := meta.ParseV3(doc, reg)
		if err != nil {
			return
		}
		if docs, err := m.Print(); err != nil || !bytes.Equal(docs[meta.DocV3], doc) {
			t.Fatalf("%q is printed as %q, %v", doc, docs[meta.DocV3], err)
		}
		reparse(t, m, reg)
	})
}

func FuzzParseV2(f *testing.F) {
	for _, r := range specV2 {
		f.Add([]byte(metatest.Edit(f, r.Base, r.Set...)), []byte(`{"_ARRAY_DIMENSIONS":["y","x"]}`))
	}
	f.Add([]byte(metatest.ArrayDocDraft), []byte(nil))
	for i, c := range readCases(f) {
		for _, name := range []string{meta.DocArrayV2, meta.DocGroupV2, meta.DocArrayV1} {
			if text, ok := c.Docs[name]; ok && i%5 == 0 {
				f.Add([]byte(text), []byte(c.Docs[meta.DocAttrsV2]))
			}
		}
		if text, ok := c.Docs[meta.DocConsolidatedV2]; ok {
			f.Add([]byte(text), []byte("{}"))
		}
	}
	reg := builtin.Registry()
	f.Fuzz(func(t *testing.T, doc, attrs []byte) {
		meta.FormOf(meta.DocArrayV2, doc)
		if m, err := meta.ParseV2Array(doc, attrs, reg); err == nil {
			reparse(t, m, reg)
		}
		if m, err := meta.ParseV2Group(doc, attrs); err == nil {
			reparse(t, m, reg)
		}
		if m, err := meta.ParseV1(doc, attrs, reg); err == nil {
			reparse(t, m, reg)
		}
		if m, err := meta.ParseDraft3Array(doc, reg); err == nil {
			reparse(t, m, reg)
		}
		if m, err := meta.ParseDraft3Group(doc); err == nil {
			reparse(t, m, reg)
		}
		if nodes, _, err := meta.ParseConsolidatedV2(doc, reg); err == nil {
			text := must.Get(meta.UpdateConsolidatedV2(nil, nil, nodes))(t)
			again, _, err := meta.ParseConsolidatedV2(text, reg)
			if err != nil || len(again) != len(nodes) {
				t.Fatalf("%q is printed as %q, %v", doc, text, err)
			}
		}
	})
}
