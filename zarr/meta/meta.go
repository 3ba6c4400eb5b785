package meta

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
)

// Version is the format that a node's metadata is stored in.
type Version uint8

// The formats. Draft3 is the early v3 protocol draft with keys below meta/ and
// data/; it is not V3.
const (
	V1 Version = 1 + iota
	V2
	V3
	Draft3
)

// String returns "1", "2", "3" or "3-draft".
func (v Version) String() string {
	switch v {
	case V1, V2, V3:
		return string('0' + byte(v))
	case Draft3:
		return "3-draft"
	}
	return fmt.Sprintf("Version(%d)", uint8(v))
}

// Meta is the metadata of an array or a group: one model for every format
// version. Parsing and printing it does no I/O. A Meta is not changed after
// parsing: change a [Meta.Clone]. A Meta that is not changed
// is safe for concurrent use.
//
// A parsed Meta keeps the documents that it came from, so that [Meta.Print]
// returns them unchanged but for the changed fields.
type Meta struct {
	Version Version
	// Array is true for an array, false for a group; the fields from Shape to
	// DimensionNames are set for arrays only.
	Array bool
	// Attributes holds the user attributes in stored order, each value
	// verbatim.
	Attributes Attributes

	// Shape is the length of each dimension in elements.
	Shape []int64
	Type  dtype.Type
	Grid  Grid
	Keys  ChunkKeys
	// Fill is one element in memory layout (for variable-length types, its
	// bytes). NullFill says that v1 or v2 metadata has null there: the value of
	// a missing chunk is undefined, and read as NaT for times and else as zeros.
	Fill     []byte
	NullFill bool
	// Codecs is the parsed chain in encoding order. The order, filters and
	// compressor of v1 and v2 are one chain too.
	Codecs codecs.Chain
	// DimensionNames has an entry per dimension or is nil; an entry that is
	// null is nil. For v1 and v2 they come from xarray's _ARRAY_DIMENSIONS
	// attribute, which stays among Attributes too.
	DimensionNames []*string

	// Consolidated holds the nodes below this group by path relative to it
	// where the metadata document carries them (v3 inline), or nil. Nodes that
	// could not be parsed are missing and stand in ConsolidatedErrors with the
	// reason.
	Consolidated       map[string]*Meta
	ConsolidatedErrors map[string]error

	// inline is the text of consolidated metadata that takes the place of Consolidated,
	// or nil.
	inline json.RawMessage
	// extra keeps members that the model has no place for (must_understand:
	// false, and whatever v1 and v2 documents say besides), so that printing
	// loses nothing.
	extra map[string]json.RawMessage
	// src are the documents that the node was parsed from, or nil.
	src *source
}

// source is the documents that a Meta was parsed from, and the parsed result.
type source struct {
	docs  []sourceDoc
	model *Meta
	// zeroChunks says that the documents give a dimension without elements
	// chunks of length 0, which is wrong as soon as it has some.
	zeroChunks bool
}

type sourceDoc struct {
	name string
	// text is the whole document, or nil if it stood inside another one.
	text    []byte
	members []jsontext.Member
}

func (s *source) doc(name string) *sourceDoc {
	if s == nil {
		return nil
	}
	for i := range s.docs {
		if s.docs[i].name == name {
			return &s.docs[i]
		}
	}
	return nil
}

// Clone returns a copy that can be changed without changing m. Types, grids,
// chains and the nodes of Consolidated never change and are shared.
func (m *Meta) Clone() *Meta {
	c := *m
	c.Shape = slices.Clone(m.Shape)
	c.Fill = slices.Clone(m.Fill)
	c.DimensionNames = slices.Clone(m.DimensionNames)
	c.Consolidated = maps.Clone(m.Consolidated)
	c.ConsolidatedErrors = maps.Clone(m.ConsolidatedErrors)
	c.extra = maps.Clone(m.extra)
	return &c
}

// ChunkCounts returns the number of chunks along each dimension, nil for a
// group. The caller owns the slice.
func (m *Meta) ChunkCounts() []int64 {
	if !m.Array {
		return nil
	}
	n := make([]int64, len(m.Shape))
	for d, s := range m.Shape {
		n[d] = m.Grid.Count(d, s)
	}
	return n
}

// Form returns how the chunk keys of an array are spelled: prefix, then rank
// numbers with sep between them. ok is false for groups and for arrays without
// dimensions, whose one chunk has a fixed key.
func (m *Meta) Form() (prefix string, sep byte, rank int, ok bool) {
	k := m.Keys
	return k.Prefix(), k.sep, k.rank, m.Array && k.enc != keysNone && k.rank > 0
}

// StructureKey returns a text that is the same for two states of an array only
// if a chunk written under one is found and reads the same under the other. It
// is made of data type, fill value, codecs, chunk grid and chunk keys, however
// they are spelled; shape, attributes and names are not part of it. Two formats
// may say the same with different keys. It is nil for a group.
func (m *Meta) StructureKey() []byte {
	if !m.Array {
		return nil
	}
	key := fmt.Appendf(nil, "%q %q %t %q ", m.typeText(), m.Fill, m.NullFill, m.codecText())
	if shape := m.Grid.Regular(); shape != nil {
		key = fmt.Appendf(key, "%d", shape)
	} else {
		key = appendGrid(key, m.Grid)
	}
	return fmt.Appendf(key, " %q %q %d", m.Keys.Prefix(), m.Keys.sep, m.Keys.rank)
}

// typeText is a text that tells data types apart.
func (m *Meta) typeText() string {
	if text, err := m.Type.PrintV2(); err == nil && m.Version != V3 && !m.Type.Variable() {
		return string(text)
	}
	return m.Type.String()
}

// ExtraNames returns the sorted names of the members that the specification does not define,
// and "storage_transformers" unless the list is empty. No other version of Zarr has a form for
// these members.
func (m *Meta) ExtraNames() []string {
	list := make([]string, 0, len(m.extra))
	for name, raw := range m.extra {
		if items, ok := jsontext.Items(raw); name != "storage_transformers" || !ok || len(items) > 0 {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// codecText is a text that tells chains apart, independent of spelling.
func (m *Meta) codecText() string {
	if !m.Codecs.IsV2() {
		text, err := m.Codecs.PrintV3()
		if err != nil {
			return "" // the zero Chain
		}
		return string(appendCodecs(nil, text))
	}
	v, err := m.Codecs.V2()
	if err != nil {
		return ""
	}
	if v.Rank < 2 {
		v.Order = "C" // F is the same
	}
	return v.Order + " " + string(jsontext.Canonical(jsontext.OrNull(v.Filters))) + " " + string(jsontext.Canonical(jsontext.OrNull(v.Compressor)))
}

// appendCodecs appends the canonical form of a list of v3 codecs, in which a
// name alone, an empty configuration and must_understand are spelled one way,
// in shards too.
func appendCodecs(dst []byte, list json.RawMessage) []byte {
	chain, ok := jsontext.Items(list)
	if !ok {
		return jsontext.AppendCanonical(dst, list)
	}
	dst = append(dst, '[')
	for i, raw := range chain {
		if i > 0 {
			dst = append(dst, ',')
		}
		obj, ok := jsontext.Members(raw)
		if !ok {
			obj = jsontext.Object{{Name: "name", Value: raw}}
		}
		jsontext.Sort(obj)
		dst = append(dst, '{')
		first := true
		for _, m := range obj {
			name, value := m.Name, m.Value
			config, _ := jsontext.Members(value)
			if name == "must_understand" && string(value) == "true" || name == "configuration" && len(config) == 0 {
				continue
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(dtype.AppendString(dst, name), ':')
			if name != "configuration" {
				dst = jsontext.AppendCanonical(dst, value)
				continue
			}
			for k, m := range config {
				if m.Name == "codecs" || m.Name == "index_codecs" {
					config[k].Value = appendCodecs(nil, m.Value)
				}
			}
			dst = jsontext.AppendCanonical(dst, jsontext.Join(config))
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// Equal reports whether m and o say the same, however it is spelled.
func (m *Meta) Equal(o *Meta) bool { return len(m.Diff(o)) == 0 }

// Diff returns the fields in which m and o differ, by the names that v3 gives
// them: "zarr_format", "node_type", "shape", "data_type", "chunk_grid",
// "chunk_key_encoding", "fill_value", "codecs", "attributes",
// "dimension_names", "consolidated_metadata", and members that the model does
// not know by their own names.
func (m *Meta) Diff(o *Meta) []string {
	var list []string
	for _, f := range []string{"zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding",
		"fill_value", "codecs", "attributes", "dimension_names", "consolidated_metadata"} {
		if m.differs(o, f) {
			list = append(list, f)
		}
	}
	extra := len(list)
	for name := range m.extra {
		if v, ok := o.extra[name]; !ok || !jsontext.Same(v, m.extra[name]) {
			list = append(list, name)
		}
	}
	for name := range o.extra {
		if _, ok := m.extra[name]; !ok {
			list = append(list, name)
		}
	}
	slices.Sort(list[extra:])
	return list
}

func (m *Meta) differs(o *Meta, field string) bool {
	switch field {
	case "zarr_format":
		return m.Version != o.Version
	case "node_type":
		return m.Array != o.Array
	case "shape":
		return !slices.Equal(m.Shape, o.Shape)
	case "data_type":
		return !m.Type.Equal(o.Type)
	case "chunk_grid":
		return !sameGrid(m.Grid, o.Grid)
	case "chunk_key_encoding":
		return m.Keys != o.Keys
	case "fill_value":
		return !bytes.Equal(m.Fill, o.Fill) || m.NullFill != o.NullFill
	case "codecs":
		return m.codecText() != o.codecText()
	case "attributes":
		return !m.Attributes.Equal(o.Attributes)
	case "dimension_names":
		return !slices.EqualFunc(m.DimensionNames, o.DimensionNames, sameName)
	case "consolidated_metadata":
		return m.inline != nil || (m.Consolidated == nil) != (o.Consolidated == nil) || !maps.EqualFunc(m.Consolidated, o.Consolidated, func(a, b *Meta) bool { return a == b || a.Equal(b) })
	}
	panic("zarr: no field " + field)
}

func sameName(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// Validate checks that the fields of m agree with each other and that the
// codecs suit them, as parsing does. Errors are ErrMetadata and name the field
// by its v3 name.
func (m *Meta) Validate() error {
	p := &parser{doc: "metadata"}
	if !m.Array {
		if m.Shape != nil || m.Grid != nil || m.DimensionNames != nil {
			return p.fail("node_type", errors.New("a group has no shape, grid or dimension names"))
		}
		return nil
	}
	if err := CheckShape(m.Shape); err != nil {
		return p.fail("shape", err)
	}
	if m.Grid == nil {
		return p.fail("chunk_grid", errMissing)
	}
	if m.Keys.enc == keysNone || m.Keys.rank != len(m.Shape) {
		return p.fail("chunk_key_encoding", fmt.Errorf("%d dimensions for a shape of %d", m.Keys.rank, len(m.Shape)))
	}
	if m.DimensionNames != nil && len(m.DimensionNames) != len(m.Shape) {
		return p.fail("dimension_names", fmt.Errorf("%d names for %d dimensions", len(m.DimensionNames), len(m.Shape)))
	}
	if !m.Type.Variable() && len(m.Fill) != m.Type.Size() {
		return p.fail("fill_value", fmt.Errorf("%d bytes are not an element of %s", len(m.Fill), m.Type))
	}
	return p.check(m, "chunk_grid")
}

// CheckShape returns an error if an array cannot have the shape.
func CheckShape(shape []int64) error {
	if len(shape) > MaxRank {
		return fmt.Errorf("%d dimensions are over the limit of %d", len(shape), MaxRank)
	}
	for d, n := range shape {
		if n < 0 {
			return fmt.Errorf("dimension %d has the negative length %d", d, n)
		}
	}
	return nil
}

// chunkBytes returns an error if a chunk is larger than an int can say. How
// much of that may be in memory is for the reader to decide.
func chunkBytes(t dtype.Type, shape []int) error {
	size := uint64(max(t.Size(), 1))
	for _, n := range shape {
		hi, lo := bits.Mul64(size, uint64(n))
		if hi != 0 || lo > math.MaxInt {
			return fmt.Errorf("a chunk of shape %v of %s is too large", shape, t)
		}
		size = lo
	}
	return nil
}

// SetAttributes sets the attributes, and the dimension names where they stand among
// them.
func (m *Meta) SetAttributes(attrs Attributes) {
	if m.Version == V3 {
		m.Attributes = attrs
	} else {
		m.setAttributesV2(attrs)
	}
}

// HasDocuments reports whether m, or the Meta it is a clone of, was parsed from documents.
func (m *Meta) HasDocuments() bool { return m.src != nil }

// Anew returns a copy that does not know the documents that m was parsed from:
// [Meta.Print] prints all of it anew.
func (m *Meta) Anew() *Meta {
	c := m.Clone()
	c.src = nil
	return c
}
