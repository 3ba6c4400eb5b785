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

	"github.com/cockroachdb/datadriven"
)

// TestMergeHistories runs the histories in testdata/merge. Commands:
//
//	base, ours, theirs   changes, one a line; ours and theirs begin from base
//	merge [strict] [nobase] [guard=(path…)] [choose=(path:ours|theirs…)]
//	root                 the keys of the last of base, ours, theirs
//
// Changes: "put KEY VALUE…", "native KEY VALUE…" (each at an address of its own), "del KEY", "delprefix PREFIX", "move FROM TO",
// "copy FROM TO"; puts and dels that follow each other are one apply. A merge
// prints the conflicts, or the keys of the result with the identities of arrays
// as they were numbered when first seen. It is run both ways round; with nobase as
// if both sides had what is in the base from elsewhere.
func TestMergeHistories(t *testing.T) {
	datadriven.Walk(t, "testdata/merge", func(t *testing.T, path string) {
		h := &mergeHistory{toySpace: newToySpace(2), t: t, ids: map[[16]byte]string{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			h.t = t
			return h.run(d)
		})
	})
}

type mergeHistory struct {
	toySpace
	t       *testing.T
	r       sides
	last    int
	address uint64
	ids     map[[16]byte]string
}

func (h *mergeHistory) run(d *datadriven.TestData) string {
	switch d.Cmd {
	case "base":
		h.last = sideBase
		h.r[sideBase] = h.change(tree.Root{}, d.Input)
		h.r[sideOurs], h.r[sideTheirs] = h.r[sideBase], h.r[sideBase]
	case "ours":
		h.last = sideOurs
		h.r[sideOurs] = h.change(h.r[sideBase], d.Input)
	case "theirs":
		h.last = sideTheirs
		h.r[sideTheirs] = h.change(h.r[sideBase], d.Input)
	case "root":
		return h.print(h.r[h.last])
	case "merge":
		return h.merged(d)
	default:
		h.t.Fatalf("unknown command %q", d.Cmd)
	}
	return ""
}

func (h *mergeHistory) change(root tree.Root, script string) tree.Root {
	ctx := context.Background()
	batch := map[string]Edit{}
	flush := func() {
		edits := slices.SortedFunc(maps.Values(batch), func(a, b Edit) int { return strings.Compare(a.Key, b.Key) })
		root = h.mustApply(h.t, root, edits)
		clear(batch)
	}
	for _, line := range strings.Split(script, "\n") {
		f := strings.Fields(line)
		var err error
		switch {
		case len(f) == 0:
		case f[0] == "put":
			batch[f[1]] = Edit{Key: f[1], Value: inline(strings.Join(f[2:], " "))}
		case f[0] == "native":
			h.address++
			batch[f[1]] = Edit{Key: f[1], Value: h.packs.native(strings.Join(f[2:], " "), h.address)}
		case f[0] == "del":
			batch[f[1]] = Edit{Key: f[1], Delete: true}
		case f[0] == "flush":
			flush()
		case f[0] == "delprefix":
			flush()
			root, err = h.DeletePrefix(ctx, root, f[1])
		case f[0] == "move":
			flush()
			root, err = h.Move(ctx, root, f[1], f[2])
		case f[0] == "copy":
			flush()
			root, err = h.Copy(ctx, root, root, f[1], f[2], h.NewID)
		default:
			h.t.Fatalf("unknown change %q", line)
		}
		if err != nil {
			h.t.Fatalf("%s: %v", line, err)
		}
	}
	flush()
	return root
}

func (h *mergeHistory) merged(d *datadriven.TestData) string {
	ctx := context.Background()
	o := MergeOptions{}
	var rules []PathChoice
	base := h.r[sideBase]
	for _, arg := range d.CmdArgs {
		o.Strict = o.Strict || arg.Key == "strict"
		if arg.Key == "nobase" {
			base = tree.Root{}
		}
		for _, v := range arg.Vals {
			switch arg.Key {
			case "guard":
				o.Guards = append(o.Guards, v)
			case "choose":
				path, side, _ := strings.Cut(v, ":")
				rules = append(rules, PathChoice{path, map[string]Choice{"ours": Ours, "theirs": Theirs}[side]})
			case "limit":
				fmt.Sscan(v, &o.Limit)
			}
		}
	}
	if len(rules) > 0 {
		o.Choose = ChooseByPath(rules...)
	}
	root, conflicts, err := h.Merge(ctx, base, h.r[sideOurs], h.r[sideTheirs], o)
	if err != nil {
		h.t.Fatal(err)
	}
	var b strings.Builder
	for _, c := range conflicts {
		fmt.Fprintf(&b, "%v", c)
		if c.Coords != nil {
			fmt.Fprintf(&b, " %v", c.Coords)
		}
		b.WriteByte('\n')
	}
	if len(conflicts) == 0 {
		if err := h.Verify(ctx, root); err != nil {
			h.t.Fatal(err)
		}
		b.WriteString(h.print(root))
	}
	if len(o.Guards) == 0 && o.Choose == nil && o.Limit == 0 {
		h.mirrored(base, root, conflicts, o)
	}
	return b.String()
}

// mirrored merges the other way round: the same conflicts or the same content.
func (h *mergeHistory) mirrored(base, root tree.Root, conflicts []Conflict, o MergeOptions) {
	h.t.Helper()
	back, cs, err := h.Merge(context.Background(), base, h.r[sideTheirs], h.r[sideOurs], o)
	if err != nil {
		h.t.Fatal(err)
	}
	if len(cs) != len(conflicts) {
		h.t.Fatalf("mirrored: conflicts %v, not %v", cs, conflicts)
	}
	for i := range cs {
		if cs[i].Kind != conflicts[i].Kind || cs[i].Path != conflicts[i].Path || cs[i].Field != conflicts[i].Field {
			h.t.Fatalf("mirrored: conflict %+v, not %+v", cs[i], conflicts[i])
		}
	}
	if len(cs) == 0 {
		a, b := h.model(h.t, root), h.model(h.t, back)
		if !maps.EqualFunc(a, b, func(a, b tree.Value) bool { return SameBytes(&a, &b) }) {
			h.t.Fatalf("mirrored: %q, not %q", b.keys(""), a.keys(""))
		}
	}
}

// print lists the keys of a root with their values, and its arrays.
func (h *mergeHistory) print(root tree.Root) string {
	ctx := context.Background()
	var b strings.Builder
	for key, err := range h.List(ctx, root, "", "") {
		if err != nil {
			h.t.Fatal(err)
		}
		v, _, err := h.Get(ctx, root, key)
		if err != nil {
			h.t.Fatal(err)
		}
		doc, err := h.load(ctx, v)
		if err != nil {
			h.t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s = %s\n", key, doc)
	}
	err := h.changedDirs(ctx, "", tree.Root{}, root, func(path string, _, info *dirInfo) error {
		if info.hasID {
			if h.ids[info.id] == "" {
				h.ids[info.id] = fmt.Sprintf("#%d", len(h.ids)+1)
			}
			fmt.Fprintf(&b, "array %s: %s\n", NodePath(path), h.ids[info.id])
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

// bruteMerge merges plain maps. The conflicts are the keys that both changed
// to different bytes; if strict, those that both changed and not both removed.
func bruteMerge(base, ours, theirs toyModel, strict bool) (merged toyModel, conflicts []string) {
	merged = toyModel{}
	all := maps.Clone(base)
	maps.Copy(all, ours)
	maps.Copy(all, theirs)
	for k := range all {
		get := func(m toyModel) *tree.Value {
			if v, ok := m[k]; ok {
				return &v
			}
			return nil
		}
		b, o, th := get(base), get(ours), get(theirs)
		v := o
		if !SameBytes(b, th) {
			v = th
			if !SameBytes(b, o) && (!SameBytes(o, th) || strict && o != nil) {
				conflicts = append(conflicts, k)
				continue
			}
		}
		if v != nil {
			merged[k] = *v
		}
	}
	slices.Sort(conflicts)
	return merged, conflicts
}

// TestMergeModel merges random histories. Without changes of node documents a
// merge is that of plain maps exactly. With them it may refuse more, but never
// lose or invent a key.
func TestMergeModel(t *testing.T) {
	rnd, seed := toy.Rand(t)
	runs := 200
	if testing.Short() {
		runs = 50
	}
	merges, clean := 0, 0
	for run := range runs {
		structure, o := run%2 == 1, MergeOptions{Strict: run%4 >= 2}
		h := &history{toySpace: newToySpace(seed + uint64(run)/2), t: t, rnd: rnd, want: toyModel{}}
		for range 1 + rnd.IntN(4) {
			h.apply(h.edits(20, true))
		}
		base, want := h.root, maps.Clone(h.want)
		branch := func() (tree.Root, toyModel) {
			h.logf("--- branch")
			h.root, h.want = base, maps.Clone(want)
			for range 1 + rnd.IntN(3) {
				edits := h.edits(1+rnd.IntN(8), structure)
				edits = slices.DeleteFunc(edits, func(e Edit) bool {
					_, name := SplitKey(e.Key)
					return !structure && h.IsNode(name)
				})
				h.apply(edits)
			}
			return h.root, h.want
		}
		ours, oursModel := branch()
		theirs, theirsModel := branch()
		h.logf("--- merge %+v", o)
		root, conflicts, err := h.Merge(context.Background(), base, ours, theirs, o)
		if err != nil {
			h.fatalf("merge: %v", err)
		}
		merges++
		merged, keys := bruteMerge(want, oursModel, theirsModel, o.Strict)
		if !structure {
			var got []string
			for _, c := range conflicts {
				_, inOurs := oursModel[c.Path]
				_, inTheirs := theirsModel[c.Path]
				if o.Strict && !inOurs && !inTheirs && (c.Kind == ConflictChunk || c.Kind == ConflictDocument && c.Same) {
					continue // a chunk, or a document beside the metadata of an array, removed by both; plain maps know no arrays
				}
				got = append(got, c.Path)
			}
			if !slices.Equal(got, keys) {
				h.fatalf("conflicts %q, want %q", conflicts, keys)
			}
		}
		back, mirrored, err := h.Merge(context.Background(), base, theirs, ours, o)
		if err != nil {
			h.fatalf("merge mirrored: %v", err)
		}
		if !slices.EqualFunc(conflicts, mirrored, func(a, b Conflict) bool { return a.Kind == b.Kind && a.Path == b.Path && a.Field == b.Field }) {
			h.fatalf("conflicts %v, mirrored %v", conflicts, mirrored)
		}
		if len(conflicts) > 0 {
			continue
		}
		if a, b := h.model(t, root), h.model(t, back); !maps.EqualFunc(a, b, func(a, b tree.Value) bool { return SameBytes(&a, &b) }) {
			h.fatalf("merged %q, mirrored %q", a.keys(""), b.keys(""))
		}
		clean++
		h.root, h.want = root, merged
		for _, k := range keys {
			if _, name := SplitKey(k); !h.IsNode(name) {
				h.fatalf("no conflict at %q", k)
			}
			delete(merged, k) // merged by fields
		}
		for k, v := range h.model(t, root) {
			// Of equal bytes at two addresses either may be taken.
			if want, ok := merged[k]; ok && SameBytes(&v, &want) || slices.Contains(keys, k) {
				merged[k] = v
			}
		}
		h.check()
		h.checkCanonical()
	}
	t.Logf("%d merges, %d without conflict", merges, clean)
	if clean < merges/10 {
		t.Errorf("only %d of %d merges without conflict", clean, merges)
	}
}
