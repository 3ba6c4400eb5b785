package namespace

import (
	"context"
	"maps"
	"testing"

	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/toy"
)

// TestPointEditsAreMerges: where edits are made on another head one by one, a
// merge gives the same root without a conflict.
func TestPointEditsAreMerges(t *testing.T) {
	rnd, seed := toy.Rand(t)
	runs := 400
	if testing.Short() {
		runs = 150
	}
	ctx := context.Background()
	plain := 0
	for run := range runs {
		h := &history{toySpace: newToySpace(seed + uint64(run)), t: t, rnd: rnd, want: toyModel{}}
		for range 1 + rnd.IntN(3) {
			h.apply(h.edits(20, true))
		}
		base, want := h.root, maps.Clone(h.want)
		for range rnd.IntN(3) {
			if rnd.IntN(3) == 0 {
				h.step()
			} else {
				h.apply(h.edits(1+rnd.IntN(5), rnd.IntN(3) == 0))
			}
		}
		head := h.root
		h.logf("--- theirs")
		edits := h.edits(1+rnd.IntN(4), rnd.IntN(8) == 0)
		h.root, h.want = base, want
		h.apply(edits)
		root, ok, err := h.ApplyOnto(ctx, base, head, edits)
		if err != nil {
			h.fatalf("onto: %v", err)
		}
		if !ok {
			continue
		}
		plain++
		merged, conflicts, err := h.Merge(ctx, base, head, h.root, MergeOptions{Strict: true})
		if err != nil || len(conflicts) > 0 {
			h.fatalf("merge: %v, %v", conflicts, err)
		}
		if !sameRoots(h, root, merged) {
			h.fatalf("point by point %+v, merged %+v", root, merged)
		}
	}
	t.Logf("%d of %d point by point", plain, runs)
	if plain < runs/5 {
		t.Errorf("only %d of %d were made point by point", plain, runs)
	}
}

// sameRoots reports whether two roots hold the same bytes under the same keys
// and the same arrays. Of equal bytes at two addresses either may be there, so
// the roots themselves may differ.
func sameRoots(h *history, a, b tree.Root) bool {
	ma, mb := h.model(h.t, a), h.model(h.t, b)
	same := func(x, y tree.Value) bool { return SameBytes(&x, &y) }
	if !maps.EqualFunc(ma, mb, same) {
		return false
	}
	arrays := func(root tree.Root) map[string][16]byte {
		ids := map[string][16]byte{}
		err := h.changedDirs(context.Background(), "", tree.Root{}, root, func(path string, _, info *dirInfo) error {
			if info.hasID {
				ids[path] = info.id
			}
			return nil
		})
		if err != nil {
			h.fatalf("walk: %v", err)
		}
		return ids
	}
	return maps.Equal(arrays(a), arrays(b))
}
