package history

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// ErrManyBases means that two commits have several best common ancestors.
var ErrManyBases = errors.New("txn: more than one merge base")

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

// MergeBase returns the best common ancestor of two commits. If there are
// several, none of which is an ancestor of another, the error lists them.
func MergeBase(ctx context.Context, get Get, a, b catalog.CommitID) (catalog.CommitID, error) {
	const fromA, fromB, stale = 1, 2, 4
	marks := map[catalog.CommitID]int{a: fromA}
	marks[b] |= fromB
	var best []catalog.CommitID
	for c, err := range Ancestors(ctx, get, []catalog.CommitID{a, b}, All) {
		if err != nil {
			return catalog.CommitID{}, err
		}
		m := marks[c.ID]
		if m&(fromA|fromB) == fromA|fromB && m&stale == 0 {
			best = append(best, c.ID)
			m |= stale
		}
		delete(marks, c.ID)
		for _, p := range c.Parents {
			marks[p] |= m
		}
		if onlyStale(marks) {
			break
		}
	}
	switch len(best) {
	case 1:
		return best[0], nil
	case 0:
		return catalog.CommitID{}, fmt.Errorf("merge base of %s and %s: no common ancestor: %w", a.Short(), b.Short(), catalog.ErrNoRef)
	}
	return catalog.CommitID{}, fmt.Errorf("merge base of %s and %s: %w: there are %d: %v", a.Short(), b.Short(), ErrManyBases, len(best), best)
}

// onlyStale reports whether nothing is left to visit but ancestors of common
// ancestors.
func onlyStale(marks map[catalog.CommitID]int) bool {
	for _, m := range marks {
		if m&4 == 0 {
			return false
		}
	}
	return true
}
