package tree

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// TestApplyLarge checks that edits of a map with pages of the real size give the
// root that Build gives.
func TestApplyLarge(t *testing.T) {
	ctx := context.Background()
	n := 60_000
	if testing.Short() {
		n = 10_000
	}
	for _, k := range kindsOfMaps[:2] {
		tr, root, _ := benchTree(t, n, k.make())
		r := newRand(11)
		m := map[int]Value{}
		for e := range tr.Scan(ctx, root, Span{}) {
			m[len(m)] = e.Value
		}
		for _, op := range []string{"delete", "insert", "replace", "delete", "insert"} {
			edits := cascadeEdits(r, op, n/2, n/20, k.make())
			root = must.Get(tr.Apply(ctx, root, edits))(t)
			at := 0 // edits and chunks are both in order
			for i := range n {
				if at < len(edits) && string(edits[at].Key) == string(chunkKey(nil, i)) {
					if m[i] = edits[at].Value; edits[at].Delete {
						delete(m, i)
					}
					at++
				}
			}
			built, err := tr.Build(ctx, func(yield func(Entry, error) bool) {
				for i := range n {
					if v, ok := m[i]; ok && !yield(Entry{Key: chunkKey(nil, i), Value: v}, nil) {
						return
					}
				}
			})
			if err != nil || built != root {
				t.Fatalf("%s, %s: root %+v, but built at once %+v, %v", k.name, op, root, built, err)
			}
		}
	}
}

// TestMeasureCascade prints how many pages a small change makes in a map of a
// million entries. An edit of a value makes one page per level; an insertion or
// removal shifts the weights behind it until the cuts of the new and the old map
// meet again.
func TestMeasureCascade(t *testing.T) {
	measure(t)
	const n = 1_000_000
	for _, k := range kindsOfMaps[:3] {
		tr, root, m := benchTree(t, 2*n, k.make())
		root = everyOther(t, tr, root)
		for _, op := range []string{"replace", "insert", "delete"} {
			t.Logf("%-9s %-8s %s", k.name, op, cascade(t, tr, m, root, op, k.make, 1, 5000))
			t.Logf("%-9s %-8s %s", k.name, op+" 10k", cascade(t, tr, m, root, op, k.make, 10_000, 3))
		}
	}
}

// everyOther removes the odd chunks, so that there is room between keys.
func everyOther(t *testing.T, tr *Tree, root Root) Root {
	t.Helper()
	b := tr.NewBuilder(context.Background())
	i := 0
	for e, err := range tr.Scan(context.Background(), root, Span{}) {
		must.Do(t, err)
		if i%2 == 0 {
			must.Do(t, b.Add(&e))
		}
		i++
	}
	out := must.Get(b.Finish())(t)
	return out
}

type cascadeStats struct{ pages, bytes []int }

// cascade applies random edits, so many at a time, to the same map again and
// again, and counts the pages that are put.
func cascade(t *testing.T, tr *Tree, m *MemPages, root Root, op string, values func() func(int, *rand.Rand, *Value), edits, times int) (s string) {
	t.Helper()
	var stats cascadeStats
	r := rand.New(rand.NewPCG(7, 8))
	set := values()
	for range times {
		c := &countPages{Pages: m}
		must.Get(tr.With(c).Apply(context.Background(), root, cascadeEdits(r, op, int(root.Entries), edits, set)))(t)
		stats.pages = append(stats.pages, c.puts)
		stats.bytes = append(stats.bytes, c.bytes)
	}
	return stats.String()
}

func (s cascadeStats) String() string {
	slices.Sort(s.pages)
	slices.Sort(s.bytes)
	line := func(v []int) []any {
		return []any{mean(v), quantile(v, .5), quantile(v, .99), quantile(v, 1)}
	}
	return fmt.Sprintf("pages mean %.2f p50 %d p99 %d max %d", line(s.pages)...) + fmt.Sprintf(", bytes mean %.0f p50 %d p99 %d max %d", line(s.bytes)...)
}

func cascadeEdits(r *rand.Rand, op string, n, edits int, set func(int, *rand.Rand, *Value)) []Edit {
	at := map[int]bool{}
	for len(at) < edits {
		i := 2 * r.IntN(n)
		if op == "insert" {
			i++
		}
		at[i] = true
	}
	var out []Edit
	for i := range at {
		e := Edit{Key: chunkKey(nil, i), Delete: op == "delete"}
		if !e.Delete {
			set(i, r, &e.Value)
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Edit) int { return slices.Compare(a.Key, b.Key) })
	return out
}
