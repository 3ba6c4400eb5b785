package history

import (
	"container/heap"
	"context"
	"iter"

	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// Get reads a commit by its id.
type Get func(context.Context, catalog.CommitID) (*catalog.Commit, error)

// Ancestors yields from and its ancestors, children before parents. Parents of a
// commit for which follow is false are left out unless reached otherwise.
func Ancestors(ctx context.Context, get Get, from []catalog.CommitID, follow func(*catalog.Commit) bool) iter.Seq2[*catalog.Commit, error] {
	return func(yield func(*catalog.Commit, error) bool) {
		var q queue
		seen := map[catalog.CommitID]struct{}{}
		push := func(ids []catalog.CommitID) error {
			for _, id := range ids {
				if _, ok := seen[id]; ok {
					continue
				}
				seen[id] = struct{}{}
				c, err := get(ctx, id)
				if err != nil {
					return err
				}
				heap.Push(&q, c)
			}
			return ctx.Err()
		}
		err := push(from)
		for err == nil && len(q) > 0 {
			c := heap.Pop(&q).(*catalog.Commit)
			if !yield(c, nil) {
				return
			}
			if follow(c) {
				err = push(c.Parents)
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// All follows every parent.
func All(*catalog.Commit) bool { return true }

// IsAncestor reports whether old is head or one of its ancestors.
func IsAncestor(ctx context.Context, get Get, old, head catalog.CommitID) (bool, error) {
	base, err := get(ctx, old)
	if err != nil {
		return false, err
	}
	for c, err := range Ancestors(ctx, get, []catalog.CommitID{head}, func(c *catalog.Commit) bool { return c.Generation > base.Generation }) {
		if err != nil {
			return false, err
		}
		if c.ID == old {
			return true, nil
		}
	}
	return false, nil
}
