package tree

import (
	"context"
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"maps"
	"math/rand/v2"
	"testing"
)

// mixedValues gives maps with values of every kind, payloads of which follow each
// other in some packs and lie apart in others, and maps inside of them.
func mixedValues(below []Root) func(int, *rand.Rand, *Value) {
	native, virtual := natives(), virtuals(8)
	return func(i int, r *rand.Rand, v *Value) {
		switch {
		case i%997 == 0:
			*v = Value{Kind: KindChild, Child: below[r.IntN(len(below))]}
		case i/1500%4 == 0 && i%3 == 0:
			*v = Value{Inline: v.Inline}
			inlines(i, r, v)
		case i/1500%4 == 1:
			virtual(i, r, v)
		default:
			if native(i, r, v); i/1500%4 == 2 {
				v.Offset = r.Uint64N(1 << 40)
			}
		}
	}
}

// someEdits overwrite and delete every step-th chunk of n.
func someEdits(n, step int) []Edit {
	var out []Edit
	for i := 0; i < n; i += step {
		out = append(out, Edit{Key: chunkKey(nil, i), Value: Value{Kind: KindInline, Inline: []byte("new")}, Delete: i%3 == 0})
	}
	return out
}

// linkCount counts what a map names: payloads, and maps inside.
type linkCount struct {
	payloads map[Payload]int
	maps     map[Root]int
}

func newLinkCount() linkCount { return linkCount{map[Payload]int{}, map[Root]int{}} }

// scanned counts what a scan of a map yields.
func scanned(t *testing.T, tr *Tree, root Root) linkCount {
	t.Helper()
	n := newLinkCount()
	for e, err := range tr.Scan(context.Background(), root, Span{}) {
		must.Do(t, err)
		switch v := e.Value; v.Kind {
		case KindNative:
			n.payloads[Payload{v.Pack, v.Offset, v.Length}]++
		case KindChild:
			if !v.Child.Empty() {
				n.maps[v.Child]++
			}
		}
	}
	return n
}

// linked counts what the links of all pages of a map yield.
func linked(t *testing.T, tr *Tree, root Root) linkCount {
	t.Helper()
	n := newLinkCount()
	l := Links{Exact: true}
	for next := []Root{root}; len(next) > 0; next = next[1:] {
		r := next[0]
		must.Do(t, tr.Links(context.Background(), r, &l))
		for _, p := range l.Payloads {
			n.payloads[p]++
		}
		if r.Height > 0 {
			next = append(next, l.Pages...)
			continue
		}
		for _, c := range l.Pages {
			n.maps[c]++
		}
	}
	return n
}

// TestLinksAreThoseOfAScan compares the links of pages with a scan of the same
// map, after every kind of read, with caches that hold all pages, some or none:
// what a reader left in the cache is not less than the page.
func TestLinksAreThoseOfAScan(t *testing.T) {
	ctx := context.Background()
	const n = 12_000
	_, below, m := benchTree(t, 700, natives())
	tr := New(m, nil)
	root := must.Get(tr.Build(ctx, chunks(n, mixedValues([]Root{below}))))(t)
	other := must.Get(tr.Apply(ctx, root, someEdits(n, 40)))(t)
	want := scanned(t, New(m, &Options{CacheBytes: -1}), root)
	if len(want.payloads) < n/2 || len(want.maps) == 0 {
		t.Fatalf("a map of %d payloads and %d maps", len(want.payloads), len(want.maps))
	}
	pick := rand.New(rand.NewPCG(4, 4))
	fail := func(err error) {
		t.Helper()
		must.Do(t, err)
	}
	reads := map[string]func(*Tree){
		"nothing": func(*Tree) {},
		"one look-up": func(tr *Tree) {
			_, _, err := tr.Get(ctx, root, chunkKey(nil, n/2))
			fail(err)
		},
		"look-ups": func(tr *Tree) {
			for range 300 {
				_, _, err := tr.Get(ctx, root, chunkKey(nil, pick.IntN(n)))
				fail(err)
			}
		},
		"half a scan": func(tr *Tree) {
			i := 0
			for _, err := range tr.Scan(ctx, root, Span{}) {
				if fail(err); i > n/2 {
					break
				}
				i++
			}
		},
		"a difference": func(tr *Tree) {
			for _, err := range tr.Diff(ctx, root, other, Span{}) {
				fail(err)
			}
		},
		"a change": func(tr *Tree) {
			_, err := tr.Apply(ctx, root, someEdits(n, 25))
			fail(err)
		},
		"links": func(tr *Tree) { linked(t, tr, root) },
	}
	for name, read := range reads {
		for _, cache := range []int64{64 << 20, 60 << 10, -1} {
			t.Run(fmt.Sprintf("after %s, cache of %d", name, cache), func(t *testing.T) {
				tr := New(m, &Options{CacheBytes: cache})
				read(tr)
				got := linked(t, tr, root)
				if !maps.Equal(got.payloads, want.payloads) || !maps.Equal(got.maps, want.maps) {
					t.Errorf("links name %d payloads and %d maps, a scan %d and %d",
						len(got.payloads), len(got.maps), len(want.payloads), len(want.maps))
				}
				if tr.cache != nil {
					checkCache(t, tr.cache)
				}
			})
		}
	}
}
