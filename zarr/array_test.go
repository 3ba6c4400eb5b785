package zarr

import (
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

func sum(b []byte) []byte {
	h := sha256.Sum256(b)
	return h[:]
}

// TestModel writes and reads random selections of random arrays and compares
// everything with a plain array in memory, the set of keys included.
func TestModel(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 200
	}
	for _, seed := range seeds(t, n) {
		runModel(t, seed)
	}
}

// smallTuning makes small arrays take the ways of large ones, and returns what
// undoes it.
func smallTuning() (undo func()) {
	old := tune
	tune.run, tune.point, tune.cached, tune.slab, tune.large, tune.few = 1, 1, 64, 8, 48, 2
	return func() { tune = old }
}

func runModel(t *testing.T, seed uint64) {
	t.Helper()
	if seed%2 == 0 {
		defer smallTuning()()
	}
	c := randomConfig(seed)
	r := rand.New(rand.NewPCG(seed, 2))
	store := kv.NewMem()
	var view kv.Store = store
	if r.IntN(3) == 0 {
		c.runner = goRunner{}
	}
	if r.IntN(2) == 0 {
		c.cache = &mapCache{}
		view = idStore{store}
	}
	name := c.String()
	a := c.open(t, view)
	m := newModel(c.shape, c.fill)
	for range 12 {
		if r.IntN(3) > 0 {
			m.write(t, r, a, pick(r, c.shape), c.fill, name)
		}
		m.check(t, a, pick(r, c.shape), name)
	}
	all := picked{sel: Sel(), shape: c.shape}
	for i := range m.elems {
		all.flat = append(all.flat, int64(i))
	}
	m.check(t, a, all, name)
	if c.empty {
		return
	}
	got := must.Have(kv.Keys(context.Background(), store, ""))
	if want := m.keys(a, c.fill); !slices.Equal(got, want) {
		t.Fatalf("%s: keys %v, want %v", name, got, want)
	}
}
