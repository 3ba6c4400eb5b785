package zarr

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// testdata/metadata holds the metadata documents of stores that other software
// wrote, one case per line, with what reading them must give. They are copied
// from a folder of such stores by
//
//	ZARRDB_FIXTURES=folder go test ./zarr -run TestCollectMetadata

// metaCase is one store.
type metaCase struct {
	Name   string            `json:"name"`
	Writer string            `json:"writer"`
	Docs   map[string]string `json:"docs"` // by key
	// Error, for stores that must be refused, is the reason.
	Error string     `json:"error,omitempty"`
	Nodes []metaNode `json:"nodes,omitempty"`
}

type metaNode struct {
	Path           string          `json:"path"`
	NodeType       string          `json:"node_type,omitempty"`
	Shape          []int64         `json:"shape,omitempty"`
	DataType       json.RawMessage `json:"data_type,omitempty"`
	Chunks         json.RawMessage `json:"chunks,omitempty"`
	FillValue      json.RawMessage `json:"fill_value,omitempty"`
	Attributes     json.RawMessage `json:"attributes,omitempty"`
	DimensionNames []*string       `json:"dimension_names,omitempty"`
}

var metaAreas = []string{"v1", "v2", "v3", "early-v3", "corrupt"}

func TestCollectMetadata(t *testing.T) {
	root := os.Getenv("ZARRDB_FIXTURES")
	if root == "" {
		t.Skip("ZARRDB_FIXTURES is not set")
	}
	for _, area := range metaAreas {
		var out bytes.Buffer
		err := filepath.WalkDir(filepath.Join(root, area), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.Name() != "expect.json" {
				return err
			}
			name, err := filepath.Rel(root, filepath.Dir(p))
			if err != nil {
				return err
			}
			c, ok := collectCase(t, filepath.Dir(p), filepath.ToSlash(name))
			if ok {
				line, err := json.Marshal(c)
				if err != nil {
					return err
				}
				out.Write(append(line, '\n'))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("testdata", "metadata", area+".jsonl"), out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// collectCase reads a case of the folder; ok is false if it has nothing to say
// about metadata.
func collectCase(t *testing.T, dir, name string) (c metaCase, ok bool) {
	var e struct {
		metaNode
		Kind, Writer, Store, Error, Operation, Stage, Outcome string
		Lenient                                               bool
		Nodes                                                 []metaNode
	}
	raw, err := os.ReadFile(filepath.Join(dir, "expect.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatal(dir, err)
	}
	c = metaCase{Name: name, Writer: e.Writer, Docs: map[string]string{}}
	switch e.Kind {
	case "array":
		e.metaNode.NodeType = "array"
		c.Nodes = []metaNode{e.metaNode}
	case "hierarchy":
		c.Nodes = e.Nodes
	case "invalid":
		c.Error = e.Error
		if e.Lenient || e.Operation != "" {
			return c, false
		}
	case "corrupt":
		// Damage that metadata shows.
		c.Error = e.Error
		if e.Outcome != "error" || e.Stage == "read" || e.Store == "" || strings.HasPrefix(path.Base(name), "zip_") {
			return c, false
		}
	default:
		return c, false
	}
	store := os.DirFS(filepath.Join(dir, e.Store))
	if strings.HasSuffix(e.Store, ".zip") {
		z, err := zip.OpenReader(filepath.Join(dir, e.Store))
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		store = z
	}
	err = fs.WalkDir(store, ".", func(key string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isDocument(key) {
			return err
		}
		text, err := fs.ReadFile(store, key)
		if len(text) > 1<<16 || !utf8.Valid(text) {
			return err // TestHostileDocuments makes its own
		}
		c.Docs[key] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(dir, err)
	}
	return c, len(c.Docs) > 0
}

func isDocument(key string) bool {
	switch path.Base(key) {
	case docV3, docArrayV2, docGroupV2, docAttrsV2, docConsolidatedV2, docArrayV1, docAttrsV1:
		return true
	}
	return strings.HasSuffix(key, docArrayDraft) || strings.HasSuffix(key, docGroupDraft)
}

func readCases(t testing.TB) []metaCase {
	var all []metaCase
	for _, area := range metaAreas {
		f, err := os.Open(filepath.Join("testdata", "metadata", area+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var c metaCase
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
				t.Fatal(area, err)
			}
			all = append(all, c)
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// open parses the node at path, and returns the documents it was parsed from
// by the names that Print gives them.
func (c *metaCase) open(path string, reg *codecs.Registry) (*Meta, map[string]string, error) {
	path = strings.Trim(path, "/")
	at := func(name string) []byte {
		key := name
		if path != "" {
			key = path + "/" + name
		}
		if text, ok := c.Docs[key]; ok {
			return []byte(text)
		}
		return nil
	}
	used := func(names ...string) map[string]string {
		docs := make(map[string]string)
		for _, n := range names {
			if text := at(n); text != nil {
				docs[n] = string(text)
			}
		}
		return docs
	}
	if strings.HasPrefix(c.Name, "early-v3") {
		layout := DraftSuffix
		if IsDraft3Entry([]byte(c.Docs[docV3])) {
			layout = DraftRoot
		}
		if text, ok := c.Docs[layout.ArrayKey(path)]; ok {
			m, err := ParseDraft3Array([]byte(text), reg)
			return m, map[string]string{docArrayDraft: text}, err
		}
		text, ok := c.Docs[layout.GroupKey(path)]
		if !ok {
			return nil, nil, ErrNotFound
		}
		m, err := ParseDraft3Group([]byte(text))
		return m, map[string]string{docGroupDraft: text}, err
	}
	switch {
	case at(docV3) != nil:
		m, err := ParseV3(at(docV3), reg)
		return m, used(docV3), err
	case at(docArrayV2) != nil:
		m, err := ParseV2Array(at(docArrayV2), at(docAttrsV2), reg)
		return m, used(docArrayV2, docAttrsV2), err
	case at(docGroupV2) != nil:
		m, err := ParseV2Group(at(docGroupV2), at(docAttrsV2))
		return m, used(docGroupV2, docAttrsV2), err
	case at(docArrayV1) != nil:
		m, err := ParseV1(at(docArrayV1), at(docAttrsV1), reg)
		return m, used(docArrayV1, docAttrsV1), err
	}
	return nil, nil, ErrNotFound
}

func TestMetadataOfOthers(t *testing.T) {
	reg := testRegistry()
	for _, c := range readCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			if c.Error != "" {
				m, _, err := c.open("", reg)
				if err == nil && hasStandIn(m) {
					t.Skip("the codec that would refuse it is not built in")
				}
				var f *FieldError
				if !errors.Is(err, ErrMetadata) || !errors.As(err, &f) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("accepted (%v, %v): %s", m, err, c.Error)
				}
				return
			}
			for _, want := range c.Nodes {
				m, docs, err := c.open(want.Path, reg)
				if errors.Is(err, ErrNotFound) && want.NodeType == "group" {
					continue // groups may be implied
				}
				if err != nil {
					t.Fatalf("%s: %v", want.Path, err)
				}
				checkNode(t, m, want)
				checkPrint(t, m, docs, reg)
			}
		})
	}
}

func checkNode(t *testing.T, m *Meta, want metaNode) {
	t.Helper()
	if m.Array != (want.NodeType == "array") {
		t.Errorf("%s: array is %v", want.Path, m.Array)
	}
	if want.Attributes != nil && !sameJSON(strict(m.Attributes.text()), strict(want.Attributes)) {
		t.Errorf("%s: attributes %s, want %s", want.Path, m.Attributes.text(), want.Attributes)
	}
	if !m.Array {
		return
	}
	if !slices.Equal(m.Shape, want.Shape) {
		t.Errorf("%s: shape %v, want %v", want.Path, m.Shape, want.Shape)
	}
	if want.DimensionNames != nil && !slices.EqualFunc(m.DimensionNames, want.DimensionNames, sameName) {
		t.Errorf("%s: dimension names %v", want.Path, m.DimensionNames)
	}
	if want.DataType != nil {
		var typ dtype.Type
		var err error
		switch {
		case string(want.DataType) == `"|O"`:
			typ = m.Type
		case m.Version == V3:
			typ, err = dtype.ParseV3(want.DataType)
		default:
			typ, err = dtype.ParseV2(want.DataType, dtype.Type{})
		}
		if err != nil || !typ.Equal(m.Type) {
			t.Errorf("%s: type %s, want %s (%v)", want.Path, m.Type, want.DataType, err)
		}
	}
	var chunks []int
	if want.Chunks != nil && json.Unmarshal(want.Chunks, &chunks) == nil && !slices.Equal(m.Grid.Regular(), chunks) {
		t.Errorf("%s: chunks %v, want %s", want.Path, m.Grid.Regular(), want.Chunks)
	}
	checkFill(t, m, want)
}

func checkFill(t *testing.T, m *Meta, want metaNode) {
	t.Helper()
	if want.FillValue == nil {
		return
	}
	var fill []byte
	var err error
	null := false
	switch m.Version {
	case V3:
		fill, err = m.Type.ParseFillV3(want.FillValue)
	case V1:
		fill, null, err = m.Type.ParseFillV1(want.FillValue)
	default:
		fill, null, err = m.Type.ParseFillV2(want.FillValue)
	}
	if err != nil || !bytes.Equal(fill, m.Fill) || null != m.NullFill {
		t.Errorf("%s: fill value %x (null %v), want %s = %x (%v)", want.Path, m.Fill, m.NullFill, want.FillValue, fill, err)
	}
}

func strict(raw json.RawMessage) json.RawMessage { return appendStrict(nil, raw) }

// checkPrint prints m as it is, and as if it had been made anew.
func checkPrint(t *testing.T, m *Meta, docs map[string]string, reg *codecs.Registry) {
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
	if m.Version == Draft3 {
		return
	}
	fresh := m.Clone()
	fresh.src = nil
	out, err = fresh.Print()
	if err != nil {
		t.Fatal(err)
	}
	again, err := parseDocs(m, out, reg)
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

// parseDocs parses what Print gave for m.
func parseDocs(m *Meta, out map[string][]byte, reg *codecs.Registry) (*Meta, error) {
	switch {
	case m.Version == V3:
		return ParseV3(out[docV3], reg)
	case m.Version == V1:
		return ParseV1(out[docArrayV1], out[docAttrsV1], reg)
	case m.Version == V2 && m.Array:
		return ParseV2Array(out[docArrayV2], out[docAttrsV2], reg)
	case m.Version == V2:
		return ParseV2Group(out[docGroupV2], out[docAttrsV2])
	case m.Array:
		return ParseDraft3Array(out[docArrayDraft], reg)
	}
	return ParseDraft3Group(out[docGroupDraft])
}

// TestFormOf compares the form that a document names with that of its Meta.
func TestFormOf(t *testing.T) {
	reg := testRegistry()
	for _, c := range readCases(t) {
		for key, text := range c.Docs {
			p, sep, rank, ok := FormOf(path.Base(key), []byte(text))
			m, _, err := c.open(path.Dir(strings.TrimPrefix("/"+key, "/")), reg)
			if path.Dir(key) == "." {
				m, _, err = c.open("", reg)
			}
			switch path.Base(key) {
			case docV3, docArrayV2, docArrayV1:
			default:
				if ok {
					t.Errorf("%s %s has a form", c.Name, key)
				}
				continue
			}
			if err != nil || m.Version == Draft3 {
				continue
			}
			p2, sep2, rank2, ok2 := m.Form()
			if ok != ok2 || ok && (p != p2 || sep != sep2 || rank != rank2) {
				t.Errorf("%s %s: form %q %q %d %v, of the metadata %q %q %d %v", c.Name, key, p, sep, rank, ok, p2, sep2, rank2, ok2)
			}
		}
	}
	for _, doc := range []string{``, `{}`, `[]`, `{"zarr_format":3,"node_type":"group","shape":[1]}`, `{"zarr_format":3,"node_type":"array","shape":[1]}`,
		`{"zarr_format":2,"node_type":"array","shape":[1],"chunk_key_encoding":"v2"}`, `{"zarr_format":3,"node_type":"array","shape":[-1],"chunk_key_encoding":"v2"}`} {
		if p, sep, rank, ok := FormOf(docV3, []byte(doc)); ok {
			t.Errorf("%s has form %q %q %d", doc, p, sep, rank)
		}
	}
	broken := `{"zarr_format":3,"node_type":"array","shape":[1,2],"chunk_key_encoding":"v2","codecs":[{"name":"nobody knows it"}]}`
	if p, sep, rank, ok := FormOf(docV3, []byte(broken)); !ok || p != "" || sep != '.' || rank != 2 {
		t.Errorf("form of a document with an unknown codec: %q %q %d %v", p, sep, rank, ok)
	}
}
