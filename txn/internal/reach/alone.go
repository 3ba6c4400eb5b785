package reach

import (
	"container/heap"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// Alone returns how many bytes each owner has in ranges that no other owner has.
// Nothing may be added at the same time.
func (r *Ranges) Alone() map[int32]uint64 {
	packs := map[tree.PackID]ends{}
	for key, l := range r.packs {
		r.join(l)
		o := ownerRanges{owner: key.owner, runReader: runReader{b: l.runs[0]}}
		if o.next() {
			packs[key.pack] = append(packs[key.pack], &o)
		}
	}
	alone := map[int32]uint64{}
	for _, h := range packs {
		h.sum(alone)
	}
	return alone
}

// sum goes over the ends of the ranges of one pack, in order.
func (h ends) sum(alone map[int32]uint64) {
	heap.Init(&h)
	active := map[int32]struct{}{} // owners of the bytes that follow
	for last := uint64(0); len(h) > 0; {
		r := h[0]
		at := r.end()
		if len(active) == 1 {
			for owner := range active {
				alone[owner] += at - last
			}
		}
		last = at
		if r.inside = !r.inside; r.inside {
			active[r.owner] = struct{}{}
		} else {
			delete(active, r.owner)
			if !r.next() {
				heap.Pop(&h)
				continue
			}
		}
		heap.Fix(&h, 0)
	}
}

// ownerRanges are the ranges of one pack that an owner has, disjoint and in order.
type ownerRanges struct {
	runReader
	owner  int32
	inside bool // the beginning of head was met
}

// end is the next place where a range begins or ends.
func (r *ownerRanges) end() uint64 {
	if r.inside {
		return r.head.To
	}
	return r.head.From
}

// ends is a heap by the next end.
type ends []*ownerRanges

func (h ends) Len() int { return len(h) }

func (h ends) Less(i, j int) bool { return h[i].end() < h[j].end() }

func (h ends) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *ends) Push(x any) { *h = append(*h, x.(*ownerRanges)) }

func (h *ends) Pop() any {
	n := len(*h) - 1
	r := (*h)[n]
	*h = (*h)[:n]
	return r
}
