package txn

import (
	"cmp"
	"context"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// walk finds the pages and payloads below the roots that the destination does
// not have. Both sides go down together, level by level; a page that the other
// side named too is not opened, so the cost is that of the changes. A page that
// is met on different levels is copied once more than needed, and its payloads
// are found to be equal.
//
// That a page is in the destination's index proves nothing: it may be what an
// interrupted transfer left. What a version names that has not expired is there.
func (t *transfer) walk(ctx context.Context) error {
	var (
		named   = newPageSet() // by the source
		known   = newPageSet() // in the destination, or to be copied
		missing = newRanges(math.MaxInt).local()
		present = newRanges(math.MaxInt).local()
		empty   = map[pack.ID][]pack.Extent{}
		ours    = t.roots
		bases   = t.bases
		l       tree.Links
	)
	for len(ours) > 0 {
		for _, r := range ours {
			if !r.Empty() {
				named.add(r.Name, 0)
			}
		}
		var below, basesBelow []tree.Root
		for _, r := range bases {
			if r.Empty() || !known.add(r.Name, 0) || named.has(r.Name) || !names(r) {
				continue
			}
			if err := t.to.space.t.Links(ctx, r, &l); err != nil {
				return err
			}
			for i := range l.Payloads {
				present.add(&l.Payloads[i])
			}
			basesBelow = append(basesBelow, l.Pages...)
		}
		for _, r := range ours {
			if r.Empty() || !known.add(r.Name, 0) {
				continue
			}
			t.pages = append(t.pages, r.Name)
			t.r.PageBytes += int64(r.Size)
			t.report("find", int64(len(t.pages)), 0)
			if !names(r) {
				continue
			}
			if err := t.from.space.t.Links(ctx, r, &l); err != nil {
				return err
			}
			for _, p := range l.Payloads {
				missing.add(&p)
				if p.Length == 0 {
					id := pack.ID(p.Pack)
					empty[id] = append(empty[id], pack.Extent{From: p.Offset, To: p.Offset})
				}
			}
			if len(l.Payloads) > 0 {
				t.leaves = append(t.leaves, r)
			}
			below = append(below, l.Pages...)
		}
		ours, bases = below, basesBelow
	}
	t.r.Pages = int64(len(t.pages))
	missing.flush()
	present.flush()
	t.subtract(missing.to, present.to, empty)
	return nil
}

// names reports whether a page names payloads or other pages.
func names(r tree.Root) bool {
	return r.Height > 0 || r.Flags&(tree.HasNative|tree.HasChild) != 0
}

// subtract takes from the payloads that are missing those that are there.
func (t *transfer) subtract(missing, present *ranges, empty map[pack.ID][]pack.Extent) {
	ids := maps.Clone(empty)
	for id := range missing.packs {
		ids[pack.ID(id)] = empty[pack.ID(id)]
	}
	for id, none := range ids {
		list, _ := missing.of(id, math.MaxUint64)
		if have, _ := present.of(id, math.MaxUint64); len(have) > 0 {
			list = pack.Subtract(list, have)
		}
		for _, e := range list {
			t.total += int64(e.To - e.From)
		}
		if len(none) > 0 {
			list = append(list, none...)
			slices.SortFunc(list, func(a, b pack.Extent) int {
				return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
			})
		}
		if len(list) > 0 {
			t.need[id] = list
		}
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
	return i < len(list) && list[i].From <= a.Offset+a.Length
}

// verify reads back every payload that was copied and compares it with its
// checksums, its header and its hash.
func (t *transfer) verify(ctx context.Context) error {
	var (
		seen    addressSet
		next    atomic.Int64
		workers sync.WaitGroup
		mu      sync.Mutex // guards what follows, and the report
		done    int64
		failed  error
	)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for range min(runtime.GOMAXPROCS(0), len(t.leaves)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(t.leaves)); i = next.Add(1) - 1 {
				n, size, err := t.verifyLeaf(ctx, t.leaves[i], &seen)
				mu.Lock()
				t.r.Verified += n
				done += size
				t.report("verify", done, t.total)
				if err != nil && failed == nil {
					failed = err
					stop()
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	workers.Wait()
	return failed
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
