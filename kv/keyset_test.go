package kv

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// TestKeySet compares a set with a map while blocks fill, split and empty.
func TestKeySet(t *testing.T) {
	seed := must.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	var set keySet
	want := map[string]bool{}
	check := func() {
		t.Helper()
		var got []string
		for _, b := range set.blocks {
			if len(b) == 0 || len(b) > maxBlock {
				t.Fatalf("a block of %d keys", len(b))
			}
			got = append(got, b...)
		}
		if !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("%d keys, want %d", len(got), len(want))
		}
	}
	for i := range 20_000 {
		key := fmt.Sprint(rnd.IntN(4000))
		switch grow := i/5000%2 == 0; {
		case !want[key] && grow:
			set.add(key)
			want[key] = true
		case want[key] && !grow:
			set.remove(key)
			delete(want, key)
		}
		if i%2500 == 0 {
			check()
			opts := ListOptions{Prefix: key[:1], After: fmt.Sprint(rnd.IntN(4000))}
			var wanted []string
			for _, k := range slices.Sorted(maps.Keys(want)) {
				if strings.HasPrefix(k, opts.Prefix) && k > opts.After {
					wanted = append(wanted, k)
				}
			}
			if got := set.appendFrom(nil, opts, 1<<30); !slices.Equal(got, wanted) {
				t.Fatalf("%+v: %d keys, want %d", opts, len(got), len(wanted))
			}
		}
	}
	check()
	// Sorted input leaves full blocks.
	set = keySet{}
	for i := range 10 * maxBlock {
		set.add(fmt.Sprintf("%08d", i))
	}
	if len(set.blocks) != 10 {
		t.Errorf("%d blocks for sorted input, want 10", len(set.blocks))
	}
}
