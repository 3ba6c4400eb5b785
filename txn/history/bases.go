package history

import (
	"container/heap"
	"context"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// ErrManyBases means that two commits have several best common ancestors.
var ErrManyBases = errors.New("txn: more than one merge base")

// ErrNoBase means that two commits have no common ancestor. It is ErrNoRef too.
var ErrNoBase = fmt.Errorf("%w: no common ancestor", catalog.ErrNoRef)

// MergeBase returns the best common ancestor of two commits. If there are
// several, none of which is an ancestor of another, the error lists them; without any it
// is ErrNoBase.
func MergeBase(ctx context.Context, get Get, a, b catalog.CommitID) (catalog.CommitID, error) {
	bases, err := MergeBases(ctx, get, []catalog.CommitID{a, b})
	switch {
	case err != nil:
		return catalog.CommitID{}, err
	case len(bases) == 0:
		return catalog.CommitID{}, fmt.Errorf("merge base of %s and %s: %w", a.Short(), b.Short(), ErrNoBase)
	case len(bases) > 1:
		return catalog.CommitID{}, fmt.Errorf("merge base of %s and %s: %w: there are %d: %v", a.Short(), b.Short(), ErrManyBases, len(bases), bases)
	}
	return bases[0], nil
}

// MergeBases returns the best common ancestors of all pairs of tips, newest first. The
// history is read once for all pairs, down to where their lines have met. If there
// are more than two tips, a common ancestor that is not the best may be among the
// results where three lines merged one another.
//
// A commit is a best common ancestor of two tips if both reach it, and no child of it
// is reached by both.
func MergeBases(ctx context.Context, get Get, tips []catalog.CommitID) (bases []catalog.CommitID, err error) {
	var q queue
	reached := map[catalog.CommitID]*reach{} // of the queue
	open := 0                                // those that no child with all tips leads to
	push := func(id catalog.CommitID, set []int32) error {
		r := reached[id]
		if r == nil {
			c, err := get(ctx, id)
			if err != nil {
				return err
			}
			r = &reach{}
			reached[id] = r
			heap.Push(&q, c)
			open++
		}
		if r.most < len(tips) && len(set) == len(tips) {
			open--
		}
		r.most = max(r.most, len(set))
		r.tips = union(r.tips, set)
		return ctx.Err()
	}
	for i, id := range tips {
		if err := push(id, []int32{int32(i)}); err != nil {
			return nil, err
		}
	}
	for open > 0 {
		c := heap.Pop(&q).(*catalog.Commit)
		r := reached[c.ID]
		delete(reached, c.ID)
		if r.most < len(tips) {
			open--
		}
		if r.most < len(r.tips) {
			bases = append(bases, c.ID)
		}
		if len(q) == 0 {
			break // everything below is reached through this commit
		}
		for _, id := range c.Parents {
			if err := push(id, r.tips); err != nil {
				return nil, err
			}
		}
	}
	return bases, nil
}

// reach is what reaches a commit: numbers of tips in order, and the largest number of
// them through one child.
type reach struct {
	tips []int32
	most int
}

// union merges two ordered sets. It returns one of them if that has all, so that lines
// that meet again share one set.
func union(a, b []int32) []int32 {
	if len(a) == 0 || len(a) == len(b) && &a[0] == &b[0] {
		return b
	}
	all := make([]int32, 0, len(a)+len(b))
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case j == len(b) || i < len(a) && a[i] < b[j]:
			all, i = append(all, a[i]), i+1
		case i == len(a) || a[i] > b[j]:
			all, j = append(all, b[j]), j+1
		default:
			all, i, j = append(all, a[i]), i+1, j+1
		}
	}
	switch len(all) {
	case len(a):
		return a
	case len(b):
		return b
	}
	return all
}
