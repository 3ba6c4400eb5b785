package zarr

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
)

var errInjected = errors.New("injected")

// TestFaults lets the k-th operation of the view fail, for every k until
// nothing fails any more. What fails says so with operation and path; what
// does not gives the right values; and nothing stays locked.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	for seed := range uint64(24) {
		c := randomConfig(seed)
		if seed%3 == 0 {
			c.runner = goRunner{}
		}
		if seed%2 == 0 {
			c.cache = &mapCache{}
		}
		for k := int64(1); runFault(t, c, k); k++ {
		}
	}
}

// runFault fails the k-th operation; it returns false if there were fewer.
func runFault(t *testing.T, c config, k int64) bool {
	t.Helper()
	ctx := context.Background()
	var n atomic.Int64
	store := idStore{kv.NewMem()}
	hook := kvtest.Hook(store, func(kvtest.Op, string) error {
		if n.Add(1) == k {
			return errInjected
		}
		return nil
	})
	a := c.open(t, hook)
	must.Have(0, saveMeta(ctx, store, a.loc, nil, a.Meta()))
	m := newModel(c.shape, c.fill)
	r := rand.New(rand.NewPCG(c.seed, 5))
	check := func(err error) {
		t.Helper()
		var e *Error
		if err != nil && (!errors.Is(err, errInjected) || !errors.As(err, &e) || e.Path != "a") {
			t.Fatalf("%v: operation %d fails: %v", c, k, err)
		}
	}
	for range 3 {
		p := pick(r, c.shape)
		elems := make([][]byte, len(p.flat))
		for i := range elems {
			elems[i] = randomElem(r, c.typ)
		}
		write := func() error {
			if c.typ.Variable() {
				return a.WriteVar(ctx, p.sel, variableFrom(elems))
			}
			return a.WriteBytes(ctx, p.sel, join(elems))
		}
		if err := write(); err != nil {
			check(err)
			if err := write(); err != nil { // only one operation fails
				t.Fatalf("%v: again: %v", c, err)
			}
		}
		for i, f := range p.flat {
			m.elems[f] = elems[i]
		}
		check(a.Resize(ctx, m.shape, ResizeOptions{}))
		q := pick(r, c.shape)
		var err error
		if c.typ.Variable() {
			_, err = a.ReadVar(ctx, q.sel)
		} else {
			err = a.ReadBytes(ctx, q.sel, make([]byte, len(q.flat)*c.typ.Size()))
		}
		check(err)
		if n.Load() >= k {
			m.check(t, a, q, c.String())
		}
	}
	return n.Load() >= k
}
