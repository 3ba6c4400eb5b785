package collect

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/reach"
)

// Holder is something that keeps versions: a branch or tag by its head,
// a session, an open snapshot, a merge base of branches, or the history, which is
// all other versions that have not expired.
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
	e := newExplainer()
	e.lazy = g.Away != nil
	ids := map[HolderID]int32{}
	for _, r := range g.roots {
		i, ok := ids[r.By]
		if !ok {
			i = int32(len(e.holders))
			ids[r.By] = i
			e.holders = append(e.holders, Holder{Kind: r.By.Kind, Name: r.By.Name})
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
	ranges  *reach.Ranges
	local   *reach.Local
	lazy    bool // pages may be away
}

func newExplainer() *explainer {
	e := &explainer{pages: map[tree.Name]int32{}, ranges: reach.NewRanges(reach.MaxRangeBytes)}
	e.local = e.ranges.Local()
	return e
}

// visit walks below a root for a holder.
func (e *explainer) visit(ctx context.Context, from Root, holder int32) error {
	var l tree.Links
	stack := []tree.Root{from.Root.Root}
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
		err := from.Tree.Links(ctx, root, &l)
		if errors.Is(err, tree.ErrMissing) && e.lazy {
			continue // it is away, as mark has found
		}
		if errors.Is(err, tree.ErrMissing) && from.Ended != nil && from.Ended() {
			return nil
		}
		if err != nil {
			return err
		}
		stack = append(stack, l.Pages...)
		e.local.Owner = owner
		for i := range l.Payloads {
			e.local.Add(&l.Payloads[i])
		}
	}
	return nil
}

// sum adds up, for each holder, the bytes that only its pages name. Different
// pages may name the same payload: it is held by the holders of all of them.
func (e *explainer) sum() {
	e.local.Flush()
	for owner, n := range e.ranges.Alone() {
		if owner != shared {
			e.holders[owner].OnlyBytes = int64(n)
		}
	}
}
