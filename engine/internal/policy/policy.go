package policy

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// Policy gives the versioned store its knowledge of Zarr documents. It reads
// them leniently: an array whose codecs are unknown still has chunk keys.
type Policy struct{}

var _ txn.Policy = Policy{}

// Node implements [txn.Policy].
func (Policy) Node(name string) bool {
	switch name {
	case names.V3, names.V2Array, names.V2Group, names.V1Array:
		return true
	}
	return false
}

// Forms implements [txn.Policy].
func (Policy) Forms(name string, doc []byte) []txn.Form {
	prefix, sep, rank, ok := meta.FormOf(name, doc)
	if !ok {
		return nil
	}
	return []txn.Form{{Prefix: prefix, Sep: sep, Rank: rank}}
}

// structural names the members of a document that chunk bytes and their
// coordinates depend on.
var structural = map[string][]string{
	names.V1Array: {"chunks", "dtype", "compression", "compression_opts", "fill_value", "order"},
	names.V2Array: {"chunks", "dtype", "compressor", "fill_value", "order", "filters", "dimension_separator"},
	names.V3:      {"data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs", "storage_transformers"},
}

// meaning names the attributes that define the meaning of stored elements. Chunks that were
// written beside a change of one would be read as other values.
var meaning = []string{"scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned", "units", "calendar"}

// meaningOf returns the attributes of a document of Zarr v3 that define the meaning of elements.
func meaningOf(o *Object) *Object {
	out := &Object{Values: map[string]json.RawMessage{}}
	if all, ok := meta.PartOf(o.Values["attributes"]); ok {
		for _, name := range meaning {
			if v, ok := all.Get(name); ok {
				out.Set(name, v)
			}
		}
	}
	return out
}

// Array implements [txn.Policy].
func (Policy) Array(name string, doc []byte) bool { return arrayOf(name, doc) != nil }

// arrayOf takes the metadata of an array apart. It is nil for any other document.
func arrayOf(name string, doc []byte) *Object {
	if structural[name] == nil || name == names.V3 && meta.IsGroupV3(doc) {
		return nil
	}
	o, err := ParseObject(doc)
	if err != nil || o.Values["shape"] == nil || name == names.V3 && string(o.Values["node_type"]) != `"array"` {
		return nil
	}
	return o
}

// Structure implements [txn.Policy]. It reads documents leniently: an array
// whose codecs are unknown has a structure too.
func (Policy) Structure(name string, doc []byte) (txn.Structure, bool) {
	o := arrayOf(name, doc)
	if o == nil {
		return txn.Structure{}, false
	}
	var canonical []byte
	for _, m := range structural[name] {
		canonical = append(append(append(canonical, m...), 0), canonicalJSON(o.Values[m])...)
		canonical = append(canonical, 0)
	}
	canonical = append(canonical, canonicalJSON(meaningOf(o).Print())...)
	sum := digest.Of(canonical)
	return txn.Structure{Key: sum[:], Grid: gridShape(name, o)}, true
}

// canonicalJSON sorts the members of objects and drops white space. A text that
// is not strict JSON stays as it is.
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
func gridShape(name string, o *Object) []int64 {
	var shape, chunks []int64
	raw := o.Values["chunks"]
	if name == names.V3 {
		var grid struct {
			Name          string `json:"name"`
			Configuration struct {
				ChunkShape json.RawMessage `json:"chunk_shape"`
			} `json:"configuration"`
		}
		if json.Unmarshal(o.Values["chunk_grid"], &grid) != nil || grid.Name != "regular" {
			return nil
		}
		raw = grid.Configuration.ChunkShape
	}
	if json.Unmarshal(o.Values["shape"], &shape) != nil || json.Unmarshal(raw, &chunks) != nil || len(chunks) != len(shape) {
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

// WithAttributes implements [txn.Policy]. Members that do not describe the array
// count as attributes; attributes that define the meaning of elements do not.
func (Policy) WithAttributes(name string, doc, attributes []byte) []byte {
	out, err := ParseObject(doc)
	if err != nil {
		return nil
	}
	from, err := ParseObject(attributes)
	if err != nil {
		return nil
	}
	kept := meaningOf(out)
	isAttribute := func(k string) bool { return k != "shape" && !slices.Contains(structural[name], k) }
	for _, k := range UnionKeys(out, from) {
		if v, ok := from.Values[k]; !isAttribute(k) {
			continue
		} else if ok {
			out.Set(k, v)
		} else {
			delete(out.Values, k)
		}
	}
	out.Keys = slices.DeleteFunc(out.Keys, func(k string) bool { return out.Values[k] == nil })
	all, err := ParseObject(out.Values["attributes"])
	if err != nil { // the document has no attributes
		if len(kept.Values) == 0 {
			return out.Print()
		}
		all = &Object{Values: map[string]json.RawMessage{}}
	}
	for _, k := range meaning {
		if v, ok := kept.Values[k]; ok {
			all.Set(k, v)
		} else {
			all.Remove(k)
		}
	}
	out.Set("attributes", all.Print())
	return out.Print()
}

// Metadata implements [txn.Policy].
func (Policy) Metadata(name string) bool { return names.IsDocument(name) }

// Copies implements [txn.Policy].
func (Policy) Copies(name string, doc []byte) (copies, rest []byte) {
	if name != names.V3 {
		return nil, doc
	}
	o, err := ParseObject(doc)
	if err != nil {
		return nil, doc // it is not a group that can be opened
	}
	if copies = o.Values[InlineCopy]; string(copies) == "null" {
		copies = nil
	}
	o.Remove(InlineCopy)
	return copies, o.Print()
}

// Derived implements [txn.Policy].
func (Policy) Derived(name string) bool { return name == names.V2Metadata }

// Copying implements [txn.Policy].
func (Policy) Copying() []string { return []string{names.V3, names.V2Metadata} }

// WithoutCopies implements [txn.Policy]: it takes a path out of consolidated metadata.
func (p Policy) WithoutCopies(name string, doc []byte, path string) []byte {
	top, err := ParseObject(doc)
	if err != nil {
		return nil
	}
	holder := top
	if name == names.V3 {
		if holder, err = partOf(OrEmpty(top.Values[InlineCopy])); err != nil {
			return nil
		}
	}
	list, err := partOf(OrEmpty(holder.Values["metadata"]))
	if err != nil {
		return nil
	}
	changed := false
	for _, at := range slices.Clone(list.Keys) {
		switch node := strings.HasPrefix(path, at+"/") && name == names.V3; {
		case at == path || strings.HasPrefix(at, path+"/") || node && at+"/"+names.V3 == path:
			list.Remove(at)
			changed = true
		case node:
			if rest := p.WithoutCopies(name, list.Values[at], path[len(at)+1:]); rest != nil {
				list.Set(at, rest)
				changed = true
			}
		}
	}
	if !changed {
		return nil
	}
	holder.Set("metadata", list.Print())
	if holder != top {
		top.Set(InlineCopy, holder.Print())
	}
	return top.Print()
}

// mergeable reports whether a document is merged member by member.
func mergeable(name string) bool {
	switch name {
	case names.V3, names.V2Array, names.V2Group, names.V2Attrs:
		return true
	}
	return false
}

// MergeDocument implements [txn.Policy]: metadata documents merge member by
// member, their attributes key by key and their shape axis by axis, and copies
// of them (consolidated metadata) like the documents themselves. Where copies
// disagree they are left out of zarr.json, and .zmetadata is a conflict, upon
// which it is left out too.
func (Policy) MergeDocument(name string, base, ours, theirs []byte, strict bool) ([]byte, []txn.FieldConflict, error) {
	whole := func() ([]byte, []txn.FieldConflict, error) {
		same := bytes.Equal(ours, theirs)
		return ours, []txn.FieldConflict{{Base: Brief(base), Ours: Brief(ours), Theirs: Brief(theirs), Same: same}}, nil
	}
	if name == names.V2Metadata {
		merged, ok := mergeCopies(base, ours, theirs, true)
		if !ok {
			return whole()
		}
		return merged, nil, nil
	}
	if !mergeable(name) {
		return whole()
	}
	docs, ok := parseSides(base, ours, theirs, ParseObject)
	if !ok {
		return whole()
	}
	if strict && base == nil && name != names.V2Attrs && !isGroupDocument(name, docs[1]) {
		return whole() // both made the array
	}
	m := merger{strict: strict, created: base == nil}
	out := m.objects("", docs, name != names.V2Attrs)
	return out.Print(), m.conflicts, nil
}

// isGroupDocument reports whether an object is the metadata of a group.
func isGroupDocument(name string, o *Object) bool {
	return name == names.V2Group || name == names.V3 && string(o.Values["node_type"]) == `"group"`
}

// parseSides takes three states of an object apart with parse. Members that base lacks are empty.
func parseSides(base, ours, theirs json.RawMessage, parse func([]byte) (*Object, error)) (docs [3]*Object, ok bool) {
	for i, raw := range [3]json.RawMessage{base, ours, theirs} {
		if raw == nil && i == 0 {
			raw = json.RawMessage("{}")
		}
		var err error
		if docs[i], err = parse(raw); err != nil {
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
func (m *merger) objects(at string, docs [3]*Object, document bool) *Object {
	out := &Object{Values: map[string]json.RawMessage{}}
	for _, key := range UnionKeys(docs[1], docs[2]) {
		field := key
		if at != "" {
			field = at + "." + key
		}
		v := m.member(field, key, docs[0].Values[key], docs[1].Values[key], docs[2].Values[key], document)
		if v != nil {
			out.Set(key, v)
		}
	}
	return out
}

// oneSided merges values of which two are the same; if strict, values that at
// most one side changed or both removed.
func oneSided(base, ours, theirs json.RawMessage, strict bool) (json.RawMessage, bool) {
	switch {
	case SameJSON(base, theirs), ours == nil && theirs == nil, !strict && SameJSON(ours, theirs):
		return ours, true
	case SameJSON(base, ours):
		return theirs, true
	}
	return nil, false
}

func (m *merger) member(field, key string, base, ours, theirs json.RawMessage, document bool) json.RawMessage {
	if v, ok := oneSided(base, ours, theirs, m.strict); ok {
		return v
	}
	same := SameJSON(ours, theirs)
	if document {
		if same && m.created && key != "attributes" {
			return ours // both made the group
		}
		switch key {
		case "attributes":
			if docs, ok := parseSides(base, ours, theirs, partOf); ok {
				return m.objects(field, docs, false).Print()
			}
		case "shape":
			if v, ok := mergeShape(base, ours, theirs, m.strict); ok {
				return v
			}
		case InlineCopy:
			if same {
				return ours
			}
			v, _ := mergeCopies(base, ours, theirs, false)
			return v // or nothing: then readers look at the documents themselves
		}
	}
	m.conflicts = append(m.conflicts, txn.FieldConflict{Field: field, Base: Brief(base), Ours: Brief(ours), Theirs: Brief(theirs), Same: same})
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

// Brief cuts a value short for people.
func Brief(b []byte) string {
	const most = 60
	s := strings.ToValidUTF8(string(b[:min(len(b), most)]), "�")
	if len(b) > most {
		s += "…"
	}
	return s
}
