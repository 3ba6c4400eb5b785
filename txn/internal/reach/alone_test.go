package reach

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/zarrdb/zarrdb/kv/tree"
)

// Alone counts exactly the bytes that one owner has.
func TestAlone(t *testing.T) {
	const unit = 1 << 20 // too large a gap to be joined over
	rng := rand.New(rand.NewPCG(1, 5))
	for round := range 200 {
		r := NewRanges(MaxRangeBytes)
		l := r.Local()
		type place struct {
			pack tree.PackID
			unit uint64
		}
		owners := map[place]map[int32]bool{}
		for range rng.IntN(80) {
			id := tree.PackID{byte(rng.IntN(2))}
			l.Owner = int32(rng.IntN(4)) - 1
			from, n := 1+rng.Uint64N(200), 1+rng.Uint64N(9)
			l.Add(&tree.Payload{Pack: id, Offset: from * unit, Length: n * unit})
			if rng.IntN(9) == 0 {
				l.Flush()
			}
			for at := from; at < from+n; at++ {
				if owners[place{id, at}] == nil {
					owners[place{id, at}] = map[int32]bool{}
				}
				owners[place{id, at}][l.Owner] = true
			}
		}
		l.Flush()
		want := map[int32]uint64{}
		for _, by := range owners {
			if len(by) == 1 {
				for owner := range by {
					want[owner] += unit
				}
			}
		}
		got := r.Alone()
		maps.DeleteFunc(got, func(_ int32, n uint64) bool { return n == 0 })
		if !maps.Equal(got, want) {
			t.Fatalf("round %d: %v, want %v", round, got, want)
		}
	}
}
