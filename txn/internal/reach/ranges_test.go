package reach

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// naiveRanges joins ranges in the plainest way.
func naiveRanges(list []pack.Extent) []pack.Extent {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b pack.Extent) int { return cmp.Compare(a.From, b.From) })
	var out []pack.Extent
	for _, e := range list {
		if n := len(out); n > 0 && (e.From <= out[n-1].To || tree.Follows(out[n-1].To, e.From)) {
			out[n-1].To = max(out[n-1].To, e.To)
			continue
		}
		out = append(out, e)
	}
	return out
}

// Ranges from several workers, in any order, some of them twice, come back in
// order and joined. With little memory they cover more, but never less, and
// begin where some range begins.
func TestRanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 8))
	for round := range 40 {
		limit := MaxRangeBytes
		if round%2 == 1 {
			limit = 2000
		}
		r := NewRanges(limit)
		workers := []*Local{r.Local(), r.Local(), r.Local()}
		want := map[tree.PackID][]pack.Extent{}
		span := uint64(1) << (14 + rng.IntN(40))
		for range rng.IntN(6000) {
			id := tree.PackID{byte(rng.IntN(3))}
			p := tree.Payload{Pack: id, Offset: 64 + rng.Uint64N(span), Length: rng.Uint64N(5000)}
			w := workers[rng.IntN(len(workers))]
			for range 1 + rng.IntN(30) { // a row
				w.Add(&p)
				if rng.IntN(8) == 0 {
					workers[0].Add(&p)
				}
				if p.Length > 0 {
					want[id] = append(want[id], pack.Extent{From: p.Offset, To: p.Offset + p.Length})
				}
				p.Offset += p.Length + rng.Uint64N(600)
			}
			if rng.IntN(300) == 0 {
				w.Flush()
			}
		}
		for _, w := range workers {
			w.Flush()
		}
		for id, list := range want {
			list = naiveRanges(list)
			got, n := r.Of(pack.ID(id), 1<<63)
			if limit == MaxRangeBytes && !slices.Equal(got, list) {
				t.Fatalf("round %d: %d ranges, want %d", round, len(got), len(list))
			}
			var sum uint64
			for i, e := range got {
				sum += e.To - e.From
				if i > 0 && e.From <= got[i-1].To {
					t.Fatalf("round %d: %v follows %v", round, e, got[i-1])
				}
				if _, ok := slices.BinarySearchFunc(list, e.From, func(e pack.Extent, at uint64) int { return cmp.Compare(e.From, at) }); !ok {
					t.Fatalf("round %d: no payload begins at %d", round, e.From)
				}
			}
			if sum != n {
				t.Errorf("round %d: %d bytes in all, they say %d", round, sum, n)
			}
			for _, e := range list {
				i, ok := slices.BinarySearchFunc(got, e.From, func(e pack.Extent, at uint64) int { return cmp.Compare(e.From, at) })
				if !ok {
					i--
				}
				if i < 0 || got[i].To < e.To {
					t.Fatalf("round %d: %v is not covered", round, e)
				}
			}
			tail := list[len(list)/2].From
			head, _ := r.Of(pack.ID(id), tail)
			for _, e := range head {
				if e.From >= tail {
					t.Errorf("round %d: %v is not before %d", round, e, tail)
				}
			}
		}
		if limit < MaxRangeBytes && r.bytes > limit {
			t.Errorf("round %d: %d bytes are kept, at most %d", round, r.bytes, limit)
		}
	}
}
