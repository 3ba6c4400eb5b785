package txn

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// walk finds the pages and payloads that the destination does not have: of each
// version, ancestors first, those that the nearest versions before it have not.
//
// That a page is in the destination's index proves nothing: it may be what an
// interrupted transfer left. What a version names that has not expired is there.
func (t *transfer) walk(ctx context.Context) error {
	slices.SortStableFunc(t.records, func(a, b transferRecord) int { return cmp.Compare(a.c.Generation, b.c.Generation) })
	w := &transferWalk{
		t: t, planned: map[CommitID]tree.Root{}, copied: newPageSet(),
		missing: newRanges(math.MaxInt).local(), empty: map[pack.ID][]pack.Extent{},
	}
	for _, r := range t.records {
		if !r.content {
			continue
		}
		bases, err := w.bases(ctx, r.c)
		if err == nil {
			err = w.version(ctx, r.c.Root, bases)
		}
		if err != nil {
			return err
		}
		w.planned[r.c.ID] = r.c.Root
	}
	t.r.Pages = int64(len(t.pages))
	w.finish()
	return nil
}

type transferWalk struct {
	t       *transfer
	planned map[CommitID]tree.Root // versions that were walked
	copied  *pageSet               // pages of these that are to be copied
	missing *localRanges           // payloads that are
	empty   map[pack.ID][]pack.Extent
	l       tree.Links
}

// transferBase is a version with all that it names in the destination, or to be
// copied there, and where it is read.
type transferBase struct {
	db   *DB
	root tree.Root
}

// lookBack bounds how many commits without contents are passed to find one that
// has them.
const lookBack = 1000

// bases returns the nearest ancestors of a commit whose contents are in the
// destination or will be, or what its refs point at if none are near.
func (w *transferWalk) bases(ctx context.Context, c *Commit) ([]transferBase, error) {
	var out []transferBase
	t, seen := w.t, map[CommitID]struct{}{}
	for next := slices.Clone(c.Parents); len(next) > 0 && len(seen) < lookBack; next = next[1:] {
		id := next[0]
		if _, ok := seen[id]; ok {
			continue
		}
		seen[id] = struct{}{}
		if root, ok := w.planned[id]; ok {
			out = append(out, transferBase{t.from, root})
			continue
		}
		has, gone, err := t.known(id)
		if err != nil {
			return nil, err
		}
		db := t.from
		if has {
			db = t.to
		}
		p, err := db.Commit(ctx, id)
		switch {
		case errors.Is(err, ErrNoRef):
		case err != nil:
			return nil, err
		case has && !gone:
			out = append(out, transferBase{t.to, p.Root})
		default:
			next = append(next, p.Parents...)
		}
	}
	if len(out) == 0 {
		for _, r := range t.bases {
			out = append(out, transferBase{t.to, r})
		}
	}
	return out, nil
}

// version finds what a version has beyond its bases. Both go down together, level
// by level; a page that the other side named too is not opened, so the cost is
// that of the changes. A page that is met on different levels is copied once more
// than needed, and its payloads are found to be equal.
func (w *transferWalk) version(ctx context.Context, root tree.Root, bases []transferBase) error {
	t := w.t
	named, theirs := map[tree.Name]struct{}{}, map[tree.Name]struct{}{}
	own, have := payloadLists{}, payloadLists{}
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
			if err := b.db.space.t.Links(ctx, b.root, &w.l); err != nil {
				return err
			}
			have.add(w.l.Payloads)
			for _, r := range w.l.Pages {
				basesBelow = append(basesBelow, transferBase{b.db, r})
			}
		}
		for _, r := range ours {
			if _, ok := theirs[r.Name]; r.Empty() || ok || !w.copied.add(r.Name, 0) {
				continue
			}
			t.pages = append(t.pages, r.Name)
			t.r.PageBytes += int64(r.Size)
			t.report("find", int64(len(t.pages)), 0)
			if !names(r) {
				continue
			}
			if err := t.from.space.t.Links(ctx, r, &w.l); err != nil {
				return err
			}
			if len(w.l.Payloads) > 0 {
				t.leaves = append(t.leaves, r)
			}
			if own.add(w.l.Payloads); first {
				w.need(own) // now, so as not to list all payloads
				clear(own)
			}
			below = append(below, w.l.Pages...)
		}
		ours, bases = below, basesBelow
	}
	own.subtract(have)
	w.need(own)
	return nil
}

// names reports whether a page names payloads or other pages.
func names(r tree.Root) bool {
	return r.Height > 0 || r.Flags&(tree.HasNative|tree.HasChild) != 0
}

// payloadLists are payloads by pack. They are not joined: between two there may be
// a third, which one side does not have.
type payloadLists map[tree.PackID][]pack.Extent

func (l payloadLists) add(list []tree.Payload) {
	for _, p := range list {
		l[p.Pack] = append(l[p.Pack], pack.Extent{From: p.Offset, To: p.Offset + p.Length})
	}
}

func compareExtents(a, b pack.Extent) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
}

// subtract takes out the payloads that are in another list too.
func (l payloadLists) subtract(have payloadLists) {
	for id, list := range l {
		other := have[id]
		slices.SortFunc(other, compareExtents)
		l[id] = slices.DeleteFunc(list, func(e pack.Extent) bool {
			_, ok := slices.BinarySearchFunc(other, e, compareExtents)
			return ok
		})
	}
}

// need notes payloads that are to be copied.
func (w *transferWalk) need(l payloadLists) {
	for id, list := range l {
		for _, e := range list {
			if e.From == e.To {
				w.empty[pack.ID(id)] = append(w.empty[pack.ID(id)], e)
			} else {
				w.missing.add(&tree.Payload{Pack: id, Offset: e.From, Length: e.To - e.From})
			}
		}
	}
}

// finish makes a list of each pack. Payloads without bytes are in it only where
// no others are around them.
func (w *transferWalk) finish() {
	t := w.t
	w.missing.flush()
	for id := range w.missing.to.packs {
		w.empty[pack.ID(id)] = slices.Clip(w.empty[pack.ID(id)]) // it has an entry now
	}
	for id, list := range w.empty {
		more, n := w.missing.to.of(id, math.MaxUint64)
		t.total += int64(n)
		list = append(list, more...)
		slices.SortFunc(list, compareExtents)
		out := list[:0]
		for _, e := range list {
			if len(out) > 0 && e.To <= out[len(out)-1].To {
				continue
			}
			out = append(out, e)
		}
		t.need[id] = out
	}
}

// needs reports whether a payload was among those to be copied.
func (t *transfer) needs(a pack.Address) bool {
	list := t.need[a.Pack]
	i, _ := slices.BinarySearchFunc(list, a.Offset, func(e pack.Extent, off uint64) int {
		if e.To < off || e.To == off && e.From < off {
			return -1
		}
		return 1
	})
	return i < len(list) && (list[i].From < a.Offset+a.Length || list[i].From <= a.Offset)
}

// verify reads back every payload that was copied and compares it with its
// checksums, its header and its hash.
func (t *transfer) verify(ctx context.Context) error {
	var (
		seen addressSet
		mu   sync.Mutex // guards done and the report
		done int64
	)
	return gather.Each(ctx, runtime.GOMAXPROCS(0), len(t.leaves), func(ctx context.Context, i int) error {
		n, size, err := t.verifyLeaf(ctx, t.leaves[i], &seen)
		mu.Lock()
		defer mu.Unlock()
		t.r.Verified += n
		done += size
		t.report("verify", done, t.total)
		return err
	})
}

// verifyLeaf verifies the payloads that a page names and which were not seen.
func (t *transfer) verifyLeaf(ctx context.Context, leaf tree.Root, seen *addressSet) (n, size int64, err error) {
	err = t.from.space.t.Open(ctx, leaf.Place(), func(tree.Place) error { return nil }, func(e tree.Entry) error {
		v := e.Value
		if v.Kind != tree.KindNative || !t.needs(addressOf(v)) || !seen.add(addressOf(v)) {
			return nil
		}
		n++
		size += int64(v.Length)
		return t.to.packs.Verify(ctx, addressOf(v), func(b []byte) error {
			if sum := digest.Of(b); sum != v.Sum {
				return corrupt("pack %v at %d: payload hashes to %v, not %v", addressOf(v).Pack, v.Offset, sum, v.Sum)
			}
			return nil
		})
	})
	return n, size, err
}
