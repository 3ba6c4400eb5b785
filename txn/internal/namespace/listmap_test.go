package namespace

import (
	"github.com/zarrdb/zarrdb/internal/must"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestListSortsGroups prints chunks in the order of their coordinates, of one to
// three dimensions with and without holes, and expects the keys in byte order.
func TestListSortsGroups(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	var c chunkLister
	for n := range 400 {
		rank, sep := 1+r.IntN(3), []byte("./")[r.IntN(2)]
		form := &Form{Rank: rank, Sep: sep, Prefix: "c/"}
		var group [][]byte
		for range 1 + r.IntN(3000)*min(n, 1) {
			var coords []byte
			for range rank {
				coords = appendCoord(coords, r.Uint64N(1<<r.IntN(40))>>r.IntN(40))
			}
			group = append(group, coords)
		}
		slices.SortFunc(group, slices.Compare)
		group = slices.CompactFunc(group, slices.Equal)
		c.group, c.dir, c.form, c.out = group, "a/", &dirForm{Form: *form}, nil
		must.Do(t, c.emitGroup(0, "a/c/", 0))
		var want []string
		for _, coords := range group {
			key, ok := form.print([]byte("a/"), coords)
			if !ok {
				t.Fatal(coords)
			}
			want = append(want, string(key))
		}
		if slices.Sort(want); !slices.Equal(c.out, want) {
			t.Fatalf("%d chunks of %d dimensions: %q, want %q", len(group), rank, c.out, want)
		}
	}
}
