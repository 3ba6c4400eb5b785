package reach

import (
	"sync"
)

// WorkList is a stack of work for several goroutines, where work makes more
// work. It ends when nothing is left or in work, or at the first error. Depth first,
// so that it stays small.
type WorkList[T any] struct {
	mu   sync.Mutex
	cond sync.Cond
	list []T
	busy int
	err  error
}

// NewWorkList returns a list of the first work.
func NewWorkList[T any](items ...T) *WorkList[T] {
	q := &WorkList[T]{list: items}
	q.cond.L = &q.mu
	return q
}

// Take returns the item that was added last; ok is false at the end.
func (q *WorkList[T]) Take() (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.list) == 0 && q.busy > 0 && q.err == nil {
		q.cond.Wait()
	}
	if len(q.list) == 0 || q.err != nil {
		return item, false
	}
	item = q.list[len(q.list)-1]
	q.list = q.list[:len(q.list)-1]
	q.busy++
	return item, true
}

// Done ends the work on an item, which gave more or failed.
func (q *WorkList[T]) Done(more []T, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
	q.list = append(q.list, more...)
	if q.err == nil {
		q.err = err
	}
	q.cond.Broadcast()
}

// Err returns the error that ended the work, when all goroutines are done.
func (q *WorkList[T]) Err() error { return q.err }
