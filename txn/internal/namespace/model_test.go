package namespace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn/internal/toy"
)

// history makes random changes to a root and to a plain map alike.
type history struct {
	toySpace
	t    *testing.T
	rnd  *rand.Rand
	root tree.Root
	want toyModel
	log  []string
}

var (
	toyNames = []string{"a", "b", "0", "1", "10", "2", "c", "c.0", "00", "0.0", "1.10", "10.2", "c0", "a-b", "", "a.b", "9223372036854775808"}
	toyDocs  = []string{
		"array f=c/:/:2 k=x g=9,9", "array f=:.:2 k=x g=9,9", "array f=:/:2", "array f=:/:1", "array f=:.:1 f=c/:/:1",
		"array f=c/:/:3 f=c.:.:2", "array k=y", "group", "broken", "array f=c:/:0 k=z", "f=:/:3", "array f=c1:/:2 f=:.:99",
	}
)

func (h *history) pick(from []string) string { return from[h.rnd.IntN(len(from))] }

func (h *history) path() string {
	parts := make([]string, 1+h.rnd.IntN(4))
	for i := range parts {
		parts[i] = h.pick(toyNames)
	}
	return strings.Join(parts, "/")
}

// key is mostly one that a form may spell, often one that exists.
func (h *history) key() string {
	if keys := h.want.keys(""); len(keys) > 0 && h.rnd.IntN(3) == 0 {
		return h.pick(keys)
	}
	if h.rnd.IntN(2) == 0 {
		return h.path()
	}
	dir := ""
	for range h.rnd.IntN(3) {
		dir += h.pick([]string{"a/", "b/", "0/", "1/", "c/"})
	}
	n := func() int { return h.rnd.IntN([]int{3, 12, 200}[h.rnd.IntN(3)]) }
	return dir + h.pick([]string{
		fmt.Sprintf("c/%d/%d", n(), n()), fmt.Sprintf("%d.%d", n(), n()), fmt.Sprintf("%d/%d", n(), n()),
		fmt.Sprint(n()), fmt.Sprintf("c/%d", n()), fmt.Sprintf("c/%d/%d/%d", n(), n(), n()), fmt.Sprintf("c.%d.%d", n(), n()),
	})
}

func (h *history) docKey() string {
	dir := ""
	for range h.rnd.IntN(3) {
		dir += h.pick([]string{"a/", "b/", "0/", "1/", "c/"})
	}
	return dir + h.pick([]string{".zarray", "zarr.json", ".zgroup"})
}

func (h *history) value() tree.Value {
	doc := fmt.Sprint("value ", h.rnd.IntN(50))
	switch h.rnd.IntN(4) {
	case 0:
		return h.packs.native(doc, h.rnd.Uint64N(100))
	case 1:
		return tree.Value{Kind: tree.KindVirtual, Source: tree.Source{URL: "file:///x"}, Offset: h.rnd.Uint64N(9), Length: 7}
	}
	return inline(doc)
}

func (h *history) edits(n int, docs bool) []Edit {
	set := map[string]Edit{}
	for range n {
		e := Edit{Key: h.key(), Value: h.value(), Delete: h.rnd.IntN(4) == 0}
		if docs && h.rnd.IntN(8) == 0 {
			e.Key, e.Value = h.docKey(), inline(h.pick(toyDocs))
			if h.rnd.IntN(5) == 0 {
				e.Value = h.packs.native(string(e.Value.Inline), 1)
			}
		}
		if e.Delete {
			e.Value = tree.Value{}
		}
		set[e.Key] = e
	}
	edits := slices.Collect(maps.Values(set))
	slices.SortFunc(edits, func(a, b Edit) int { return strings.Compare(a.Key, b.Key) })
	return edits
}

func (h *history) logf(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

func (h *history) fatalf(format string, args ...any) {
	h.t.Helper()
	h.t.Fatalf("%s\nhistory:\n%s", fmt.Sprintf(format, args...), strings.Join(h.log, "\n"))
}

func (h *history) apply(edits []Edit) {
	h.t.Helper()
	for _, e := range edits {
		if e.Delete {
			h.logf("del %q", e.Key)
			delete(h.want, e.Key)
		} else {
			h.logf("put %q %q", e.Key, e.Value.Inline)
			h.want[e.Key] = e.Value
		}
	}
	h.logf("apply")
	root, err := h.toySpace.Apply(context.Background(), h.root, edits)
	if err != nil {
		h.fatalf("apply: %v", err)
	}
	h.root = root
}

// step makes one random change.
func (h *history) step() {
	h.t.Helper()
	ctx := context.Background()
	var err error
	switch h.rnd.IntN(10) {
	case 0:
		prefix := h.key()
		prefix = prefix[:h.rnd.IntN(len(prefix)+1)]
		if prefix == "" && h.rnd.IntN(8) > 0 {
			return
		}
		h.logf("deletePrefix %q", prefix)
		if h.root, err = h.DeletePrefix(ctx, h.root, prefix); err != nil {
			h.fatalf("deletePrefix %q: %v", prefix, err)
		}
		maps.DeleteFunc(h.want, func(k string, _ tree.Value) bool { return strings.HasPrefix(k, prefix) })
	case 1, 2:
		h.moveOrCopy(true)
	case 3:
		h.moveOrCopy(false)
	case 4, 5:
		h.apply(h.edits(1, true))
	default:
		h.apply(h.edits(1+h.rnd.IntN(20), true))
	}
}

func (h *history) moveOrCopy(move bool) {
	h.t.Helper()
	ctx := context.Background()
	from, to := h.path(), h.path()
	if keys := h.want.keys(""); len(keys) > 0 && h.rnd.IntN(4) > 0 {
		from = h.pick(keys)
		if i := strings.LastIndexByte(from[:h.rnd.IntN(len(from)+1)], '/'); i > 0 {
			from = from[:i]
		}
	}
	if from == "" || to == "" { // the root is no node to move
		return
	}
	want := maps.Clone(h.want)
	var wantErr error
	moved := toyModel{}
	for k, v := range h.want {
		if rest, ok := strings.CutPrefix(k, from+"/"); ok {
			moved[to+"/"+rest] = v
		} else if k == from {
			moved[to] = v
		}
		if k == to || strings.HasPrefix(k, to+"/") {
			wantErr = ErrExists
		}
	}
	switch {
	case move && strings.HasPrefix(to, from+"/"):
		wantErr = kv.ErrInvalidKey
	case len(moved) == 0:
		wantErr = kv.ErrNotFound
	case move && from == to:
		wantErr = nil
	}
	var root tree.Root
	var err error
	if h.logf("move(%v) %q %q: %v", move, from, to, wantErr); move {
		root, err = h.Move(ctx, h.root, from, to)
		maps.DeleteFunc(want, func(k string, _ tree.Value) bool { return k == from || strings.HasPrefix(k, from+"/") })
	} else {
		root, err = h.Copy(ctx, h.root, h.root, from, to, h.NewID)
	}
	if !errors.Is(err, wantErr) || wantErr == nil && err != nil {
		h.fatalf("move(%v) %q to %q: %v, want %v", move, from, to, err, wantErr)
	}
	if err == nil {
		maps.Copy(want, moved)
		h.root, h.want = root, want
	}
}

// check compares the root with the plain map in every way there is.
func (h *history) check() {
	h.t.Helper()
	ctx := context.Background()
	if err := h.Verify(ctx, h.root); err != nil {
		h.fatalf("verify: %v", err)
	}
	got := h.model(h.t, h.root)
	for k, v := range h.want {
		if g, ok := got[k]; !ok || !g.Equal(&v) {
			h.fatalf("scan: %q is %+v %v, want %+v", k, g, ok, v)
		}
		if g, ok, err := h.Get(ctx, h.root, k); err != nil || !ok || !g.Equal(&v) {
			h.fatalf("get %q: %+v %v %v, want %+v", k, g, ok, err, v)
		}
	}
	if len(got) != len(h.want) {
		h.fatalf("scan: %d keys, want %d: %q", len(got), len(h.want), got.keys(""))
	}
	for range 5 {
		key := h.key()
		if _, ok, err := h.Get(ctx, h.root, key); err != nil || ok != hasKey(h.want, key) {
			h.fatalf("get %q: %v %v", key, ok, err)
		}
	}
	h.checkList("", "")
	for range 4 {
		prefix, after := h.key(), h.key()
		prefix = prefix[:h.rnd.IntN(len(prefix)+1)]
		if h.rnd.IntN(2) == 0 {
			after = prefix + after
		}
		h.checkList(prefix, after)
		h.checkList(prefix, "")
		dir, _ := SplitKey(prefix)
		h.checkListDir(dir)
	}
}

func hasKey(m toyModel, key string) bool { _, ok := m[key]; return ok }

func (h *history) checkList(prefix, after string) {
	h.t.Helper()
	ctx := context.Background()
	want := h.want.keys(prefix)
	any, err := h.Any(ctx, h.root, prefix)
	if err != nil || any != (len(want) > 0) {
		h.fatalf("any %q: %v %v, want %d keys", prefix, any, err, len(want))
	}
	scanned := 0
	for it, err := range h.Scan(ctx, h.root, prefix) {
		if err != nil || !strings.HasPrefix(it.Key, prefix) {
			h.fatalf("scan %q: %q %v", prefix, it.Key, err)
		}
		if v := h.want[it.Key]; !it.Value.Equal(&v) {
			h.fatalf("scan: %q is %+v, want %+v", it.Key, it.Value, v)
		}
		scanned++
	}
	if scanned != len(want) {
		h.fatalf("scan %q: %d keys, want %d", prefix, scanned, len(want))
	}
	if after != "" {
		want = slices.DeleteFunc(want, func(k string) bool { return k <= after })
	}
	var got []string
	for key, err := range h.List(ctx, h.root, prefix, after) {
		if err != nil {
			h.fatalf("list %q after %q: %v", prefix, after, err)
		}
		got = append(got, key)
	}
	if !slices.Equal(got, want) {
		h.fatalf("list %q after %q:\n got %q\nwant %q", prefix, after, got, want)
	}
}

func (h *history) checkListDir(dir string) {
	h.t.Helper()
	set := map[kv.DirEntry]bool{}
	for k := range h.want {
		if rest, ok := strings.CutPrefix(k, dir); ok {
			name, _, sub := strings.Cut(rest, "/")
			set[kv.DirEntry{Name: name, Prefix: sub}] = true
		}
	}
	want := slices.SortedFunc(maps.Keys(set), func(a, b kv.DirEntry) int {
		if a.Name == b.Name && a.Prefix != b.Prefix {
			if a.Prefix {
				return 1
			}
			return -1
		}
		return strings.Compare(a.Name, b.Name)
	})
	var got []kv.DirEntry
	for e, err := range h.ListDir(context.Background(), h.root, dir) {
		if err != nil {
			h.fatalf("listDir %q: %v", dir, err)
		}
		got = append(got, e)
	}
	if !slices.Equal(got, want) {
		h.fatalf("listDir %q:\n got %v\nwant %v", dir, got, want)
	}
}

// checkDiff compares diff with a comparison of plain maps.
func (h *history) checkDiff(a, b tree.Root, ma, mb toyModel, prefix string) {
	h.t.Helper()
	want := map[string]bool{}
	for _, m := range []toyModel{ma, mb} {
		for k := range m {
			va, ina := ma[k]
			vb, inb := mb[k]
			if strings.HasPrefix(k, prefix) && (ina != inb || !SameBytes(&va, &vb)) {
				want[k] = true
			}
		}
	}
	for it, err := range h.Diff(context.Background(), a, b, prefix) {
		if err != nil {
			h.fatalf("diff: %v", err)
		}
		if !want[it.Key] {
			h.fatalf("diff %q: %q is not a change or told twice", prefix, it.Key)
		}
		delete(want, it.Key)
		va, ina := ma[it.Key]
		vb, inb := mb[it.Key]
		if ina != (it.Old != nil) || inb != (it.New != nil) || ina && !SameBytes(&va, it.Old) || inb && !SameBytes(&vb, it.New) {
			h.fatalf("diff %q: %+v %+v, want %+v %+v", it.Key, it.Old, it.New, va, vb)
		}
	}
	if len(want) > 0 {
		h.fatalf("diff %q: missing %q", prefix, slices.Sorted(maps.Keys(want)))
	}
}

// checkCanonical builds the same content in another order: the root must be the
// same, if no form is there that only the history explains.
func (h *history) checkCanonical() {
	h.t.Helper()
	ctx := context.Background()
	stale := false
	ids := map[string][16]byte{}
	err := h.changedDirs(ctx, "", tree.Root{}, h.root, func(path string, _, info *dirInfo) error {
		for _, f := range info.forms {
			stale = stale || !info.names(f.Form)
		}
		if info.hasID {
			ids[path] = info.id
		}
		return nil
	})
	if err != nil {
		h.fatalf("walk: %v", err)
	}
	if stale {
		return
	}
	keys := h.want.keys("")
	h.rnd.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	var root tree.Root
	for len(keys) > 0 {
		n := 1 + h.rnd.IntN(len(keys))
		batch := slices.Clone(keys[:n])
		slices.Sort(batch)
		keys = keys[n:]
		var edits []Edit
		for _, k := range batch {
			edits = append(edits, Edit{Key: k, Value: h.want[k]})
		}
		root = h.mustApply(h.t, root, edits)
	}
	for path, id := range ids {
		info, dir, err := h.dirAt(ctx, root, path)
		if err != nil || info == nil {
			h.fatalf("canonical: directory %q: %v", path, err)
		}
		state := info.dirState
		state.id = id
		if edits := stateEdits(&info.dirState, &state); len(edits) > 0 {
			if dir, err = h.Space.Tree.Apply(ctx, dir, edits); err != nil {
				h.fatalf("canonical: %v", err)
			}
		}
		if root, err = h.setDir(ctx, root, path, dir); err != nil {
			h.fatalf("canonical: %v", err)
		}
	}
	if root != h.root {
		h.fatalf("not canonical: %+v, rebuilt %+v", h.root, root)
	}
}

func TestNamespaceModel(t *testing.T) {
	rnd, seed := toy.Rand(t)
	runs := 60
	if testing.Short() {
		runs = 20
	}
	for run := range runs {
		h := &history{toySpace: newToySpace(seed + uint64(run)), t: t, rnd: rnd, want: toyModel{}}
		var old tree.Root
		oldModel := toyModel{}
		for i := range 30 {
			h.step()
			if i%3 == 0 {
				h.check()
				h.checkCanonical()
				prefix := h.key()
				h.checkDiff(old, h.root, oldModel, h.want, prefix[:h.rnd.IntN(len(prefix)+1)])
				h.checkDiff(h.root, old, h.want, oldModel, "")
			}
			if h.rnd.IntN(5) == 0 {
				old, oldModel = h.root, maps.Clone(h.want)
			}
		}
	}
}

// TestHomes: what a change does to the homes of keys that it does not name.
// After each step every key must be at its home, with its value.
func TestHomes(t *testing.T) {
	const one, two, nested = "array f=:/:1", "array f=:/:2", "array f=c/:/:2"
	for _, c := range []struct {
		name  string
		steps []map[string]string
		move  [2]string
		homes map[string]string // key: directory and form of its home, "" for a document
	}{
		{"metadata after chunks", []map[string]string{{"a/c/0/1": "x", "a/c/0/01": "x", "a/c/9/9": "x"}, {"a/zarr.json": nested}}, [2]string{},
			map[string]string{"a/c/0/1": "a/ c/", "a/c/0/01": "", "a/c/9/9": "a/ c/"}},
		{"together", []map[string]string{{"a/zarr.json": nested, "a/c/0/1": "x", "a/c/x": "y"}}, [2]string{},
			map[string]string{"a/c/0/1": "a/ c/", "a/c/x": ""}},
		{"some below a new directory are documents", []map[string]string{{"a/zarr.json": nested},
			{"a/c/0/00": "x", "a/c/0/1": "x", "a/c/0/x": "y", "a/c/0/2": "x", "a/c/1/y": "z", "a/c/1/1": "x"}}, [2]string{},
			map[string]string{"a/c/0/1": "a/ c/", "a/c/0/2": "a/ c/", "a/c/1/1": "a/ c/", "a/c/0/x": "", "a/c/1/y": ""}},
		{"array inside an array", []map[string]string{{"a/zarr.json": two, "a/0/5": "x", "a/1/5": "x"}, {"a/0/zarr.json": one}}, [2]string{},
			map[string]string{"a/0/5": "a/0/ ", "a/1/5": "a/ "}},
		{"metadata broken", []map[string]string{{"a/zarr.json": nested, "a/c/0/1": "x"}, {"a/zarr.json": "broken"}, {"a/c/5/5": "x"}}, [2]string{},
			map[string]string{"a/c/0/1": "a/ c/", "a/c/5/5": "a/ c/"}},
		{"form gone with its last chunk", []map[string]string{{"a/zarr.json": nested, "a/c/0/1": "x"}, {"a/zarr.json": "broken"}, {"a/c/0/1": ""}, {"a/c/5/5": "x"}}, [2]string{},
			map[string]string{"a/c/5/5": ""}},
		{"metadata and the last chunk at once", []map[string]string{{"a/zarr.json": nested}, {"a/zarr.json": "broken", "a/c/5/5": "x"}}, [2]string{},
			map[string]string{"a/c/5/5": ""}},
		{"another form", []map[string]string{{"a/.zarray": "array f=:.:2", "a/0.0": "x", "a/0/0": "y"}, {"a/.zarray": two}}, [2]string{},
			map[string]string{"a/0.0": "a/ ", "a/0/0": "a/ "}},
		{"group becomes an array", []map[string]string{{"a/zarr.json": "group", "a/c/0/1": "x"}, {"a/zarr.json": nested}}, [2]string{},
			map[string]string{"a/c/0/1": "a/ c/"}},
		{"moved below an array", []map[string]string{{"a/zarr.json": two, "b/7": "x", "b/y": "z"}}, [2]string{"b", "a/0"},
			map[string]string{"a/0/7": "a/ ", "a/0/y": ""}},
		{"moved out of an array", []map[string]string{{"a/zarr.json": two, "a/0/7": "x", "a/0/y": "z", "a/1/7": "x"}}, [2]string{"a/0", "b"},
			map[string]string{"b/7": "", "b/y": "", "a/1/7": "a/ "}},
		{"array moved into an array", []map[string]string{{"a/zarr.json": two, "b/zarr.json": one, "b/7": "x"}}, [2]string{"b", "a/0"},
			map[string]string{"a/0/7": "a/0/ "}},
		{"chunk moved to a chunk", []map[string]string{{"a/zarr.json": two, "a/0/7": "x"}}, [2]string{"a/0", "a/5"},
			map[string]string{"a/5/7": "a/ "}},
		{"document becomes a chunk", []map[string]string{{"a/zarr.json": two, "doc": "x"}}, [2]string{"doc", "a/3/4"},
			map[string]string{"a/3/4": "a/ "}},
		{"metadata moved in", []map[string]string{{"a/zarr.jso": two, "a/1/1": "x"}}, [2]string{"a/zarr.jso", "a/zarr.json"},
			map[string]string{"a/1/1": "a/ "}},
	} {
		for seed := range uint64(2) {
			s := newToySpace(seed)
			h := &history{toySpace: s, t: t, rnd: rand.New(rand.NewPCG(1, 1)), want: toyModel{}}
			h.logf("%s", c.name)
			for _, step := range c.steps {
				h.apply(puts(step))
				h.check()
			}
			if from, to := c.move[0], c.move[1]; from != "" {
				root, err := h.Move(context.Background(), h.root, from, to)
				if err != nil {
					h.fatalf("move: %v", err)
				}
				h.root = root
				for _, k := range h.want.keys(from) {
					if k == from || strings.HasPrefix(k, from+"/") {
						h.want[to+k[len(from):]] = h.want[k]
						delete(h.want, k)
					}
				}
				h.check()
			}
			for key, want := range c.homes {
				if got := h.home(key); got != want {
					h.fatalf("home of %q: %q, want %q", key, got, want)
				}
			}
		}
	}
}

// home returns the directory and the prefix of the form where a key is kept.
func (h *history) home(key string) string {
	h.t.Helper()
	frames, err := h.walk(context.Background(), h.root, key)
	if err != nil {
		h.fatalf("walk: %v", err)
	}
	for _, fr := range frames {
		for _, f := range fr.info.forms {
			coords, ok := f.parse(nil, key[len(fr.path):])
			if !ok {
				continue
			}
			if _, ok, err := h.Space.Tree.Get(context.Background(), f.root, coords); err != nil || ok {
				return fr.path + " " + f.Prefix
			}
		}
	}
	return ""
}
