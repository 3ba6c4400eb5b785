package kv_test

import (
	"context"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
)

func openMem(*testing.T) kv.Reader { return kv.NewMem() }

func TestMem(t *testing.T) { kvtest.Run(t, openMem, kvtest.Options{Steps: 3000}) }

// TestFallBacks runs the suite on a view that has none of the optional
// methods, so that every function of package kv falls back.
func TestFallBacks(t *testing.T) {
	kvtest.Run(t, func(*testing.T) kv.Reader { return plain{kv.NewMem()} }, kvtest.Options{})
}

// TestWrapped runs it on a wrapper whose optional methods say ErrUnsupported.
func TestWrapped(t *testing.T) {
	for name, base := range map[string]kv.Reader{"mem": kv.NewMem(), "plain": plain{kv.NewMem()}} {
		t.Run(name, func(t *testing.T) {
			kvtest.Run(t, func(*testing.T) kv.Reader {
				must.Do(t, kv.DeletePrefix(t.Context(), base.(kv.Writer), ""))
				view, _ := kvtest.Count(base)
				return view
			}, kvtest.Options{})
		})
	}
}

// plain hides the optional methods of a store.
type plain struct{ kv.Store }

func TestSub(t *testing.T) {
	t.Run("Mem", func(t *testing.T) {
		kvtest.Run(t, func(t *testing.T) kv.Reader { return kv.Sub(withNeighbours(t, kv.NewMem()), "p/q") }, kvtest.Options{})
	})
	t.Run("plain", func(t *testing.T) {
		kvtest.Run(t, func(t *testing.T) kv.Reader { return kv.Sub(withNeighbours(t, plain{kv.NewMem()}), "p/q/") }, kvtest.Options{})
	})
}

// withNeighbours puts keys around the prefix "p/q/", which a view of the keys
// below it must neither show nor touch.
func withNeighbours(t *testing.T, st kv.Store) kv.Store {
	keys := []string{"a", "p", "p/a", "p/q", "p/q-", "p/q-/x", "p/q0", "p/z", "z"}
	for _, key := range keys {
		must.Do(t, st.Set(t.Context(), key, []byte("neighbour")))
	}
	t.Cleanup(func() {
		for _, key := range keys {
			// t.Context is canceled by now.
			if b, err := st.Get(context.Background(), key, kv.All()); string(b) != "neighbour" {
				t.Errorf("neighbour %q is now %q, %v", key, b, err)
			}
		}
	})
	return st
}
