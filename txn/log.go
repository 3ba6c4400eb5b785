package txn

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"iter"
)

// commitQueue orders commits so that a child always comes before its parents.
type commitQueue []*Commit

func (q commitQueue) Len() int { return len(q) }
func (q commitQueue) Less(i, j int) bool {
	if c := cmp.Compare(q[i].Generation, q[j].Generation); c != 0 {
		return c > 0
	}
	if c := q[i].Time.Compare(q[j].Time); c != 0 {
		return c > 0
	}
	return string(q[i].ID[:]) < string(q[j].ID[:])
}
func (q commitQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *commitQueue) Push(x any)   { *q = append(*q, x.(*Commit)) }
func (q *commitQueue) Pop() any {
	old := *q
	c := old[len(old)-1]
	*q = old[:len(old)-1]
	return c
}

// getCommit reads a commit by id.
type getCommit func(context.Context, CommitID) (*Commit, error)

// ancestry yields from and its ancestors, children before parents. Parents of a
// commit for which follow is false are left out unless reached otherwise.
func ancestry(ctx context.Context, get getCommit, from []CommitID, follow func(*Commit) bool) iter.Seq2[*Commit, error] {
	return func(yield func(*Commit, error) bool) {
		var q commitQueue
		seen := map[CommitID]struct{}{}
		push := func(ids []CommitID) error {
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
			c := heap.Pop(&q).(*Commit)
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

// Log yields a commit and its ancestors, children before parents, newest first
// among those that are not related.
func (db *DB) Log(ctx context.Context, from CommitID) iter.Seq2[*Commit, error] {
	return ancestry(ctx, db.Commit, []CommitID{from}, func(*Commit) bool { return true })
}

// isAncestor reports whether old is head or one of its ancestors.
func isAncestor(ctx context.Context, get getCommit, old, head CommitID) (bool, error) {
	base, err := get(ctx, old)
	if err != nil {
		return false, err
	}
	for c, err := range ancestry(ctx, get, []CommitID{head}, func(c *Commit) bool { return c.Generation > base.Generation }) {
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
func (db *DB) MergeBase(ctx context.Context, a, b CommitID) (CommitID, error) {
	const fromA, fromB, stale = 1, 2, 4
	marks := map[CommitID]int{a: fromA}
	marks[b] |= fromB
	var best []CommitID
	for c, err := range ancestry(ctx, db.Commit, []CommitID{a, b}, func(*Commit) bool { return true }) {
		if err != nil {
			return CommitID{}, err
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
		return CommitID{}, fmt.Errorf("merge base of %s and %s: no common ancestor: %w", a.Short(), b.Short(), ErrNoRef)
	}
	return CommitID{}, fmt.Errorf("merge base of %s and %s: %w: there are %d: %v", a.Short(), b.Short(), ErrManyBases, len(best), best)
}

// onlyStale reports whether nothing is left to visit but ancestors of common
// ancestors.
func onlyStale(marks map[CommitID]int) bool {
	for _, m := range marks {
		if m&4 == 0 {
			return false
		}
	}
	return true
}
