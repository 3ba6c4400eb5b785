package namespace

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/toy"
)

// TestMergeFollowsRenames: one side moves arrays and groups about, the other
// changes chunks and attributes. Each change must arrive where its array is
// now.
func TestMergeFollowsRenames(t *testing.T) {
	rnd, seed := toy.Rand(t)
	runs := 60
	if testing.Short() {
		runs = 20
	}
	followed := 0
	for run := 0; run < runs || followed == 0; run++ { // few moves meet a change
		h := &history{toySpace: newToySpace(seed + uint64(run)), t: t, rnd: rnd, want: toyModel{}}
		ctx := context.Background()
		h.apply(h.groupsOfArrays())
		base, baseModel, arrays := h.root, maps.Clone(h.want), h.arrayPaths()

		// Ours: moves, then chunks with even numbers.
		for range 1 + rnd.IntN(4) {
			h.moveNodes()
		}
		now := h.arrayPaths()
		h.apply(h.chunkEdits(slices.Collect(maps.Values(now)), 0))
		ours, oursModel := h.root, h.want

		// Theirs: chunks with odd numbers, and attributes.
		h.root, h.want = base, maps.Clone(baseModel)
		theirEdits := h.chunkEdits(slices.Collect(maps.Values(arrays)), 1)
		h.logf("--- theirs")
		h.apply(theirEdits)
		theirs := h.root

		want := maps.Clone(oursModel)
		byPath := map[string][16]byte{}
		for id, path := range arrays {
			byPath[path] = id
		}
		for _, e := range theirEdits {
			i := strings.Index(e.Key, "/") + 1
			i += strings.IndexByte(e.Key[i:], '/')
			key := now[byPath[e.Key[:i]]] + e.Key[i:]
			if e.Key[:i] != now[byPath[e.Key[:i]]] {
				followed++
			}
			if e.Delete {
				delete(want, key)
			} else {
				want[key] = e.Value
			}
		}
		for _, mirrored := range []bool{false, true} {
			a, b := ours, theirs
			if mirrored {
				a, b = b, a
			}
			root, conflicts, err := h.Merge(ctx, base, a, b, MergeOptions{})
			if err != nil || len(conflicts) > 0 {
				h.fatalf("merge: %v %v", conflicts, err)
			}
			h.root, h.want = root, want
			h.check()
			for id, path := range now {
				if got, ok, err := h.Identity(ctx, root, path); err != nil || !ok || got != id {
					h.fatalf("identity of %q: %x %v %v, want %x", path, got, ok, err, id)
				}
			}
		}
		var want2 []rename
		for id, from := range arrays {
			if to := now[id]; to != from {
				want2 = append(want2, rename{id, from, to})
			}
		}
		slices.SortFunc(want2, func(a, b rename) int { return strings.Compare(a.From, b.From) })
		if got, err := h.Renames(ctx, base, ours); err != nil || !slices.Equal(got, want2) {
			h.fatalf("renames %v %v, want %v", got, err, want2)
		}
	}
	t.Logf("%d changes followed", followed)
}

// groupsOfArrays makes a few of them, with three chunks each.
func (h *history) groupsOfArrays() (edits []Edit) {
	for g := range 2 + h.rnd.IntN(3) {
		group := fmt.Sprintf("g%d", g)
		edits = append(edits, Edit{Key: group + "/zarr.json", Value: inline("group")})
		for a := range 1 + h.rnd.IntN(3) {
			path := fmt.Sprintf("%s/a%d", group, a)
			edits = append(edits, Edit{Key: path + "/zarr.json", Value: inline("array f=c/:/:1 k=x g=99")})
			for c := range 3 {
				edits = append(edits, Edit{Key: fmt.Sprintf("%s/c/%d", path, c), Value: h.value()})
			}
		}
	}
	slices.SortFunc(edits, func(a, b Edit) int { return strings.Compare(a.Key, b.Key) })
	return edits
}

// arrayPaths returns where each array is.
func (h *history) arrayPaths() map[[16]byte]string {
	h.t.Helper()
	paths := map[[16]byte]string{}
	err := h.changedDirs(context.Background(), "", tree.Root{}, h.root, func(path string, _, info *dirInfo) error {
		if info.hasID {
			paths[info.id] = NodePath(path)
		}
		return nil
	})
	if err != nil {
		h.fatalf("walk: %v", err)
	}
	return paths
}

// moveNodes moves an array or group to a place that may be taken.
func (h *history) moveNodes() {
	h.t.Helper()
	node := func() string {
		switch h.rnd.IntN(4) {
		case 0:
			return fmt.Sprintf("g%d", h.rnd.IntN(6))
		case 1:
			return fmt.Sprintf("g%d/a%d", h.rnd.IntN(4), h.rnd.IntN(6))
		case 2:
			return fmt.Sprintf("g%d/g%d/a%d", h.rnd.IntN(4), h.rnd.IntN(2), h.rnd.IntN(2))
		}
		return fmt.Sprintf("a%d", h.rnd.IntN(3))
	}
	from, to := node(), node()
	root, err := h.Move(context.Background(), h.root, from, to)
	if err != nil {
		return // nothing there, or taken
	}
	h.logf("move %q %q", from, to)
	want := toyModel{}
	for k, v := range h.want {
		if rest, ok := strings.CutPrefix(k, from+"/"); ok {
			k = to + "/" + rest
		}
		want[k] = v
	}
	h.root, h.want = root, want
}

// chunkEdits changes chunks of arrays whose numbers have a parity; with parity
// 1 attributes too.
func (h *history) chunkEdits(arrays []string, parity int) []Edit {
	set := map[string]Edit{}
	for range 1 + h.rnd.IntN(6) {
		path := h.pick(arrays)
		key := fmt.Sprintf("%s/c/%d", path, 2*h.rnd.IntN(6)+parity)
		set[key] = Edit{Key: key, Value: h.value(), Delete: h.rnd.IntN(4) == 0}
		if parity == 1 && h.rnd.IntN(3) == 0 {
			key = path + "/zarr.json"
			set[key] = Edit{Key: key, Value: inline(fmt.Sprintf("array f=c/:/:1 k=x g=99 attr=%d", h.rnd.IntN(9)))}
		}
	}
	return slices.SortedFunc(maps.Values(set), func(a, b Edit) int { return strings.Compare(a.Key, b.Key) })
}
