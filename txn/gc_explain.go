package txn

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"slices"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// Holder is something that keeps versions: a branch or tag by its head, a pin,
// a session, an open snapshot, or the history, which is all other versions that
// have not expired.
type Holder struct {
	Kind, Name string
	// Versions is how many roots it holds.
	Versions int64
	// OnlyBytes are payloads that nothing else holds: what would become free
	// if it let go, as near as the collector knows. Expire does not look for them.
	OnlyBytes int64
}

// shared is the owner of a page that several holders reach.
const shared = -1

// explain finds out what is held by one holder only. A page is visited at most
// twice: by its first holder, and by the second, which makes it shared with all
// that is below.
func (g *collector) explain(ctx context.Context) error {
	if !g.o.Explain {
		return nil
	}
	e := newExplainer(g.o.rangeBytes)
	ids := map[holderID]int32{}
	for _, r := range g.roots {
		i, ok := ids[r.by]
		if !ok {
			i = int32(len(e.holders))
			ids[r.by] = i
			e.holders = append(e.holders, Holder{Kind: r.by.kind, Name: r.by.name})
		}
		e.holders[i].Versions++
		if err := e.visit(ctx, r, i); err != nil {
			return err
		}
	}
	e.sum()
	slices.SortStableFunc(e.holders, func(a, b Holder) int { return cmp.Compare(b.OnlyBytes, a.OnlyBytes) })
	g.r.Holders = e.holders
	return nil
}

// explainer collects the payloads of each holder as ranges, in bounded memory as
// those of all are when they are marked. Those of a page that a second holder
// reaches are added to what is shared too.
type explainer struct {
	holders []Holder
	pages   map[tree.Name]int32 // their holder, or shared
	ranges  *ranges
	local   *localRanges
}

func newExplainer(rangeBytes int) *explainer {
	e := &explainer{pages: map[tree.Name]int32{}, ranges: newRanges(rangeBytes)}
	e.local = e.ranges.local()
	return e
}

// visit walks below a root for a holder.
func (e *explainer) visit(ctx context.Context, from gcRoot, holder int32) error {
	var l tree.Links
	stack := []tree.Root{from.root}
	for len(stack) > 0 {
		root := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if root.Empty() || root.Flags&tree.HasNative == 0 {
			continue
		}
		owner, seen := e.pages[root.Name]
		switch {
		case !seen:
			owner = holder
		case owner == holder || owner == shared:
			continue
		default:
			owner = shared
		}
		e.pages[root.Name] = owner
		err := from.t.Links(ctx, root, &l)
		if errors.Is(err, tree.ErrMissing) && from.ended != nil && from.ended() {
			return nil
		}
		if err != nil {
			return err
		}
		stack = append(stack, l.Pages...)
		e.local.owner = owner
		for i := range l.Payloads {
			e.local.add(&l.Payloads[i])
		}
	}
	return nil
}

// sum adds up, for each holder, the bytes that only its pages name. Different
// pages may name the same payload: it is held by the holders of all of them.
func (e *explainer) sum() {
	e.local.flush()
	packs := map[tree.PackID]ends{}
	for key, l := range e.ranges.packs {
		e.ranges.join(l)
		r := ownerRanges{owner: key.owner, runReader: runReader{b: l.runs[0]}}
		if r.next() {
			packs[key.pack] = append(packs[key.pack], &r)
		}
	}
	for _, h := range packs {
		e.sumPack(h)
	}
}

// sumPack goes over the ends of the ranges of one pack, in order.
func (e *explainer) sumPack(h ends) {
	heap.Init(&h)
	active := map[int32]struct{}{} // owners of the bytes that follow
	for last := uint64(0); len(h) > 0; {
		r := h[0]
		at := r.end()
		if len(active) == 1 {
			for owner := range active {
				if owner != shared {
					e.holders[owner].OnlyBytes += int64(at - last)
				}
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

func (h ends) Len() int           { return len(h) }
func (h ends) Less(i, j int) bool { return h[i].end() < h[j].end() }
func (h ends) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *ends) Push(x any)        { *h = append(*h, x.(*ownerRanges)) }

// Pop implements [heap.Interface].
func (h *ends) Pop() any {
	n := len(*h) - 1
	r := (*h)[n]
	*h = (*h)[:n]
	return r
}
