package namespace

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/toy"
)

// byArray returns what is below each array, with keys relative to it; nil for
// arrays with others inside and for those. at is where they are.
func (h *history) byArray(root tree.Root) (out map[[16]byte]toyModel, at map[[16]byte]string) {
	h.t.Helper()
	out, at = map[[16]byte]toyModel{}, map[[16]byte]string{}
	paths := map[string][16]byte{}
	err := h.changedDirs(context.Background(), "", tree.Root{}, root, func(path string, _, info *dirInfo) error {
		if !info.hasID {
			return nil
		}
		out[info.id], at[info.id] = toyModel{}, path
		for outer, id := range paths {
			if strings.HasPrefix(path, outer) {
				out[id], out[info.id] = nil, nil
			}
		}
		if paths[path] = info.id; out[info.id] == nil {
			return nil
		}
		for it, err := range h.Scan(context.Background(), root, path) {
			if err != nil {
				return err
			}
			out[info.id][it.Key[len(path):]] = it.Value
		}
		return nil
	})
	if err != nil {
		h.fatalf("walk: %v", err)
	}
	return out, at
}

// TestMergeChaos merges histories of everything there is: puts, erasures, moves
// and copies. A merge without conflict must leave a namespace in order, be the
// same both ways round, and have for every array that all three have just what
// a plain merge of its own keys gives, wherever it is now, and what one side put
// where the other moved it to.
func TestMergeChaos(t *testing.T) {
	rnd, seed := toy.Rand(t)
	runs := 300
	if testing.Short() {
		runs = 40
	}
	ctx := context.Background()
	clean, arrays := 0, 0
	for run := range runs {
		h := &history{toySpace: newToySpace(seed + uint64(run)), t: t, rnd: rnd, want: toyModel{}}
		for range 3 {
			h.apply(h.edits(20, true))
		}
		base, baseModel := h.root, h.want
		branch := func() tree.Root {
			h.logf("--- branch")
			h.root, h.want = base, maps.Clone(baseModel)
			for range 1 + rnd.IntN(4) {
				h.step()
			}
			return h.root
		}
		ours, theirs, strict := branch(), branch(), run%2 == 1
		root, conflicts, err := h.Merge(ctx, base, ours, theirs, MergeOptions{Strict: strict})
		if err != nil {
			h.fatalf("merge: %v", err)
		}
		back, mirrored, err := h.Merge(ctx, base, theirs, ours, MergeOptions{Strict: strict})
		if err != nil {
			h.fatalf("merge mirrored: %v", err)
		}
		if !slices.EqualFunc(conflicts, mirrored, func(a, b Conflict) bool { return a.Kind == b.Kind && a.Path == b.Path && a.Field == b.Field }) {
			h.fatalf("conflicts %v, mirrored %v", conflicts, mirrored)
		}
		if len(conflicts) > 0 {
			continue
		}
		clean++
		same := func(a, b toyModel) bool {
			return maps.EqualFunc(a, b, func(a, b tree.Value) bool { return SameBytes(&a, &b) })
		}
		if a, b := h.model(t, root), h.model(t, back); !same(a, b) {
			h.fatalf("merged %q, mirrored %q", a.keys(""), b.keys(""))
		}
		if err := h.Verify(ctx, root); err != nil {
			h.fatalf("verify: %v", err)
		}
		b, _ := h.byArray(base)
		o, inOurs := h.byArray(ours)
		th, inTheirs := h.byArray(theirs)
		m, inMerged := h.byArray(root)
		before, oursModel, theirsModel := h.model(t, base), h.model(t, ours), h.model(t, theirs)
		for id := range b {
			if b[id] == nil || o[id] == nil || th[id] == nil {
				continue
			}
			arrays++
			want, both := bruteMerge(b[id], o[id], th[id], strict)
			if _, ok := m[id]; !ok {
				h.fatalf("array %x is lost", id)
			} else if m[id] == nil {
				continue
			}
			path := inMerged[id]
			if inOurs[id] != path {
				addPut(want, before, oursModel, path)
			}
			if inTheirs[id] != path {
				addPut(want, before, theirsModel, path)
			}
			for _, key := range both {
				if !h.IsNode(key) {
					h.fatalf("array %x, strict %v: no conflict at %q", id, strict, key)
				}
				want[key] = m[id][key] // a document merged by fields
			}
			if !same(m[id], want) {
				h.fatalf("array %x has %q, want %q", id, m[id].keys(""), want.keys(""))
			}
		}
		for id := range m {
			_, ours := o[id]
			if _, theirs := th[id]; !ours && !theirs {
				h.fatalf("array %x is from nowhere", id)
			}
		}
	}
	t.Logf("%d merges, %d without conflict, %d arrays", runs, clean, arrays)
	if clean < runs/10 || arrays == 0 {
		t.Errorf("of %d merges %d are without conflict, with %d arrays", runs, clean, arrays)
	}
}

// addPut adds to what is below a path what a side has there and the base has not.
func addPut(want, base, side toyModel, path string) {
	for _, key := range side.keys(path) {
		rel := key[len(path):]
		_, was := base[key]
		if _, ok := want[rel]; !ok && !was {
			want[rel] = side[key]
		}
	}
}
