package tree

import (
	"bytes"
	"context"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// overwriteMaps are maps of one kind of value each and of all of them.
var overwriteMaps = []struct {
	name string
	set  func(i int, r *rand.Rand, v *Value)
}{
	{"native", func(i int, r *rand.Rand, v *Value) { randomNative(r, v) }},
	{"virtual", func(i int, r *rand.Rand, v *Value) { randomVirtual(r, v) }},
	{"inline", inlines},
	{"child", children},
	{"mixed", func(i int, r *rand.Rand, v *Value) {
		switch i % 4 {
		case 0:
			randomNative(r, v)
		case 1:
			randomVirtual(r, v)
		case 2:
			inlines(i, r, v)
		default:
			children(i, r, v)
		}
	}},
}

func randomNative(r *rand.Rand, v *Value) {
	*v = Value{Kind: KindNative, Offset: r.Uint64N(1 << 30), Length: r.Uint64N(1 << 20)}
	v.Pack[0] = byte(r.IntN(3))
	binary.LittleEndian.PutUint64(v.Sum[:], r.Uint64())
}

func randomVirtual(r *rand.Rand, v *Value) {
	*v = Value{Kind: KindVirtual, Offset: r.Uint64N(1 << 30), Length: r.Uint64N(1 << 20)}
	v.Source.URL = []string{"s3://a/b", "s3://a/c", "s3://d"}[r.IntN(3)]
}

// Edits of which all, most or few only give a key another value make the map
// that Build makes, and pages that are kept are the ones that were stored.
func TestOverwrite(t *testing.T) {
	for _, k := range overwriteMaps {
		t.Run(k.name, func(t *testing.T) {
			testOverwrite(t, Options{}, k.set, 3000)
		})
		t.Run(k.name+"/tiny", func(t *testing.T) {
			// Pages of a few items, which may use a pack or source each.
			for range 10 {
				testOverwrite(t, Options{shape: tinyShape}, k.set, 100+rand.IntN(200))
			}
		})
	}
}

func testOverwrite(t *testing.T, o Options, set func(int, *rand.Rand, *Value), n int) {
	ctx := context.Background()
	seed := must.Seed(t)
	t.Logf("seed %d, %d keys", seed, n)
	r := rand.New(rand.NewPCG(seed, 0))
	m := model{}
	for i := range n {
		var v Value
		set(i, r, &v)
		m[string(chunkKey(nil, 2*i))] = v
	}
	pages := NewMemPages()
	tr := New(pages, &o)
	root, err := tr.Build(ctx, m.entries())
	must.Do(t, err)
	for round := range 24 {
		before, old := maps.Clone(m), root
		edits := overwriteEdits(r, m, set, []int{1, 3, 64, n / 4}[round%4], n, round/4)
		root = must.Get(tr.Apply(ctx, root, edits))(t)
		want := must.Get(New(NewMemPages(), &o).Build(ctx, m.entries()))(t)
		if root != want {
			t.Fatalf("round %d, %d edits: %+v, Build makes %+v", round, len(edits), root, want)
		}
		got := tr.cache.get(&root.Name)
		if got == nil {
			t.Errorf("round %d: the new root is not kept", round)
		}
		if stored, err := pages.GetPage(ctx, root.Name); err != nil || got != nil && !bytes.Equal(got.raw, stored) {
			t.Errorf("round %d: what is kept is not what is stored, %v", round, err)
		}
		span := Span{}
		if round%2 == 1 {
			span = Span{From: chunkKey(nil, r.IntN(n)), To: chunkKey(nil, n+r.IntN(n)), After: round%4 == 1}
		}
		checkDiff(t, tr, old, root, span, before, m)
	}
}

// checkDiff compares the differences of two maps with those of their models.
func checkDiff(t *testing.T, tr *Tree, a, b Root, span Span, before, after model) {
	t.Helper()
	both := maps.Clone(before)
	maps.Copy(both, after)
	var want []string
	for _, k := range both.span(span) {
		v, inA := before[k]
		w, inB := after[k]
		if inA != inB || !v.Equal(&w) {
			want = append(want, k)
		}
	}
	for c, err := range tr.Diff(context.Background(), a, b, span) {
		must.Do(t, err)
		if len(want) == 0 || string(c.Key) != want[0] {
			t.Fatalf("%x differs, want %x", c.Key, want[:min(len(want), 1)])
		}
		v, inA := before[want[0]]
		w, inB := after[want[0]]
		if inA != (c.Old != nil) || inB != (c.New != nil) || inA && !v.Equal(c.Old) || inB && !w.Equal(c.New) {
			t.Fatalf("%x: %+v and %+v, want %+v and %+v", c.Key, c.Old, c.New, v, w)
		}
		want = want[1:]
	}
	if len(want) > 0 {
		t.Fatalf("%d differences are missing, first %x", len(want), want[0])
	}
}

// overwriteEdits makes edits of m and applies them to it. other says how many in
// ten, from none up, are not overwrites: new keys, deletions, values of another
// weight, values that are there already.
func overwriteEdits(r *rand.Rand, m model, set func(int, *rand.Rand, *Value), edits, n, other int) []Edit {
	at := map[int]Edit{}
	for len(at) < edits {
		i := r.IntN(2 * n)
		if r.IntN(10) >= other {
			i &^= 1
		}
		key := chunkKey(nil, i)
		old, is := m[string(key)]
		e := Edit{Key: key}
		set(i/2, r, &e.Value)
		switch {
		case r.IntN(10) >= other:
		case r.IntN(3) == 0:
			e = Edit{Key: key, Delete: true}
		case is && r.IntN(2) == 0:
			e.Value = old
		default:
			e.Value = Value{Kind: KindInline, Inline: make([]byte, r.IntN(50))}
		}
		at[i] = e
	}
	var out []Edit
	for _, e := range at {
		out = append(out, e)
		if e.Delete {
			delete(m, string(e.Key))
		} else {
			m[string(e.Key)] = e.Value
		}
	}
	slices.SortFunc(out, func(a, b Edit) int { return bytes.Compare(a.Key, b.Key) })
	return out
}
