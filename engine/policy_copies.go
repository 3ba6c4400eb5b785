package engine

import (
	"encoding/json"
	"path"
	"slices"
)

// mergeCopies merges consolidated metadata, a .zmetadata (v2) or the member of
// a zarr.json (v3): the copies of each node are merged like its documents. It
// fails where they would conflict and where a node came, or went on one side
// and changed on the other: it may have been renamed, which copies do not tell.
func mergeCopies(base, ours, theirs json.RawMessage, v2 bool) (merged json.RawMessage, ok bool) {
	tops, ok := parseSides(base, ours, theirs)
	if !ok {
		return nil, false
	}
	var lists [3]*object
	for i, top := range tops {
		list, err := parseObject(orEmpty(top.values["metadata"]))
		if err != nil {
			return nil, false
		}
		if lists[i] = list; v2 {
			lists[i] = byNode(list)
		}
		top.remove("metadata")
	}
	m := merger{}
	all := &object{values: map[string]json.RawMessage{}}
	for _, node := range unionKeys(lists[1], lists[2]) {
		b, o, t := lists[0].values[node], lists[1].values[node], lists[2].values[node]
		v, ok := oneSided(b, o, t, false)
		if !ok {
			docs, ok := parseSides(b, o, t)
			if !ok || b == nil {
				return nil, false
			}
			if v2 {
				v = m.documents(docs)
			} else {
				v = m.objects("", docs, true).print()
			}
		}
		if v != nil {
			all.set(node, v)
		}
	}
	out := m.objects("", tops, false)
	if len(m.conflicts) > 0 {
		return nil, false
	}
	if v2 {
		all = byKey(all)
	}
	out.set("metadata", all.print())
	return out.print(), true
}

// documents merges the documents of a v2 node, by name.
func (m *merger) documents(nodes [3]*object) json.RawMessage {
	out := &object{values: map[string]json.RawMessage{}}
	for _, name := range unionKeys(nodes[1], nodes[2]) {
		b, o, t := nodes[0].values[name], nodes[1].values[name], nodes[2].values[name]
		v, ok := oneSided(b, o, t, false)
		if !ok {
			attrs := name == docV2Attrs // both sides may have given the first ones
			docs, ok := parseSides(b, orEmpty(o), orEmpty(t))
			if !ok || o == nil || t == nil || b == nil && !attrs {
				v = m.member(name, name, b, o, t, false) // a conflict
			} else {
				v = m.objects(name, docs, !attrs).print()
			}
		}
		if v != nil {
			out.set(name, v)
		}
	}
	return out.print()
}

// byNode sorts the documents of a .zmetadata into nodes: the member "a/.zarray"
// becomes the member ".zarray" of the member "a".
func byNode(list *object) *object {
	nodes := map[string]*object{}
	for _, key := range slices.Sorted(slices.Values(list.keys)) {
		node := nodes[parent(key)]
		if node == nil {
			node = &object{values: map[string]json.RawMessage{}}
			nodes[parent(key)] = node
		}
		node.set(path.Base(key), list.values[key])
	}
	out := &object{values: map[string]json.RawMessage{}}
	for _, key := range list.keys { // in the order in which they were
		out.set(parent(key), nodes[parent(key)].print())
	}
	return out
}

// byKey is the reverse of byNode.
func byKey(nodes *object) *object {
	out := &object{values: map[string]json.RawMessage{}}
	for _, node := range nodes.keys {
		docs, err := parseObject(nodes.values[node])
		if err != nil {
			continue // byNode and documents print objects
		}
		for _, name := range docs.keys {
			out.set(dir(node)+name, docs.values[name])
		}
	}
	return out
}
