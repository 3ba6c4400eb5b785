package meta_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

func edges(lengths ...int64) meta.Edges {
	var e meta.Edges
	for _, n := range lengths {
		e.Runs = append(e.Runs, [2]int64{n, 1})
	}
	return e
}

func newGrid(t testing.TB, dims ...meta.Edges) meta.Grid {
	t.Helper()
	g := must.Get(meta.RectilinearGrid(dims))(t)
	return g
}

// TestGridModel compares every answer of a grid of one dimension with a list
// that says for each element in which chunk it lies.
func TestGridModel(t *testing.T) {
	seed := must.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		var g meta.Grid
		var lengths []int64
		n := int64(r.IntN(40))
		switch r.IntN(3) {
		case 0:
			step := 1 + r.IntN(7)
			g = meta.RegularGrid([]int{step})
			for i := int64(0); i < n+7; i += int64(step) {
				lengths = append(lengths, int64(step))
			}
		case 1:
			step := 1 + r.IntN(7)
			g = newGrid(t, meta.Edges{Step: int64(step)})
			for i := int64(0); i < n+7; i += int64(step) {
				lengths = append(lengths, int64(step))
			}
		default:
			var e meta.Edges
			for total := int64(0); total < n; {
				length, count := int64(1+r.IntN(5)), int64(1+r.IntN(4))
				e.Runs = append(e.Runs, [2]int64{length, count})
				for range count {
					lengths = append(lengths, length)
				}
				total += length * count
			}
			g = newGrid(t, e)
		}
		checkGrid(t, seed, g, n, lengths)
	}
}

func checkGrid(t *testing.T, seed uint64, g meta.Grid, n int64, lengths []int64) {
	t.Helper()
	var chunkOf []int64 // element -> chunk
	start := int64(0)
	for c, length := range lengths {
		if got := g.Start(0, int64(c)); got != start {
			t.Fatalf("seed %d: %v: chunk %d starts at %d, not %d", seed, lengths, c, got, start)
		}
		if got := g.ChunkShape([]int{7}, []int64{int64(c)}); !slices.Equal(got, []int{7, int(length)}) {
			t.Fatalf("seed %d: %v: chunk %d has shape %v", seed, lengths, c, got)
		}
		for range length {
			chunkOf = append(chunkOf, int64(c))
		}
		start += length
	}
	if got := g.Start(0, int64(len(lengths))); got != start {
		t.Fatalf("seed %d: %v ends at %d, not %d", seed, lengths, got, start)
	}
	count := int64(0)
	if n > 0 {
		count = chunkOf[n-1] + 1
	}
	if got := g.Count(0, n); got != count {
		t.Fatalf("seed %d: %v: %d chunks for %d elements, not %d", seed, lengths, got, n, count)
	}
	for lo := range n {
		for hi := lo + 1; hi <= n; hi++ {
			if first, end := g.Range(0, lo, hi); first != chunkOf[lo] || end != chunkOf[hi-1]+1 {
				t.Fatalf("seed %d: %v: elements %d to %d lie in chunks %d to %d, not %d to %d", seed, lengths, lo, hi, first, end, chunkOf[lo], chunkOf[hi-1]+1)
			}
		}
	}
}

func TestGridLarge(t *testing.T) {
	const huge = math.MaxInt64
	g := newGrid(t, meta.Edges{Runs: [][2]int64{{3, huge / 3}}}, meta.Edges{Step: 2})
	if n := g.Count(0, huge/3*3); n != huge/3 {
		t.Errorf("%d chunks", n)
	}
	if first, end := g.Range(0, huge/3*3-1, huge/3*3); first != huge/3-1 || end != huge/3 {
		t.Errorf("last chunk %d to %d", first, end)
	}
	if s := g.Start(0, huge/3); s != huge/3*3 {
		t.Errorf("end %d", s)
	}
	for _, g := range []meta.Grid{meta.RegularGrid([]int{10}), newGrid(t, meta.Edges{Step: 10})} {
		if s := g.Start(0, huge/10+1); s != huge {
			t.Errorf("start beyond 2^63: %d", s)
		}
		if n := g.Count(0, huge); n != huge/10+1 {
			t.Errorf("%d chunks", n)
		}
	}
	if g.Regular() != nil || g.Rank() != 2 {
		t.Error("a grid with runs is not regular")
	}
	if shape := newGrid(t, meta.Edges{Step: 3}, meta.Edges{Step: 1}).Regular(); !slices.Equal(shape, []int{3, 1}) {
		t.Errorf("steps are regular: %v", shape)
	}
	if meta.RegularGrid(nil).Regular() == nil {
		t.Error("no dimensions are regular")
	}
}

func TestGridRefused(t *testing.T) {
	for _, e := range []meta.Edges{edges(0), edges(-1), edges(3, 0), {Step: -1}, {Runs: [][2]int64{{1, 0}}}, {Runs: [][2]int64{{1, -1}}},
		{Runs: [][2]int64{{math.MaxInt32, math.MaxInt64}}}, {Runs: [][2]int64{{1, math.MaxInt64}, {1, 1}}}} {
		if _, err := meta.RectilinearGrid([]meta.Edges{e}); err == nil {
			t.Errorf("%v accepted", e)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("RegularGrid of 0 does not panic")
		}
	}()
	meta.RegularGrid([]int{2, 0})
}

func TestGridPrint(t *testing.T) {
	for _, c := range []struct {
		g    meta.Grid
		want string
	}{
		{meta.RegularGrid([]int{2, 3}), `{"name":"regular","configuration":{"chunk_shape":[2,3]}}`},
		{meta.RegularGrid(nil), `{"name":"regular","configuration":{"chunk_shape":[]}}`},
		{newGrid(t, edges(2, 2, 5), meta.Edges{Step: 4}, edges()), `{"name":"rectilinear","configuration":{"kind":"inline","chunk_shapes":[[[2,2],5],4,[]]}}`},
	} {
		if got := fmt.Sprint(c.g); got != c.want || !json.Valid([]byte(got)) {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	if !meta.SameGrid(newGrid(t, meta.Edges{Step: 2}), meta.RegularGrid([]int{2})) || meta.SameGrid(newGrid(t, edges(2)), meta.RegularGrid([]int{2})) || !meta.SameGrid(nil, nil) || meta.SameGrid(nil, meta.RegularGrid(nil)) {
		t.Error("sameGrid")
	}
}
