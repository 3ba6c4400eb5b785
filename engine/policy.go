package engine

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// policy tells the versioned store what it must know of Zarr documents. It reads
// them leniently: an array whose codecs are unknown still has chunk keys.
type policy struct{}

var _ txn.Policy = policy{}

// Names of the documents that Zarr v1, v2 and v3 keep beside chunks.
const (
	docV1Array    = "meta"
	docV1Attrs    = "attrs"
	docV3         = "zarr.json"
	docV2Array    = ".zarray"
	docV2Group    = ".zgroup"
	docV2Attrs    = ".zattrs"
	docV2Metadata = ".zmetadata"
)

// Node implements [txn.Policy].
func (policy) Node(name string) bool {
	switch name {
	case docV3, docV2Array, docV2Group, docV1Array:
		return true
	}
	return false
}

// Forms implements [txn.Policy].
func (policy) Forms(name string, doc []byte) []txn.Form {
	prefix, sep, rank, ok := zarr.FormOf(name, doc)
	if !ok {
		return nil
	}
	return []txn.Form{{Prefix: prefix, Sep: sep, Rank: rank}}
}

// structural names the members of a document that chunk bytes and their
// coordinates depend on.
var structural = map[string][]string{
	docV1Array: {"chunks", "dtype", "compression", "compression_opts", "fill_value", "order"},
	docV2Array: {"chunks", "dtype", "compressor", "fill_value", "order", "filters", "dimension_separator"},
	docV3:      {"data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs", "storage_transformers"},
}

// Structure implements [txn.Policy]. It reads documents leniently: an array
// whose codecs are unknown has a structure too.
func (policy) Structure(name string, doc []byte) (txn.Structure, bool) {
	members, ok := structural[name]
	if !ok {
		return txn.Structure{}, false
	}
	o, err := parseObject(doc)
	if err != nil || o.values["shape"] == nil || name == docV3 && string(o.values["node_type"]) != `"array"` {
		return txn.Structure{}, false
	}
	var canonical []byte
	for _, m := range members {
		canonical = append(append(append(canonical, m...), 0), canonicalJSON(o.values[m])...)
		canonical = append(canonical, 0)
	}
	sum := digest.Of(canonical)
	return txn.Structure{Key: sum[:], Grid: gridShape(name, o)}, true
}

// canonicalJSON sorts the members of objects and drops white space. What is not
// strict JSON stays as it is.
func canonicalJSON(raw json.RawMessage) []byte {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw
	}
	b, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return b
}

// gridShape counts the chunks along each dimension, or is nil where the grid
// is not a regular one.
func gridShape(name string, o *object) []int64 {
	var shape, chunks []int64
	raw := o.values["chunks"]
	if name == docV3 {
		var grid struct {
			Name          string `json:"name"`
			Configuration struct {
				ChunkShape json.RawMessage `json:"chunk_shape"`
			} `json:"configuration"`
		}
		if json.Unmarshal(o.values["chunk_grid"], &grid) != nil || grid.Name != "regular" {
			return nil
		}
		raw = grid.Configuration.ChunkShape
	}
	if json.Unmarshal(o.values["shape"], &shape) != nil || json.Unmarshal(raw, &chunks) != nil || len(chunks) != len(shape) {
		return nil
	}
	counts := make([]int64, len(chunks))
	for i, c := range chunks {
		if c < 1 || shape[i] < 0 {
			return nil
		}
		if shape[i] > 0 {
			counts[i] = (shape[i]-1)/c + 1
		}
	}
	return counts
}

// Metadata implements [txn.Policy].
func (policy) Metadata(name string) bool { return isDocument(name) }

// Copies implements [txn.Policy].
func (policy) Copies(name string, doc []byte) (copies, rest []byte) {
	if name != docV3 {
		return nil, doc
	}
	o, err := parseObject(doc)
	if err != nil {
		return nil, doc // it is not a group that can be opened
	}
	if copies = o.values[inlineCopy]; string(copies) == "null" {
		copies = nil
	}
	o.remove(inlineCopy)
	return copies, o.print()
}

// Derived implements [txn.Policy].
func (policy) Derived(name string) bool { return name == docV2Metadata }

// mergeable reports whether a document is merged member by member.
func mergeable(name string) bool {
	switch name {
	case docV3, docV2Array, docV2Group, docV2Attrs:
		return true
	}
	return false
}

// MergeDocument implements [txn.Policy]: metadata documents merge member by
// member, their attributes key by key and their shape axis by axis, and copies
// of them (consolidated metadata) like the documents themselves. Where copies
// disagree they are left out of zarr.json, and .zmetadata is a conflict, upon
// which it is left out too.
func (policy) MergeDocument(name string, base, ours, theirs []byte, strict bool) ([]byte, []txn.FieldConflict, error) {
	whole := func() ([]byte, []txn.FieldConflict, error) {
		same := bytes.Equal(ours, theirs)
		return ours, []txn.FieldConflict{{Base: brief(base), Ours: brief(ours), Theirs: brief(theirs), Same: same}}, nil
	}
	if name == docV2Metadata {
		merged, ok := mergeCopies(base, ours, theirs, true)
		if !ok {
			return whole()
		}
		return merged, nil, nil
	}
	if !mergeable(name) {
		return whole()
	}
	docs, ok := parseSides(base, ours, theirs)
	if !ok {
		return whole()
	}
	if strict && base == nil && name != docV2Attrs && !isGroupDocument(name, docs[1]) {
		return whole() // both made the array
	}
	m := merger{strict: strict, created: base == nil}
	out := m.objects("", docs, name != docV2Attrs)
	return out.print(), m.conflicts, nil
}

// isGroupDocument reports whether an object is the metadata of a group.
func isGroupDocument(name string, o *object) bool {
	return name == docV2Group || name == docV3 && string(o.values["node_type"]) == `"group"`
}

// parseSides takes three states of an object apart. What base has not is empty.
func parseSides(base, ours, theirs json.RawMessage) (docs [3]*object, ok bool) {
	for i, raw := range [3]json.RawMessage{base, ours, theirs} {
		if raw == nil && i == 0 {
			raw = json.RawMessage("{}")
		}
		var err error
		if docs[i], err = parseObject(raw); err != nil {
			return docs, false
		}
	}
	return docs, true
}

// merger merges JSON values and collects the members that both sides changed.
type merger struct {
	strict    bool // equal changes conflict
	created   bool // the base has no such document
	conflicts []txn.FieldConflict
}

// objects merges member by member, in the order of ours. document says that
// this is a whole document of an array or group.
func (m *merger) objects(at string, docs [3]*object, document bool) *object {
	out := &object{values: map[string]json.RawMessage{}}
	for _, key := range unionKeys(docs[1], docs[2]) {
		field := key
		if at != "" {
			field = at + "." + key
		}
		v := m.member(field, key, docs[0].values[key], docs[1].values[key], docs[2].values[key], document)
		if v != nil {
			out.set(key, v)
		}
	}
	return out
}

// oneSided merges values of which two are the same; if strict, values that at
// most one side changed or both removed.
func oneSided(base, ours, theirs json.RawMessage, strict bool) (json.RawMessage, bool) {
	switch {
	case sameJSON(base, theirs), ours == nil && theirs == nil, !strict && sameJSON(ours, theirs):
		return ours, true
	case sameJSON(base, ours):
		return theirs, true
	}
	return nil, false
}

func (m *merger) member(field, key string, base, ours, theirs json.RawMessage, document bool) json.RawMessage {
	if v, ok := oneSided(base, ours, theirs, m.strict); ok {
		return v
	}
	same := sameJSON(ours, theirs)
	if document {
		if same && m.created && key != "attributes" {
			return ours // both made the group
		}
		switch key {
		case "attributes":
			if docs, ok := parseSides(base, ours, theirs); ok {
				return m.objects(field, docs, false).print()
			}
		case "shape":
			if v, ok := mergeShape(base, ours, theirs, m.strict); ok {
				return v
			}
		case inlineCopy:
			if same {
				return ours
			}
			v, _ := mergeCopies(base, ours, theirs, false)
			return v // or nothing: then readers look at the documents themselves
		}
	}
	m.conflicts = append(m.conflicts, txn.FieldConflict{Field: field, Base: brief(base), Ours: brief(ours), Theirs: brief(theirs), Same: same})
	return ours
}

// mergeShape takes for each axis the length of the side that changed it. If
// strict, it fails where both did, whatever the length.
func mergeShape(base, ours, theirs json.RawMessage, strict bool) (json.RawMessage, bool) {
	var s [3][]int64
	for i, raw := range []json.RawMessage{base, ours, theirs} {
		if raw == nil || json.Unmarshal(raw, &s[i]) != nil || len(s[i]) != len(s[0]) {
			return nil, false
		}
	}
	out := make([]int64, len(s[0]))
	for d := range out {
		b, o, t := s[0][d], s[1][d], s[2][d]
		switch {
		case t == b, o == t && !strict:
			out[d] = o
		case o == b:
			out[d] = t
		default:
			return nil, false
		}
	}
	raw, err := json.Marshal(out)
	return raw, err == nil
}

// brief cuts a value short for people.
func brief(b []byte) string {
	const most = 60
	s := strings.ToValidUTF8(string(b[:min(len(b), most)]), "�")
	if len(b) > most {
		s += "…"
	}
	return s
}
