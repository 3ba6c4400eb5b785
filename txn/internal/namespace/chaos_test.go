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
	clean, decided, arrays := 0, 0, 0
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
			// Here arrays are in arrays, and their keys are those of others: the choices
			// must leave a namespace in order.
			for _, side := range []Choice{Ours, Theirs} {
				o := MergeOptions{Strict: strict, Choose: func(Conflict) Choice { return side }}
				root, conflicts, err := h.Merge(ctx, base, ours, theirs, o)
				if err != nil {
					h.fatalf("merge, %v chosen: %v", side, err)
				}
				if len(conflicts) == 0 {
					if err := h.Verify(ctx, root); err != nil {
						h.fatalf("verify, %v chosen: %v", side, err)
					}
					decided++
				}
			}
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
	t.Logf("%d merges, %d without conflict, %d decided one way, %d arrays", runs, clean, decided, arrays)
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

// decided decides the conflicts of a merge by the paths that they name. Every conflict
// must be decided so, the result must be the same both ways round, and what a side left
// alone must be as the other side has it.
func (h *history) decided(base, ours, theirs tree.Root, o MergeOptions, conflicts []Conflict) {
	h.t.Helper()
	ctx := context.Background()
	for _, mixed := range []bool{false, true} {
		side := Ours + Choice(h.rnd.IntN(2))
		rules, cs := map[string]Choice{}, conflicts
		var root tree.Root
		var err error
		choose := func(swap bool) func(Conflict) Choice {
			var list []PathChoice
			for p, c := range rules {
				if swap {
					c = Ours + Theirs - c
				}
				list = append(list, PathChoice{p, c})
			}
			slices.SortFunc(list, func(a, b PathChoice) int { return strings.Compare(a.Path, b.Path) })
			return ChooseByPath(list...)
		}
		for len(cs) > 0 {
			before := len(rules)
			for _, c := range cs {
				if _, ok := rules[c.Path]; !ok {
					if rules[c.Path] = side; mixed {
						rules[c.Path] = Ours + Choice(h.rnd.IntN(2))
					}
				}
			}
			if len(rules) == before {
				if mixed {
					break // choices that contradict each other
				}
				h.fatalf("conflicts %v stay with %v", cs, rules)
			}
			o.Choose = choose(false)
			if root, cs, err = h.Merge(ctx, base, ours, theirs, o); err != nil {
				h.fatalf("merge with %v: %v", rules, err)
			}
		}
		o.Choose = choose(true)
		back, mirrored, err := h.Merge(ctx, base, theirs, ours, o)
		if err != nil {
			h.fatalf("mirrored with %v: %v", rules, err)
		}
		if len(cs) > 0 || mixed && len(mirrored) > 0 { // where choices contradict, the first one met decides
			continue
		}
		if len(mirrored) > 0 {
			h.fatalf("mirrored with %v: %v", rules, mirrored)
		}
		if err := h.Verify(ctx, root); err != nil {
			h.fatalf("verify with %v: %v", rules, err)
		}
		same := func(a, b toyModel) bool {
			return maps.EqualFunc(a, b, func(a, b tree.Value) bool { return SameBytes(&a, &b) })
		}
		if a, b := h.model(h.t, root), h.model(h.t, back); !same(a, b) {
			h.fatalf("with %v: merged %q, mirrored %q", rules, a.keys(""), b.keys(""))
		}
		h.untouched(base, ours, theirs, root, rules)
		h.untouched(base, theirs, ours, root, rules)
	}
}

// untouched makes sure that arrays which one side left alone are what the other made of
// them: nothing is lost, and nothing comes back.
func (h *history) untouched(base, side, other, merged tree.Root, rules map[string]Choice) {
	h.t.Helper()
	b, inBase := h.byArray(base)
	s, inSide := h.byArray(side)
	o, _ := h.byArray(other)
	m, inMerged := h.byArray(merged)
	same := func(a, b toyModel) bool {
		return maps.EqualFunc(a, b, func(a, b tree.Value) bool { return SameBytes(&a, &b) })
	}
	for id, was := range b {
		if was == nil || s[id] == nil || inSide[id] != inBase[id] || !same(was, s[id]) {
			continue
		}
		theirs, kept := o[id]
		now, is := m[id]
		if kept && !is {
			h.fatalf("with %v: array %q, left alone by one side, is lost", rules, inBase[id])
		}
		if !kept && is {
			h.fatalf("with %v: array %q, left alone by one side, is back at %q", rules, inBase[id], inMerged[id])
		}
		if kept && theirs != nil && now != nil && !same(theirs, now) {
			h.fatalf("with %v: array %q has %q, want %q", rules, inMerged[id], now.keys(""), theirs.keys(""))
		}
	}
	for id := range m {
		if _, ok := s[id]; !ok {
			if _, ok := o[id]; !ok {
				h.fatalf("with %v: array %q is from nowhere", rules, inMerged[id])
			}
		}
	}
}
