package compare

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/engine/internal/policy"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// NodeChange is the difference at one node between two versions.
type NodeChange struct {
	// Path of the node; keys that belong to none are under their directory.
	Path string `json:"path"`
	// Kind is "added", "removed", "changed" or "renamed", which may have changed
	// too.
	Kind string `json:"kind"`
	// From is the old path of a renamed node.
	From string `json:"from,omitempty"`
	// Fields of the metadata that differ, as "field: old -> new".
	Fields []string `json:"fields,omitempty"`
	// Chunks of an array that came, went, or have other bytes.
	ChunksAdded   int64 `json:"chunks_added,omitempty"`
	ChunksRemoved int64 `json:"chunks_removed,omitempty"`
	ChunksChanged int64 `json:"chunks_changed,omitempty"`
	// OtherKeys are keys that are neither metadata nor part of an array.
	OtherKeys int64 `json:"other_keys,omitempty"`
}

// String describes the change in a line, and a line for each field.
func (c NodeChange) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s /%s", map[string]string{"added": "+", "removed": "-", "changed": "~", "renamed": ">"}[c.Kind], c.Path)
	if c.From != "" {
		fmt.Fprintf(&b, " renamed from /%s", c.From)
	}
	var counts []string
	for _, n := range []struct {
		n    int64
		what string
	}{{c.ChunksAdded, "added"}, {c.ChunksRemoved, "removed"}, {c.ChunksChanged, "changed"}} {
		if n.n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	if len(counts) > 0 {
		b.WriteString(" chunks: " + strings.Join(counts, ", "))
	}
	if c.OtherKeys > 0 {
		fmt.Fprintf(&b, " other keys: %d", c.OtherKeys)
	}
	for _, f := range c.Fields {
		b.WriteString("\n    " + f)
	}
	return b.String()
}

// empty reports whether nothing but copies of other documents differs.
func (c *NodeChange) empty() bool {
	return c.Kind == "changed" && len(c.Fields) == 0 && c.ChunksAdded+c.ChunksRemoved+c.ChunksChanged+c.OtherKeys == 0
}

// View is a version: its keys and its nodes.
type View interface {
	kv.Reader
	Node(ctx context.Context, path string) (*zarr.Node, error)
}

// Changes are the differing keys of two versions, with the renamed arrays; see
// [txn.DB.DiffFollowed].
type Changes struct {
	Renames []txn.Rename
	Keys    iter.Seq2[txn.Change, error]
}

// Nodes returns changes by node, sorted by path. Renamed arrays are compared
// with their old paths, and groups if all their members moved along.
// Consolidated metadata, which copies other documents, is left out. The cost
// grows with the changes.
func Nodes(ctx context.Context, older, newer View, c Changes) ([]NodeChange, error) {
	g := gathering{older: older, newer: newer, nodes: map[string]*NodeChange{}, owners: map[string]owner{}, from: map[string]string{}}
	g.rename(ctx, c.Renames)
	for c, err := range c.Keys {
		if err != nil {
			return nil, err
		}
		if err := g.add(ctx, c); err != nil {
			return nil, err
		}
	}
	if err := g.renameGroups(ctx); err != nil {
		return nil, err
	}
	list := append(make([]NodeChange, 0, len(g.nodes)), g.replaced...)
	for _, n := range g.nodes {
		if !n.empty() {
			list = append(list, *n)
		}
	}
	slices.SortFunc(list, func(a, b NodeChange) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Kind, b.Kind))
	})
	return list, nil
}

// gathering collects changes of keys by node.
type gathering struct {
	older, newer View
	nodes        map[string]*NodeChange
	owners       map[string]owner // by directory of a key
	renames      []txn.Rename
	from         map[string]string // old path of each renamed array, by its new one
	replaced     []NodeChange      // old nodes at the new paths of renamed ones
}

// owner is the node that a key belongs to.
type owner struct {
	path  string
	array bool
}

func (g *gathering) node(path string) *NodeChange {
	n := g.nodes[path]
	if n == nil {
		n = &NodeChange{Path: path, Kind: "changed"}
		g.nodes[path] = n
	}
	return n
}

func (g *gathering) add(ctx context.Context, c txn.Change) error {
	where := names.Parent(c.Key)
	if names.IsDocument(c.Key) {
		return g.document(ctx, g.node(where), c)
	}
	if c.Coords != nil {
		where = c.Array
	}
	owner, err := g.owner(ctx, where)
	if err != nil {
		return err
	}
	n := g.node(owner.path)
	switch {
	case !owner.array:
		n.OtherKeys++
	case c.Old == nil:
		n.ChunksAdded++
	case c.New == nil:
		n.ChunksRemoved++
	default:
		n.ChunksChanged++
	}
	return nil
}

// owner finds the nearest directory upwards that has metadata in either version.
func (g *gathering) owner(ctx context.Context, where string) (owner, error) {
	if o, ok := g.owners[where]; ok {
		return o, nil
	}
	found := owner{path: where}
search:
	for p := where; ; p = names.Parent(p) {
		for _, name := range []string{names.V3, names.V2Array, names.V2Group, names.V1Array} {
			for _, s := range []View{g.newer, g.older} {
				doc, err := kv.Get(ctx, s, names.Dir(p)+name)
				if errors.Is(err, kv.ErrNotFound) {
					continue
				}
				if err != nil {
					return owner{}, err
				}
				found = owner{path: p, array: policy.Policy{}.Array(name, doc)}
				break search
			}
		}
		if p == "" {
			break
		}
	}
	g.owners[where] = found
	return found, nil
}

// document compares two states of a metadata document.
func (g *gathering) document(ctx context.Context, n *NodeChange, c txn.Change) error {
	name, prefix := path.Base(c.Key), ""
	switch name {
	case names.V2Metadata:
		return nil
	case names.V2Attrs, names.V1Attrs: // without it the node has no attributes
		prefix = "attributes."
	default:
		switch {
		case c.Old == nil:
			n.Kind, n.Fields = "added", nil
			return nil
		case c.New == nil:
			n.Kind, n.Fields = "removed", nil
			return nil
		}
	}
	if n.Kind != "changed" && n.Kind != "renamed" {
		return nil
	}
	return g.compare(ctx, n, g.oldKey(c.Key), c.Key, prefix)
}

// compare adds the differences between two states of a document.
func (g *gathering) compare(ctx context.Context, n *NodeChange, oldKey, newKey, prefix string) error {
	docs := [2]*policy.Object{{}, {}}
	var texts [2][]byte
	for i, at := range []struct {
		s   View
		key string
	}{{g.older, oldKey}, {g.newer, newKey}} {
		b, err := kv.Get(ctx, at.s, at.key)
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		texts[i] = b
		if docs[i], err = policy.ParseObject(b); err != nil {
			n.Fields = append(n.Fields, path.Base(newKey)+" differs")
			return nil
		}
	}
	if bytes.Equal(texts[0], texts[1]) {
		return nil
	}
	before := len(n.Fields)
	copies := n.fields(prefix, docs[0], docs[1])
	if len(n.Fields) == before && !copies {
		n.Fields = append(n.Fields, path.Base(newKey)+" is spelled differently")
	}
	return nil
}

// fields adds the differing members; copies reports that copies of other
// documents differ.
func (n *NodeChange) fields(prefix string, a, b *policy.Object) (copies bool) {
	for _, k := range policy.UnionKeys(a, b) {
		x, y := a.Values[k], b.Values[k]
		switch {
		case policy.SameJSON(x, y):
			continue
		case prefix == "" && k == policy.InlineCopy:
			copies = true
			continue
		case prefix == "" && k == "attributes":
			p, perr := policy.ParseObject(policy.OrEmpty(x))
			q, qerr := policy.ParseObject(policy.OrEmpty(y))
			if perr == nil && qerr == nil {
				n.fields("attributes.", p, q)
				continue
			}
		}
		n.Fields = append(n.Fields, fmt.Sprintf("%s%s: %s -> %s", prefix, k, shown(x), shown(y)))
	}
	return copies
}

// shown is a value for people, on one line.
func shown(raw json.RawMessage) string {
	if raw == nil {
		return "(none)"
	}
	var flat bytes.Buffer
	if json.Compact(&flat, raw) != nil { // a bare NaN
		return strings.Join(strings.Fields(policy.Brief(raw)), " ")
	}
	return policy.Brief(flat.Bytes())
}
