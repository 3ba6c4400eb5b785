package txn

import (
	"sync"

	"github.com/zarrdb/zarrdb/kv/pack"
)

// workList is a stack of work for several goroutines, where work makes more
// work. It ends when nothing is left or in work, or at the first error.
type workList[T any] struct {
	mu   sync.Mutex
	cond sync.Cond
	list []T
	busy int
	err  error
}

func newWorkList[T any]() *workList[T] {
	q := &workList[T]{}
	q.cond.L = &q.mu
	return q
}

func (q *workList[T]) add(items ...T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, items...)
}

// take returns the item that was added last; ok is false at the end.
func (q *workList[T]) take() (item T, ok bool) {
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

// done ends work on an item, which gave more or failed.
func (q *workList[T]) done(more []T, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
	q.list = append(q.list, more...)
	if q.err == nil {
		q.err = err
	}
	q.cond.Broadcast()
}

// addressSet remembers payloads in a bit per 512 bytes of pack: two that are
// at least as long never begin in the same 512. Shorter ones are never
// remembered. The zero set is empty.
type addressSet struct {
	mu      sync.Mutex
	regions map[addressRegion]*[addressWords]uint64
}

type addressRegion struct {
	pack pack.ID
	n    uint64
}

const (
	addressSlot  = 512
	addressWords = 128 // of a region: 4 MiB of pack
)

// has reports whether a was added.
func (s *addressSet) has(a pack.Address) bool {
	slot := a.Offset / addressSlot
	s.mu.Lock()
	defer s.mu.Unlock()
	words := s.regions[addressRegion{a.Pack, slot / (64 * addressWords)}]
	return words != nil && words[slot/64%addressWords]&(1<<(slot%64)) != 0
}

// add reports whether a was not there.
func (s *addressSet) add(a pack.Address) bool {
	if a.Length < addressSlot {
		return true
	}
	slot := a.Offset / addressSlot
	r := addressRegion{a.Pack, slot / (64 * addressWords)}
	i, bit := slot/64%addressWords, uint64(1)<<(slot%64)
	s.mu.Lock()
	defer s.mu.Unlock()
	words := s.regions[r]
	if words == nil {
		words = new([addressWords]uint64)
		if s.regions == nil {
			s.regions = map[addressRegion]*[addressWords]uint64{}
		}
		s.regions[r] = words
	}
	fresh := words[i]&bit == 0
	words[i] |= bit
	return fresh
}
