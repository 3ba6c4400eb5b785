package history

import (
	"context"
	"fmt"

	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/namespace"
)

// Keys are keys of a node, relative to it, that are compared in many versions.
type Keys struct {
	list  []string
	index map[string]int
	all   map[int]struct{}
}

// NewKeys returns a set of keys. Each must be in the list once.
func NewKeys(list []string) *Keys {
	k := &Keys{list: list, index: map[string]int{}, all: map[int]struct{}{}}
	for i, key := range list {
		k.index[key], k.all[i] = i, struct{}{}
	}
	return k
}

// Earlier is a version before a commit, seen from a node of the commit.
type Earlier struct {
	Commit *catalog.Commit
	// Path is what the node is called there.
	Path string
	// Changed are the numbers of the keys whose bytes differ.
	Changed map[int]struct{}
}

// Earlier returns the versions before a commit that have a node of it, followed through
// renames, and which of its keys differ from them. A version that has expired is replaced by
// the nearest before it that are kept; expired tells that this happened. The cost for a version is that of
// [Versions.Blame].
func (v *Versions) Earlier(ctx context.Context, c *catalog.Commit, path string, keys *Keys) (list []Earlier, expired bool, err error) {
	b := blamer{v: v, keys: keys.list, index: keys.index}
	here, _, err := v.Space.Dir(ctx, c.Root, namespace.DirPath(path))
	if err != nil {
		return nil, false, err
	}
	before, expired, err := v.before(ctx, c)
	if err != nil {
		return nil, false, err
	}
	for _, p := range before {
		e := Earlier{Commit: p}
		was, ok, err := b.pathIn(ctx, p.Root, c.Root, path)
		if err != nil {
			return nil, false, fmt.Errorf("/%s before %s: %w", path, c.ID.Short(), err)
		} else if !ok {
			continue
		}
		there, _, err := v.Space.Dir(ctx, p.Root, namespace.DirPath(was))
		if err == nil {
			e.Path = was
			e.Changed, err = b.changed(ctx, there, here, keys.all, false)
		}
		if err != nil {
			return nil, false, fmt.Errorf("/%s before %s: %w", path, c.ID.Short(), err)
		}
		list = append(list, e)
	}
	return list, expired, nil
}
