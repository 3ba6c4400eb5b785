package compare

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// rename notes renamed arrays, and the arrays that were replaced at the new paths.
func (g *gathering) rename(ctx context.Context, renames []txn.Rename) {
	g.renames = renames
	left := map[string]bool{}
	for _, r := range renames {
		left[r.From] = true
		n := g.node(r.To)
		n.Kind, n.From = "renamed", r.From
		g.from[r.To] = r.From
	}
	for _, r := range renames {
		if left[r.To] {
			continue
		}
		if _, err := g.older.Node(ctx, r.To); !errors.Is(err, zarr.ErrNotFound) { // also true of a node that cannot be read
			g.replaced = append(g.replaced, NodeChange{Path: r.To, Kind: "removed"})
		}
	}
}

// oldKey returns the name of a newer version's key in the older one.
func (g *gathering) oldKey(key string) string {
	for at := strings.LastIndexByte(key, '/'); at >= 0; at = strings.LastIndexByte(key[:at], '/') {
		if from, ok := g.from[key[:at]]; ok {
			return names.Dir(from) + key[at+1:]
		}
	}
	return key
}

// renameGroups makes one change of a group that went and one that came if an
// array moved from the one to the same place in the other.
func (g *gathering) renameGroups(ctx context.Context) error {
	for _, r := range g.renames {
		from, to := r.From, r.To
		for path.Base(from) == path.Base(to) && from != to {
			from, to = names.Parent(from), names.Parent(to)
			was, is := g.nodes[from], g.nodes[to]
			if from == to || was == nil || is == nil || was.Kind != "removed" || is.Kind != "added" {
				break
			}
			n := &NodeChange{Path: to, Kind: "renamed", From: from, OtherKeys: is.OtherKeys}
			for _, doc := range []string{names.V3, names.V2Group, names.V2Attrs} {
				prefix := ""
				if doc == names.V2Attrs {
					prefix = "attributes."
				}
				if err := g.compare(ctx, n, names.Dir(from)+doc, names.Dir(to)+doc, prefix); err != nil {
					return err
				}
			}
			g.nodes[to] = n
			delete(g.nodes, from)
		}
	}
	return nil
}
