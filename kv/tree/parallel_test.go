package tree

import (
	"context"
	"errors"
	"github.com/zarrdb/zarrdb/internal/must"
	"maps"
	"math/rand/v2"
	"testing"
)

// Edits that are made in parts make the map that Build makes, however they lie: a
// few everywhere, runs that are removed or put in, all that there is.
func TestApplyInParts(t *testing.T) {
	ctx := context.Background()
	seed := must.Seed(t)
	r := newRand(seed)
	rounds := 30
	if testing.Short() {
		rounds = 10
	}
	for range rounds {
		n := 100 + r.IntN(1500)
		m := model{}
		for i := range n {
			var v Value
			randomNative(r, &v)
			m[string(chunkKey(nil, 2*i))] = v
		}
		tr := New(NewMemPages(), &Options{shape: tinyShape, CacheBytes: []int64{-1, 16 << 10, 0}[r.IntN(3)]})
		root := must.Get(tr.Build(ctx, m.entries()))(t)
		for range 6 {
			after := maps.Clone(m)
			edits := clusteredEdits(r, after, n)
			got := must.Get(tr.Apply(ctx, root, edits))(t)
			want := must.Get(New(NewMemPages(), &Options{shape: tinyShape}).Build(ctx, after.entries()))(t)
			if got != want {
				t.Fatalf("%d edits of %d keys: %+v, Build makes %+v", len(edits), len(m), got, want)
			}
			checkPages(t, tr, got)
			if len(after) > 0 && r.IntN(3) > 0 {
				root, m = got, after
			}
		}
	}
}

// clusteredEdits makes edits of runs of keys below 2n and applies them to m: each
// run is removed, given values or given other keys.
func clusteredEdits(r *rand.Rand, m model, n int) []Edit {
	var edits []Edit
	gap := 1 + r.IntN(n/4)
	for i := r.IntN(gap); i < 2*n; {
		kind := r.IntN(4)
		for end := min(i+1+r.IntN(1+r.IntN(200)), 2*n); i < end; i++ {
			e := Edit{Key: chunkKey(nil, i)}
			switch {
			case kind == 0:
				e.Delete = true
			case kind == 1 || i%2 == 0:
				randomNative(r, &e.Value)
			default:
				e.Value = Value{Kind: KindInline, Inline: make([]byte, r.IntN(100))}
			}
			edits = append(edits, e)
			if e.Delete {
				delete(m, string(e.Key))
			} else {
				m[string(e.Key)] = e.Value
			}
		}
		i += 1 + r.IntN(gap)
	}
	return edits
}

// failingPages fails after some calls.
type failingPages struct {
	*MemPages
	fail func() bool
}

var errStore = errors.New("the store fails")

func (f *failingPages) PutPage(ctx context.Context, name Name, page []byte) error {
	if f.fail() {
		return errStore
	}
	return f.MemPages.PutPage(ctx, name, page)
}

// An error in one part is the error of Apply.
func TestApplyInPartsFails(t *testing.T) {
	ctx := context.Background()
	m := model{}
	r := newRand(1)
	for i := range 1000 {
		var v Value
		randomNative(r, &v)
		m[string(chunkKey(nil, i))] = v
	}
	pages := NewMemPages()
	root := must.Get(New(pages, &Options{shape: tinyShape}).Build(ctx, m.entries()))(t)
	edits := overwriteEdits(r, m, func(_ int, r *rand.Rand, v *Value) { randomNative(r, v) }, 400, 500, 0)
	for _, at := range []int{1, 40, 80} {
		puts := 0
		failing := &failingPages{pages, func() bool { puts++; return puts == at }}
		if _, err := New(failing, &Options{shape: tinyShape}).Apply(ctx, root, edits); !errors.Is(err, errStore) {
			t.Errorf("put %d fails: %v", at, err)
		}
	}
}
