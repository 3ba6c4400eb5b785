package dirkv

import (
	"testing"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/kvtest"
)

// forEachSource runs a test with openat2 and without.
func forEachSource(t *testing.T, test func(t *testing.T, open func(*Options) *Store)) {
	t.Run("openat2", func(t *testing.T) {
		test(t, func(opts *Options) *Store { return open(t, opts) })
	})
	t.Run("os.Root", func(t *testing.T) {
		test(t, func(opts *Options) *Store { return slow(open(t, opts)) })
	})
}

func slow(s *Store) *Store {
	s.src.noBeneath.Store(true)
	return s
}

func TestSlowConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of files")
	}
	kvtest.Run(t, func(t *testing.T) kv.Reader { return slow(open(t, &Options{NoSync: true})) }, kvtest.Options{Tree: true, Steps: 200})
}

// TestFastSource makes sure that the fast way is the one that is tested on
// kernels that have it.
func TestFastSource(t *testing.T) {
	s := open(t, nil)
	set(t, s, "a", "v")
	wantValue(t, s, "a", "v")
	if s.src.noBeneath.Load() {
		t.Skip("this kernel has no openat2")
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := s.Get(ctx, "none/at/all", kv.All()); err != kv.ErrNotFound {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("a missing key costs %v allocations, want the path's one", n)
	}
}
