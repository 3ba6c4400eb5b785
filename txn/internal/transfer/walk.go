package transfer

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/catalog"
	"github.com/zarrdb/zarrdb/txn/internal/reach"
)

// walk finds the pages and payloads that the destination does not have.
func (t *Transfer) walk(ctx context.Context) error {
	slices.SortStableFunc(t.Records, func(a, b transferRecord) int { return cmp.Compare(a.Commit.Generation, b.Commit.Generation) })
	planned := map[catalog.CommitID]tree.Root{}
	for i := range t.Records {
		r := &t.Records[i]
		if !r.content {
			continue
		}
		var err error
		if r.bases, err = t.basesOf(ctx, r.Commit, planned); err != nil {
			return err
		}
		planned[r.Commit.ID] = r.Commit.Root
	}
	t.Found = t.newWalk(t.From.Tree, t.to.Tree)
	t.Found.report = func() { t.report("find", int64(len(t.Found.Pages)), 0) }
	if err := t.Found.run(ctx); err != nil {
		return err
	}
	t.r.Pages, t.r.PageBytes = int64(len(t.Found.Pages)), t.Found.pageBytes
	if t.From.Fault != nil {
		t.From.Fault(t)
	}
	return nil
}

// transferWalk finds pages and payloads: of each version that is carried,
// ancestors first, those that the nearest versions before it have not.
//
// That a page is in the destination's index proves nothing: it may be what an
// interrupted transfer left. What a version names that has not expired is there.
type Walk struct {
	T *Transfer
	// from has the pages of the versions that are carried, and to has those of
	// versions that the destination had before.
	from, to *tree.Tree
	whole    bool   // pages that name nothing are read too
	report   func() // called after each page

	Pages     []tree.Name
	starts    []int // of the versions in Pages
	pageBytes int64
	Leaves    []tree.Root // of the pages, those that name payloads
	Need      map[pack.ID][]pack.Extent
	total     int64 // bytes of need

	seen    *reach.Pages
	ranges  *reach.Ranges // what goes into need
	missing *reach.Local  // into ranges
	empty   map[pack.ID][]pack.Extent
	l       tree.Links
}

func (t *Transfer) newWalk(from, to *tree.Tree) *Walk {
	ranges := reach.NewRanges(math.MaxInt)
	return &Walk{
		T: t, from: from, to: to,
		Need: map[pack.ID][]pack.Extent{}, seen: reach.NewPages(),
		ranges: ranges, missing: ranges.Local(), empty: map[pack.ID][]pack.Extent{},
	}
}

func (w *Walk) run(ctx context.Context) error {
	for _, r := range w.T.Records {
		if !r.content {
			continue
		}
		w.starts = append(w.starts, len(w.Pages))
		if err := w.version(ctx, r.Commit.Root, r.bases); err != nil {
			return err
		}
	}
	w.finish()
	return nil
}

// transferBase is a version with all that it names in the destination: before the
// transfer, or, if it is carried, after it.
type transferBase struct {
	root    tree.Root
	carried bool
}

// lookBack bounds how many commits without contents are passed to find one that
// has them.
const lookBack = 1000

// basesOf returns the nearest ancestors of a commit whose contents are in the
// destination or will be, because they are planned, or what its refs point at if
// none are near.
func (t *Transfer) basesOf(ctx context.Context, c *catalog.Commit, planned map[catalog.CommitID]tree.Root) ([]transferBase, error) {
	var out []transferBase
	seen := map[catalog.CommitID]struct{}{}
	for next := slices.Clone(c.Parents); len(next) > 0 && len(seen) < lookBack; next = next[1:] {
		id := next[0]
		if _, ok := seen[id]; ok {
			continue
		}
		seen[id] = struct{}{}
		if root, ok := planned[id]; ok {
			out = append(out, transferBase{root, true})
			continue
		}
		has, gone, err := t.known(ctx, id)
		if err != nil {
			return nil, err
		}
		lookup := t.From.Lookup
		if has {
			lookup = t.to.Lookup
		}
		p, err := lookup(ctx, id)
		switch {
		case errors.Is(err, catalog.ErrNoRef):
		case err != nil:
			return nil, err
		case has && !gone:
			base := p
			if t.to.bucket != nil {
				if base, err = t.base(ctx, id); err != nil {
					return nil, err
				}
			}
			if base != nil {
				out = append(out, transferBase{base.Root, false})
			} else {
				next = append(next, p.Parents...)
			}
		default:
			next = append(next, p.Parents...)
		}
	}
	if len(out) == 0 {
		for _, r := range t.bases {
			out = append(out, transferBase{r, false})
		}
	}
	return out, nil
}

// version finds what a version has beyond its bases. Both go down together, level
// by level; a page that the other side named too is not opened, so the cost is
// that of the changes. A page that is met on different levels is copied once more
// than needed, and its payloads are found to be equal.
func (w *Walk) version(ctx context.Context, root tree.Root, bases []transferBase) error {
	named, theirs := map[tree.Name]struct{}{}, map[tree.Name]struct{}{}
	own, have := reach.Payloads{}, reach.Payloads{}
	first := len(bases) == 0
	w.l.Exact = !first
	for ours := []tree.Root{root}; len(ours) > 0; {
		for _, r := range ours {
			if !r.Empty() {
				named[r.Name] = struct{}{}
			}
		}
		var below []tree.Root
		var basesBelow []transferBase
		for _, b := range bases {
			_, again := theirs[b.root.Name]
			if b.root.Empty() || again {
				continue
			}
			theirs[b.root.Name] = struct{}{}
			if _, ok := named[b.root.Name]; ok || !names(b.root) {
				continue
			}
			at := w.to
			if b.carried {
				at = w.from
			}
			if err := at.Links(ctx, b.root, &w.l); err != nil {
				return err
			}
			have.Add(w.l.Payloads)
			for _, r := range w.l.Pages {
				basesBelow = append(basesBelow, transferBase{r, b.carried})
			}
		}
		for _, r := range ours {
			if _, ok := theirs[r.Name]; r.Empty() || ok || !w.seen.Add(r.Name, 0) {
				continue
			}
			w.Pages = append(w.Pages, r.Name)
			w.pageBytes += int64(r.Size)
			w.report()
			if !names(r) && !w.whole {
				continue
			}
			if err := w.from.Links(ctx, r, &w.l); err != nil {
				return err
			}
			if len(w.l.Payloads) > 0 {
				w.Leaves = append(w.Leaves, r)
			}
			if own.Add(w.l.Payloads); first {
				w.lack(own) // now, so as not to list all payloads
				clear(own)
			}
			below = append(below, w.l.Pages...)
		}
		ours, bases = below, basesBelow
	}
	own.Subtract(have)
	w.lack(own)
	return nil
}

// names reports whether a page names payloads or other pages.
func names(r tree.Root) bool {
	return r.Height > 0 || r.Flags&(tree.HasNative|tree.HasChild) != 0
}

// lack notes payloads that the versions before do not name.
func (w *Walk) lack(l reach.Payloads) {
	for id, list := range l {
		for _, e := range list {
			if e.From == e.To {
				w.empty[pack.ID(id)] = append(w.empty[pack.ID(id)], e)
			} else {
				w.missing.Add(&tree.Payload{Pack: id, Offset: e.From, Length: e.To - e.From})
			}
		}
	}
}

// finish makes a list of each pack. Payloads without bytes are in it only where
// no others are around them.
func (w *Walk) finish() {
	w.missing.Flush()
	for _, id := range w.ranges.Packs() {
		w.empty[id] = slices.Clip(w.empty[id]) // it has an entry now
	}
	for id, list := range w.empty {
		more, n := w.ranges.Of(id, math.MaxUint64)
		w.total += int64(n)
		list = append(list, more...)
		slices.SortFunc(list, reach.CompareExtents)
		out := list[:0]
		for _, e := range list {
			if len(out) > 0 && e.To <= out[len(out)-1].To {
				continue
			}
			out = append(out, e)
		}
		w.Need[id] = out
	}
}
