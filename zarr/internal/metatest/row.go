package metatest

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/builtin"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// Row is one demand of the specification, and a document that keeps or
// breaks it.
type Row struct {
	Section string // of the Zarr v3 core specification
	Why     string
	Base    string
	Set     []string // edits
	Field   string   // that the error must name; "" if the document is right
}

// Check parses the document, which is called name.
func (r Row) Check(t *testing.T, name string, parse func([]byte) (*meta.Meta, error)) {
	t.Helper()
	doc := Edit(t, r.Base, r.Set...)
	m, err := parse([]byte(doc))
	switch {
	case r.Field == "" && err != nil:
		t.Errorf("%s: %v", doc, err)
	case r.Field == "" && name == meta.DocArrayV1:
		if key := string(m.Keys.Append(nil, []int64{1, 2})); key != "1.2" {
			t.Errorf("chunk key %q", key)
		}
	case r.Field == "":
		CheckPrint(t, m, map[string]string{name: doc}, builtin.Registry())
	case err == nil:
		t.Errorf("accepted: %s", doc)
	case !errors.Is(err, meta.ErrMetadata) || !strings.HasPrefix(err.Error(), name+": "+r.Field+": "):
		t.Errorf("%s: error %q does not name %s", doc, err, r.Field)
	}
}

// ReadV2 parses an array of v2.
func ReadV2(doc []byte) (*meta.Meta, error) { return meta.ParseV2Array(doc, nil, builtin.Registry()) }

// ReadV1 parses an array of v1.
func ReadV1(doc []byte) (*meta.Meta, error) { return meta.ParseV1(doc, nil, builtin.Registry()) }

// CheckPrint prints m as it is, and as if it had been made anew.
func CheckPrint(t *testing.T, m *meta.Meta, docs map[string]string, reg *codecs.Registry) {
	t.Helper()
	out, err := m.Print()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range docs {
		if string(out[name]) != text {
			t.Errorf("%s is printed as\n%s\ninstead of\n%s", name, out[name], text)
		}
	}
	if m.Version == meta.Draft3 {
		return
	}
	out, err = m.Anew().Print()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseDocs(m, out, reg)
	if err != nil {
		t.Fatalf("printed anew it cannot be parsed: %v: %s", err, out)
	}
	if d := again.Diff(m); len(d) > 0 {
		t.Errorf("printed anew it differs in %v: %s", d, out)
	}
	if !bytes.Equal(again.StructureKey(), m.StructureKey()) {
		t.Errorf("printed anew its structure is\n%s\nnot\n%s", again.StructureKey(), m.StructureKey())
	}
}

// ParseDocs parses what Print gave for m.
func ParseDocs(m *meta.Meta, out map[string][]byte, reg *codecs.Registry) (*meta.Meta, error) {
	switch {
	case m.Version == meta.V3:
		return meta.ParseV3(out[meta.DocV3], reg)
	case m.Version == meta.V1:
		return meta.ParseV1(out[meta.DocArrayV1], out[meta.DocAttrsV1], reg)
	case m.Version == meta.V2 && m.Array:
		return meta.ParseV2Array(out[meta.DocArrayV2], out[meta.DocAttrsV2], reg)
	case m.Version == meta.V2:
		return meta.ParseV2Group(out[meta.DocGroupV2], out[meta.DocAttrsV2])
	case m.Array:
		return meta.ParseDraft3Array(out[meta.DocArrayDraft], reg)
	}
	return meta.ParseDraft3Group(out[meta.DocGroupDraft])
}
