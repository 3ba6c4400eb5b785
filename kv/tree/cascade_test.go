package tree

import (
	"context"
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
