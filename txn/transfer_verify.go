package txn

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/zarrdb/zarrdb/kv/digest"
	"github.com/zarrdb/zarrdb/kv/gather"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/reach"
)

// verify proves that the versions which were carried are whole in the destination.
// It trusts neither the list of what was copied nor any page in memory: it goes
// down from their roots through the pages in the destination's index, each compared
// with its name, and reads every payload that they name out of the destination's
// packs, compared with its checksums, header and hash. What versions name that the
// destination had before is skipped.
func (t *transfer) verify(ctx context.Context) error {
	// What was carried is in the index; of what was there before some may wait.
	w := t.newWalk(tree.New(indexPages{t.to.idx, nil}, uncached), tree.New(t.to.committed(), uncached))
	w.whole = true
	var done int64
	w.report = func() { t.report("verify", w.pageBytes+done, t.found.pageBytes+t.found.total) }
	err := w.run(ctx)
	if err == nil {
		err = w.payloads(ctx, &done)
	}
	if err != nil {
		return fmt.Errorf("verify the copy: %w", err)
	}
	return nil
}

// payloads verifies those that the walk found, and counts their bytes.
func (w *transferWalk) payloads(ctx context.Context, done *int64) error {
	var (
		seen reach.AddressSet
		mu   sync.Mutex // guards done and the report
	)
	return gather.Each(ctx, runtime.GOMAXPROCS(0), len(w.leaves), func(ctx context.Context, i int) error {
		n, size, err := w.verifyLeaf(ctx, w.leaves[i], &seen)
		mu.Lock()
		defer mu.Unlock()
		w.t.r.Verified += n
		*done += size
		w.report()
		return err
	})
}

// verifyLeaf verifies the payloads that a page names and which were not seen.
func (w *transferWalk) verifyLeaf(ctx context.Context, leaf tree.Root, seen *reach.AddressSet) (n, size int64, err error) {
	err = w.from.Open(ctx, leaf.Place(), func(tree.Place) error { return nil }, func(e tree.Entry) error {
		v := e.Value
		if v.Kind != tree.KindNative || !w.needs(addressOf(v)) || !seen.Add(addressOf(v)) {
			return nil
		}
		n++
		size += int64(v.Length)
		return w.t.to.packs.Verify(ctx, addressOf(v), func(b []byte) error {
			if sum := digest.Of(b); sum != v.Sum {
				return corrupt("pack %v at %d: payload hashes to %v, not %v", addressOf(v).Pack, v.Offset, sum, v.Sum)
			}
			return nil
		})
	})
	return n, size, err
}

// needs reports whether a payload is among those that the walk found.
func (w *transferWalk) needs(a pack.Address) bool {
	list := w.need[a.Pack]
	i, _ := slices.BinarySearchFunc(list, a.Offset, func(e pack.Extent, off uint64) int {
		if e.To < off || e.To == off && e.From < off {
			return -1
		}
		return 1
	})
	return i < len(list) && (list[i].From < a.Offset+a.Length || list[i].From <= a.Offset)
}
