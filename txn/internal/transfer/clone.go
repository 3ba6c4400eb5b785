package transfer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Clone carries all branches and tags, or those of o.Branch.
func Clone(ctx context.Context, from *From, to *To, o Options) (*Report, error) {
	return run(ctx, from, to, o, func(ctx context.Context, t *Transfer) error {
		if o.Branch != "" {
			refs, err := t.branchOnly(ctx, catalog.HeadRef(o.Branch))
			if err != nil {
				return err
			}
			t.heads = refs
		}
		return t.commits(ctx, slices.Collect(maps.Values(t.heads)))
	}, func(ctx context.Context, t *Transfer) error {
		return t.move(ctx, OpClone, t.heads, func(string, catalog.CommitID) (bool, error) { return true, nil })
	})
}

// branchOnly returns the ref of a branch and the tags within the depth of its
// history.
func (t *Transfer) branchOnly(ctx context.Context, ref string) (map[string]catalog.CommitID, error) {
	id, ok := t.heads[ref]
	if !ok {
		return nil, fmt.Errorf("branch %q: %w", ref[len(catalog.HeadPrefix):], catalog.ErrNoRef)
	}
	near := map[catalog.CommitID]struct{}{}
	level := []catalog.CommitID{id}
	for n := 0; len(level) > 0 && (t.o.Depth <= 0 || n < t.o.Depth); n++ {
		var parents []catalog.CommitID
		for _, id := range level {
			if _, ok := near[id]; ok {
				continue
			}
			near[id] = struct{}{}
			c, err := t.From.Lookup(ctx, id)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return nil, err
			}
			parents = append(parents, c.Parents...)
		}
		level = parents
	}
	refs := map[string]catalog.CommitID{ref: id}
	for name, at := range t.heads {
		if _, ok := near[at]; ok && strings.HasPrefix(name, catalog.TagPrefix) {
			refs[name] = at
		}
	}
	return refs, nil
}
