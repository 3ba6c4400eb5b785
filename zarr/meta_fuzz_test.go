package zarr

import (
	"bytes"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
)

// reparse prints m, as it is and made anew, and parses it again.
func reparse(t *testing.T, m *Meta, reg *codecs.Registry) {
	t.Helper()
	for _, fresh := range []bool{false, true} {
		c := m.Clone()
		if fresh {
			c.src = nil
		}
		docs, err := c.Print()
		if err != nil {
			if noForm(err) && fresh {
				continue
			}
			t.Fatalf("cannot be printed: %v", err)
		}
		again, err := parseDocs(m, docs, reg)
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
		f.Add([]byte(edit(f, r.base, r.set...)))
	}
	for i, c := range readCases(f) {
		if text, ok := c.Docs[docV3]; ok && i%5 == 0 {
			f.Add([]byte(text))
		}
	}
	reg := codecs.Default()
	f.Fuzz(func(t *testing.T, doc []byte) {
		FormOf(docV3, doc)
		IsDraft3Entry(doc)
		m, err := ParseV3(doc, reg)
		if err != nil {
			return
		}
		if docs, err := m.Print(); err != nil || !bytes.Equal(docs[docV3], doc) {
			t.Fatalf("%q is printed as %q, %v", doc, docs[docV3], err)
		}
		reparse(t, m, reg)
	})
}

func FuzzParseV2(f *testing.F) {
	for _, r := range specV2 {
		f.Add([]byte(edit(f, r.base, r.set...)), []byte(`{"_ARRAY_DIMENSIONS":["y","x"]}`))
	}
	f.Add([]byte(arrayDocDraft), []byte(nil))
	for i, c := range readCases(f) {
		for _, name := range []string{docArrayV2, docGroupV2, docArrayV1} {
			if text, ok := c.Docs[name]; ok && i%5 == 0 {
				f.Add([]byte(text), []byte(c.Docs[docAttrsV2]))
			}
		}
		if text, ok := c.Docs[docConsolidatedV2]; ok {
			f.Add([]byte(text), []byte("{}"))
		}
	}
	reg := codecs.Default()
	f.Fuzz(func(t *testing.T, doc, attrs []byte) {
		FormOf(docArrayV2, doc)
		if m, err := ParseV2Array(doc, attrs, reg); err == nil {
			reparse(t, m, reg)
		}
		if m, err := ParseV2Group(doc, attrs); err == nil {
			reparse(t, m, reg)
		}
		if m, err := ParseV1(doc, attrs, reg); err == nil {
			reparse(t, m, reg)
		}
		if m, err := ParseDraft3Array(doc, reg); err == nil {
			reparse(t, m, reg)
		}
		if m, err := ParseDraft3Group(doc); err == nil {
			reparse(t, m, reg)
		}
		if nodes, _, err := ParseConsolidatedV2(doc, reg); err == nil {
			text, err := PrintConsolidatedV2(nodes)
			if err != nil {
				t.Fatal(err)
			}
			again, _, err := ParseConsolidatedV2(text, reg)
			if err != nil || len(again) != len(nodes) {
				t.Fatalf("%q is printed as %q, %v", doc, text, err)
			}
		}
	})
}
