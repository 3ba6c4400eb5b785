package listing

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/engine/internal/names"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// TestCandidatesModel compares the listing with a sorted one of all keys.
func TestCandidatesModel(t *testing.T) {
	seed := must.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	array := func(shape []int64, keys zarr.ChunkKeys, v zarr.Version) *zarr.Meta {
		chunk := make([]int, len(shape))
		for i := range chunk {
			chunk[i] = 1
		}
		return &zarr.Meta{Array: true, Version: v, Shape: shape, Keys: keys, Grid: meta.RegularGrid(chunk)}
	}
	group := func(v zarr.Version) *zarr.Meta { return &zarr.Meta{Version: v} }
	c := &View{Documents: Documents{Reader: kv.NewMem()}, nodes: []Node{
		{"", group(zarr.V3)},
		{"a/", group(zarr.V3)},
		{"a/b/", array([]int64{11, 3}, meta.DefaultKeys('/', 2), zarr.V3)},
		{"a/b-c/", array([]int64{120}, meta.V2Keys('.', 1), zarr.V3)},
		{"e/", array([]int64{0, 5}, meta.V2Keys('.', 2), zarr.V2)},
		{"s/", array(nil, meta.DefaultKeys('/', 0), zarr.V3)},
		{"v2/", array([]int64{12, 2, 11}, meta.V2Keys('.', 3), zarr.V2)},
		{"z/", array([]int64{101, 1}, meta.V2Keys('/', 2), zarr.V2)},
	}}
	slices.SortFunc(c.nodes, func(a, b Node) int { return strings.Compare(a.Dir, b.Dir) })
	var want []string
	for _, n := range c.nodes {
		for _, d := range names.Documents(n.Meta.Version) {
			want = append(want, n.Dir+d)
		}
		if !n.Meta.Array {
			continue
		}
		counts := n.Meta.ChunkCounts()
		coords := make([]int64, len(counts))
		for done := slices.Contains(counts, 0); !done; {
			want = append(want, n.Dir+string(n.Meta.Keys.Append(nil, coords)))
			done = true
			for d := range slices.Backward(coords) {
				if coords[d]++; coords[d] < counts[d] {
					done = false
					break
				}
				coords[d] = 0
			}
		}
	}
	slices.Sort(want)
	check := func(opts kv.ListOptions) {
		t.Helper()
		var got []string
		for key, err := range c.List(context.Background(), opts) {
			must.Do(t, err)
			got = append(got, key)
		}
		var wanted []string
		for _, k := range want {
			if strings.HasPrefix(k, opts.Prefix) && k > opts.After {
				wanted = append(wanted, k)
			}
		}
		if !slices.Equal(got, wanted) {
			t.Fatalf("%+v: %d keys, want %d", opts, len(got), len(wanted))
		}
	}
	check(kv.ListOptions{})
	text := func() string {
		k := want[rnd.IntN(len(want))]
		return k[:rnd.IntN(len(k)+1)] + []string{"", "", "\xff", "!", "0"}[rnd.IntN(5)]
	}
	for range 3000 {
		check(kv.ListOptions{Prefix: text()})
		check(kv.ListOptions{After: text()})
		check(kv.ListOptions{Prefix: text(), After: text()})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var last error
	for _, err := range c.List(ctx, kv.ListOptions{}) {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Error(last)
	}
}
