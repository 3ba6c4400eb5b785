package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
)

// NodeChange is what differs at one node between two versions.
type NodeChange struct {
	// Path of the node; keys that belong to none are under their directory.
	Path string `json:"path"`
	// Kind is "added", "removed" or "changed".
	Kind string `json:"kind"`
	// Fields of the metadata that differ, as "field: old -> new".
	Fields []string `json:"fields,omitempty"`
	// Chunks (and other keys) that came, went, or have other bytes.
	ChunksAdded   int64 `json:"chunks_added,omitempty"`
	ChunksRemoved int64 `json:"chunks_removed,omitempty"`
	ChunksChanged int64 `json:"chunks_changed,omitempty"`
}

// String describes the change in a line, and a line for each field.
func (c NodeChange) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s /%s", map[string]string{"added": "+", "removed": "-", "changed": "~"}[c.Kind], c.Path)
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
	for _, f := range c.Fields {
		b.WriteString("\n    " + f)
	}
	return b.String()
}

// NodeChanges sums up by node what differs at and below a path between two
// versions, sorted by path. Its cost is that of the changes.
func (db *DB) NodeChanges(ctx context.Context, from, to txn.CommitID, at string) ([]NodeChange, error) {
	older, err := db.Snapshot(ctx, from)
	if err != nil {
		return nil, err
	}
	defer older.Close()
	newer, err := db.Snapshot(ctx, to)
	if err != nil {
		return nil, err
	}
	defer newer.Close()
	g := gathering{older: older, newer: newer, nodes: map[string]*NodeChange{}, owners: map[string]string{}}
	for c, err := range db.Diff(ctx, from, to, dir(at)) {
		if err != nil {
			return nil, err
		}
		if err := g.add(ctx, c); err != nil {
			return nil, err
		}
	}
	list := make([]NodeChange, 0, len(g.nodes))
	for _, n := range g.nodes {
		list = append(list, *n)
	}
	slices.SortFunc(list, func(a, b NodeChange) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// gathering collects changes of keys by node.
type gathering struct {
	older, newer *Snapshot
	nodes        map[string]*NodeChange
	owners       map[string]string // directory of a chunk key -> node
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
	where := path.Dir(c.Key)
	if where == "." {
		where = ""
	}
	if isDocument(c.Key) {
		return g.document(ctx, g.node(where), c)
	}
	owner, err := g.owner(ctx, where)
	if err != nil {
		return err
	}
	n := g.node(owner)
	switch {
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
func (g *gathering) owner(ctx context.Context, where string) (string, error) {
	if o, ok := g.owners[where]; ok {
		return o, nil
	}
	found := where
	for p := where; ; {
		for _, doc := range []string{docV3, docV2Array, docV2Group} {
			for _, s := range []*Snapshot{g.newer, g.older} {
				_, err := s.Locate(ctx, dir(p)+doc)
				if err == nil {
					g.owners[where] = p
					return p, nil
				}
				if !errors.Is(err, kv.ErrNotFound) {
					return "", err
				}
			}
		}
		if p == "" {
			g.owners[where] = found
			return found, nil
		}
		if p = path.Dir(p); p == "." {
			p = ""
		}
	}
}

// document compares two states of a metadata document.
func (g *gathering) document(ctx context.Context, n *NodeChange, c txn.Change) error {
	name := path.Base(c.Key)
	node := name == docV3 || name == docV2Array || name == docV2Group
	switch {
	case c.Old == nil && node:
		n.Kind = "added"
	case c.New == nil && node:
		n.Kind = "removed"
	}
	if c.Old == nil || c.New == nil {
		return nil
	}
	var docs [2]*object
	for i, s := range []*Snapshot{g.older, g.newer} {
		b, err := kv.Get(ctx, s, c.Key)
		if err != nil {
			return err
		}
		if docs[i], err = parseObject(b); err != nil {
			n.Fields = append(n.Fields, name+" differs")
			return nil
		}
	}
	prefix := ""
	if name == docV2Attrs {
		prefix = "attributes."
	}
	n.fields(prefix, docs[0], docs[1])
	return nil
}

func (n *NodeChange) fields(prefix string, a, b *object) {
	for _, k := range unionKeys(a, b) {
		x, y := a.values[k], b.values[k]
		if sameJSON(x, y) {
			continue
		}
		if k == "attributes" && prefix == "" {
			p, perr := parseObject(orEmpty(x))
			q, qerr := parseObject(orEmpty(y))
			if perr == nil && qerr == nil {
				n.fields("attributes.", p, q)
				continue
			}
		}
		n.Fields = append(n.Fields, fmt.Sprintf("%s%s: %s -> %s", prefix, k, shown(x), shown(y)))
	}
}

func orEmpty(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("{}")
	}
	return raw
}

func shown(raw json.RawMessage) string {
	if raw == nil {
		return "(none)"
	}
	return strings.Join(strings.Fields(brief(raw)), " ")
}
