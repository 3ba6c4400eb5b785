package history

import (
	"cmp"

	"github.com/zarrdb/zarrdb/txn/internal/catalog"
)

// queue is a heap of commits, so that a child always comes before its parents.
type queue []*catalog.Commit

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if c := cmp.Compare(q[i].Generation, q[j].Generation); c != 0 {
		return c > 0
	}
	if c := q[i].Time.Compare(q[j].Time); c != 0 {
		return c > 0
	}
	return string(q[i].ID[:]) < string(q[j].ID[:])
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*catalog.Commit)) }

func (q *queue) Pop() any {
	old := *q
	c := old[len(old)-1]
	*q = old[:len(old)-1]
	return c
}
