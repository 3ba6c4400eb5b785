package txn

import (
	"bytes"
	"cmp"
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
	// if it let go. Expire does not look for them.
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
	e := &explainer{index: map[tree.Name]int32{}}
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

type explainer struct {
	holders []Holder
	index   map[tree.Name]int32 // of a page in owners
	owners  []int32             // holder, or shared
	ranges  []heldRange
}

// heldRange is a payload that a page names.
type heldRange struct {
	tree.Payload
	page int32
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
		i, seen := e.index[root.Name]
		switch {
		case !seen:
			i = int32(len(e.owners))
			e.index[root.Name] = i
			e.owners = append(e.owners, holder)
		case e.owners[i] == holder || e.owners[i] == shared:
			continue
		default:
			e.owners[i] = shared
		}
		err := from.t.Links(ctx, root, &l)
		if errors.Is(err, tree.ErrMissing) && from.ended != nil && from.ended() {
			return nil
		}
		if err != nil {
			return err
		}
		stack = append(stack, l.Pages...)
		if seen {
			continue
		}
		for _, p := range l.Payloads {
			e.ranges = append(e.ranges, heldRange{p, i})
		}
	}
	return nil
}

// sum adds up, for each holder, the bytes that only its pages name. Different
// pages may name the same payload: it is held by the holders of all of them.
func (e *explainer) sum() {
	type event struct {
		pack  tree.PackID
		at    uint64
		step  int // 1 begins, -1 ends
		owner int32
	}
	events := make([]event, 0, 2*len(e.ranges))
	for _, r := range e.ranges {
		owner := e.owners[r.page]
		events = append(events, event{r.Pack, r.Offset, 1, owner}, event{r.Pack, r.Offset + r.Length, -1, owner})
	}
	slices.SortFunc(events, func(a, b event) int {
		if c := bytes.Compare(a.pack[:], b.pack[:]); c != 0 {
			return c
		}
		return cmp.Compare(a.at, b.at)
	})
	active := map[int32]int{}
	for i, ev := range events {
		if i > 0 && len(active) == 1 {
			for owner := range active {
				if owner != shared {
					e.holders[owner].OnlyBytes += int64(ev.at - events[i-1].at)
				}
			}
		}
		if active[ev.owner] += ev.step; active[ev.owner] == 0 {
			delete(active, ev.owner)
		}
	}
}
