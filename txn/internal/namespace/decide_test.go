package namespace

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/txn/internal/toy"
)

// TestMergesAreDecided merges histories of groups and arrays that both sides move, change,
// remove and add to, and decides the conflicts by the paths that they name.
func TestMergesAreDecided(t *testing.T) {
	rnd, seed := toy.Rand(t)
	runs := 600
	if testing.Short() {
		runs = 60
	}
	ctx := context.Background()
	met := map[ConflictKind]int{}
	for run := range runs {
		h := &history{toySpace: newToySpace(seed + uint64(run)), t: t, rnd: rnd, want: toyModel{}}
		h.apply(h.groupsOfArrays())
		base, baseModel := h.root, maps.Clone(h.want)
		side := func(parity int) {
			h.logf("--- side")
			h.root, h.want = base, maps.Clone(baseModel)
			for range 1 + rnd.IntN(4) {
				h.nodeStep(parity)
			}
		}
		side(0)
		ours := h.root
		side(1)
		theirs := h.root
		o := MergeOptions{Strict: run%2 == 1}
		_, conflicts, err := h.Merge(ctx, base, ours, theirs, o)
		if err != nil {
			h.fatalf("merge: %v", err)
		}
		for _, c := range conflicts {
			met[c.Kind]++
		}
		if len(conflicts) > 0 {
			h.decided(base, ours, theirs, o, conflicts)
		}
	}
	t.Logf("conflicts: %v", met)
	if len(met) < 6 && !testing.Short() {
		t.Errorf("only conflicts of the kinds %v", met)
	}
}

// nodeStep changes nodes as programs do.
func (h *history) nodeStep(parity int) {
	h.t.Helper()
	var arrays, groups []string
	for _, path := range h.arrayPaths() {
		arrays = append(arrays, path)
	}
	for k := range h.want {
		if dir, name := SplitKey(k); name == "zarr.json" && h.IsNode(name) && string(h.want[k].Inline[:5]) == "group" {
			groups = append(groups, NodePath(dir))
		}
	}
	slices.Sort(arrays)
	slices.Sort(groups)
	if len(arrays) == 0 || len(groups) == 0 {
		return
	}
	array, group := h.pick(arrays), h.pick(groups)
	remove := func(path string) {
		var edits []Edit
		for _, k := range h.want.keys(path + "/") {
			edits = append(edits, Edit{Key: k, Delete: true})
		}
		h.apply(edits)
	}
	put := func(key, doc string) { h.apply([]Edit{{Key: key, Value: inline(doc)}}) }
	n := h.rnd.IntN(2)
	switch h.rnd.IntN(12) {
	case 0, 1, 2:
		h.moveNodes()
	case 3:
		remove(array)
	case 4:
		remove(group)
	case 5:
		put(fmt.Sprintf("%s/new%d/zarr.json", group, n), fmt.Sprintf("array f=c/:/:1 k=%d g=99", parity))
	case 6:
		put(group+"/zarr.json", fmt.Sprintf("group u=%d", h.rnd.IntN(3)))
	case 7:
		put(array+"/zarr.json", fmt.Sprintf("array f=c/:/:1 k=%s g=%d v=%d", []string{"x", "y"}[n], 2+h.rnd.IntN(9), parity))
	case 8:
		put(fmt.Sprintf("%s/doc%d", group, n), fmt.Sprint(parity))
	case 9:
		h.apply(h.chunkEdits([]string{array}, h.rnd.IntN(2)))
	case 10, 11: // often the same array
		h.apply(h.chunkEdits(arrays[:1], 0))
	}
}
