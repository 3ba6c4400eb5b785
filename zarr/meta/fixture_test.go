package meta_test

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
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
	"github.com/zarrdb/zarrdb/zarr/internal/metatest"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// testdata/metadata holds the metadata documents of stores that other software
// wrote, one case per line, with what reading them must give. They are copied
// from a folder of such stores by
//
//	ZARRDB_FIXTURES=folder go test ./zarr/meta -run TestCollectMetadata

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
		must.Do(t, filepath.WalkDir(filepath.Join(root, area), func(p string, d fs.DirEntry, err error) error {
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
		}))
		must.Do(t, os.WriteFile(filepath.Join("testdata", "metadata", area+".jsonl"), out.Bytes(), 0o666))
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
	must.Do(t, err)
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
		z := must.Get(zip.OpenReader(filepath.Join(dir, e.Store)))(t)
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
	case meta.DocV3, meta.DocArrayV2, meta.DocGroupV2, meta.DocAttrsV2, meta.DocConsolidatedV2, meta.DocArrayV1, meta.DocAttrsV1:
		return true
	}
	return strings.HasSuffix(key, meta.DocArrayDraft) || strings.HasSuffix(key, meta.DocGroupDraft)
}

func readCases(t testing.TB) []metaCase {
	var all []metaCase
	for _, area := range metaAreas {
		f := must.Get(os.Open(filepath.Join("testdata", "metadata", area+".jsonl")))(t)
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var c metaCase
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
				t.Fatal(area, err)
			}
			all = append(all, c)
		}
		must.Do(t, errors.Join(lines.Err(), f.Close()))
	}
	return all
}

// open parses the node at path, and returns the documents it was parsed from
// by the names that Print gives them.
func (c *metaCase) open(path string, reg *codecs.Registry) (*meta.Meta, map[string]string, error) {
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
		layout := meta.DraftSuffix
		if meta.IsDraft3Entry([]byte(c.Docs[meta.DocV3])) {
			layout = meta.DraftRoot
		}
		if text, ok := c.Docs[layout.ArrayKey(path)]; ok {
			m, err := meta.ParseDraft3Array([]byte(text), reg)
			return m, map[string]string{meta.DocArrayDraft: text}, err
		}
		text, ok := c.Docs[layout.GroupKey(path)]
		if !ok {
			return nil, nil, kv.ErrNotFound
		}
		m, err := meta.ParseDraft3Group([]byte(text))
		return m, map[string]string{meta.DocGroupDraft: text}, err
	}
	switch {
	case at(meta.DocV3) != nil:
		m, err := meta.ParseV3(at(meta.DocV3), reg)
		return m, used(meta.DocV3), err
	case at(meta.DocArrayV2) != nil:
		m, err := meta.ParseV2Array(at(meta.DocArrayV2), at(meta.DocAttrsV2), reg)
		return m, used(meta.DocArrayV2, meta.DocAttrsV2), err
	case at(meta.DocGroupV2) != nil:
		m, err := meta.ParseV2Group(at(meta.DocGroupV2), at(meta.DocAttrsV2))
		return m, used(meta.DocGroupV2, meta.DocAttrsV2), err
	case at(meta.DocArrayV1) != nil:
		m, err := meta.ParseV1(at(meta.DocArrayV1), at(meta.DocAttrsV1), reg)
		return m, used(meta.DocArrayV1, meta.DocAttrsV1), err
	}
	return nil, nil, kv.ErrNotFound
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
				var f *meta.FieldError
				if !errors.Is(err, meta.ErrMetadata) || !errors.As(err, &f) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("accepted (%v, %v): %s", m, err, c.Error)
				}
				return
			}
			for _, want := range c.Nodes {
				m, docs, err := c.open(want.Path, reg)
				if errors.Is(err, kv.ErrNotFound) && want.NodeType == "group" {
					continue // groups may be implied
				}
				if err != nil {
					t.Fatalf("%s: %v", want.Path, err)
				}
				checkNode(t, m, want)
				metatest.CheckPrint(t, m, docs, reg)
			}
		})
	}
}

func checkNode(t *testing.T, m *meta.Meta, want metaNode) {
	t.Helper()
	if m.Array != (want.NodeType == "array") {
		t.Errorf("%s: array is %v", want.Path, m.Array)
	}
	if want.Attributes != nil && !jsontext.Same(strict(m.Attributes.Text()), strict(want.Attributes)) {
		t.Errorf("%s: attributes %s, want %s", want.Path, m.Attributes.Text(), want.Attributes)
	}
	if !m.Array {
		return
	}
	if !slices.Equal(m.Shape, want.Shape) {
		t.Errorf("%s: shape %v, want %v", want.Path, m.Shape, want.Shape)
	}
	if want.DimensionNames != nil && !slices.EqualFunc(m.DimensionNames, want.DimensionNames, meta.SameName) {
		t.Errorf("%s: dimension names %v", want.Path, m.DimensionNames)
	}
	if want.DataType != nil {
		var typ dtype.Type
		var err error
		switch {
		case string(want.DataType) == `"|O"`:
			typ = m.Type
		case m.Version == meta.V3:
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

func checkFill(t *testing.T, m *meta.Meta, want metaNode) {
	t.Helper()
	if want.FillValue == nil {
		return
	}
	var fill []byte
	var err error
	null := false
	switch m.Version {
	case meta.V3:
		fill, err = m.Type.ParseFillV3(want.FillValue)
	case meta.V1:
		fill, null, err = m.Type.ParseFillV1(want.FillValue)
	default:
		fill, null, err = m.Type.ParseFillV2(want.FillValue)
	}
	if err != nil || !bytes.Equal(fill, m.Fill) || null != m.NullFill {
		t.Errorf("%s: fill value %x (null %v), want %s = %x (%v)", want.Path, m.Fill, m.NullFill, want.FillValue, fill, err)
	}
}

func strict(raw json.RawMessage) json.RawMessage { return jsontext.AppendStrict(nil, raw) }

// TestFormOf compares the form that a document names with that of its Meta.
func TestFormOf(t *testing.T) {
	reg := testRegistry()
	for _, c := range readCases(t) {
		for key, text := range c.Docs {
			p, sep, rank, ok := meta.FormOf(path.Base(key), []byte(text))
			m, _, err := c.open(path.Dir(strings.TrimPrefix("/"+key, "/")), reg)
			if path.Dir(key) == "." {
				m, _, err = c.open("", reg)
			}
			switch path.Base(key) {
			case meta.DocV3, meta.DocArrayV2, meta.DocArrayV1:
			default:
				if ok {
					t.Errorf("%s %s has a form", c.Name, key)
				}
				continue
			}
			if err != nil || m.Version == meta.Draft3 {
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
		if p, sep, rank, ok := meta.FormOf(meta.DocV3, []byte(doc)); ok {
			t.Errorf("%s has form %q %q %d", doc, p, sep, rank)
		}
	}
	broken := `{"zarr_format":3,"node_type":"array","shape":[1,2],"chunk_key_encoding":"v2","codecs":[{"name":"nobody knows it"}]}`
	if p, sep, rank, ok := meta.FormOf(meta.DocV3, []byte(broken)); !ok || p != "" || sep != '.' || rank != 2 {
		t.Errorf("form of a document with an unknown codec: %q %q %d %v", p, sep, rank, ok)
	}
}
