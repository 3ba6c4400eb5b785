package policy

import (
	"encoding/json"
	"path"
	"slices"

	"github.com/zarrdb/zarrdb/engine/internal/names"
)

// mergeCopies merges consolidated metadata, a .zmetadata (v2) or the member of a
// zarr.json (v3): the copies of each node are merged like its documents. It
// fails where copies conflict, where a side has a new node, and where one side removed a
// node that the other side changed: copies do not show whether a node was renamed.
func mergeCopies(base, ours, theirs json.RawMessage, v2 bool) (merged json.RawMessage, ok bool) {
	parse := partOf // of a zarr.json that was parsed
	if v2 {
		parse = ParseObject
	}
	tops, ok := parseSides(base, ours, theirs, parse)
	if !ok {
		return nil, false
	}
	var lists [3]*Object
	for i, top := range tops {
		list, err := partOf(OrEmpty(top.Values["metadata"]))
		if err != nil {
			return nil, false
		}
		if lists[i] = list; v2 {
			lists[i] = byNode(list)
		}
		top.Remove("metadata")
	}
	m := merger{}
	all := &Object{Values: map[string]json.RawMessage{}}
	for _, node := range UnionKeys(lists[1], lists[2]) {
		b, o, t := lists[0].Values[node], lists[1].Values[node], lists[2].Values[node]
		v, ok := oneSided(b, o, t, false)
		if !ok {
			docs, ok := parseSides(b, o, t, partOf)
			if !ok || b == nil {
				return nil, false
			}
			if v2 {
				v = m.documents(docs)
			} else {
				v = m.objects("", docs, true).Print()
			}
		}
		if v != nil {
			all.Set(node, v)
		}
	}
	out := m.objects("", tops, false)
	if len(m.conflicts) > 0 {
		return nil, false
	}
	if v2 {
		all = byKey(all)
	}
	out.Set("metadata", all.Print())
	return out.Print(), true
}

// documents merges the documents of a v2 node, by name.
func (m *merger) documents(nodes [3]*Object) json.RawMessage {
	out := &Object{Values: map[string]json.RawMessage{}}
	for _, name := range UnionKeys(nodes[1], nodes[2]) {
		b, o, t := nodes[0].Values[name], nodes[1].Values[name], nodes[2].Values[name]
		v, ok := oneSided(b, o, t, false)
		if !ok {
			attrs := name == names.V2Attrs // both sides may have given the first ones
			docs, ok := parseSides(b, OrEmpty(o), OrEmpty(t), partOf)
			if !ok || o == nil || t == nil || b == nil && !attrs {
				v = m.member(name, name, b, o, t, false) // a conflict
			} else {
				v = m.objects(name, docs, !attrs).Print()
			}
		}
		if v != nil {
			out.Set(name, v)
		}
	}
	return out.Print()
}

// byNode sorts the documents of a .zmetadata into nodes: the member "a/.zarray"
// becomes the member ".zarray" of the member "a".
func byNode(list *Object) *Object {
	nodes := map[string]*Object{}
	for _, key := range slices.Sorted(slices.Values(list.Keys)) {
		node := nodes[names.Parent(key)]
		if node == nil {
			node = &Object{Values: map[string]json.RawMessage{}}
			nodes[names.Parent(key)] = node
		}
		node.Set(path.Base(key), list.Values[key])
	}
	out := &Object{Values: map[string]json.RawMessage{}}
	for _, key := range list.Keys { // in their old order
		out.Set(names.Parent(key), nodes[names.Parent(key)].Print())
	}
	return out
}

// byKey is the reverse of byNode.
func byKey(nodes *Object) *Object {
	out := &Object{Values: map[string]json.RawMessage{}}
	for _, node := range nodes.Keys {
		docs, err := partOf(nodes.Values[node])
		if err != nil {
			continue // byNode and documents print objects
		}
		for _, name := range docs.Keys {
			out.Set(names.Dir(node)+name, docs.Values[name])
		}
	}
	return out
}
