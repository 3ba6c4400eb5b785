package zarr_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// TestChunkSet compares numbers, look-ups and boxes with the list of chunks.
func TestChunkSet(t *testing.T) {
	ctx := context.Background()
	a := must.Get(zarr.Create(ctx, kv.NewMem(), "a", zarr.Spec{Shape: []int64{7, 9, 10}, Chunks: []int64{2, 3, 4}, DataType: "int8"}, nil))(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, sel := range []zarr.Selection{{}, zarr.Sel(zarr.Slice(1, 6, 1), zarr.At(4)), zarr.Sel(zarr.All(), zarr.List(8, 0)), zarr.Sel(zarr.Slice(0, 7, 4))} {
		set := must.Get(a.ChunkSet(sel))(t)
		var all []zarr.Chunk
		for c, err := range a.Chunks(ctx, sel) {
			must.Do(t, err)
			if i, ok := set.Find(c.Coords); !ok || i != int64(len(all)) || set.At(i).Key != c.Key {
				t.Fatalf("chunk %v is number %d %v, want %d", c.Coords, i, ok, len(all))
			}
			all = append(all, c)
		}
		if set.Len() != int64(len(all)) {
			t.Fatalf("%d chunks, want %d", set.Len(), len(all))
		}
		if _, ok := set.Find([]int64{99, 0, 0}); ok {
			t.Error("a chunk outside is found")
		}
		for range 200 {
			from := rnd.IntN(len(all))
			to := from + 1 + rnd.IntN(len(all)-from)
			boxes, n := 0, int64(from)
			set.Boxes(int64(from), int64(to), func(box zarr.Chunk, counts []int64) bool {
				if !slices.Equal(box.Coords, all[n].Coords) {
					t.Fatalf("box at %v, want %v", box.Coords, all[n].Coords)
				}
				boxes++
				size := int64(1)
				for _, c := range counts {
					size *= c
				}
				n += size
				last := all[n-1]
				for d := range box.Start {
					if box.Start[d]+box.Shape[d] != last.Start[d]+last.Shape[d] {
						t.Fatalf("box %v+%v does not end with %v", box.Start, box.Shape, last.Coords)
					}
				}
				return true
			})
			if n != int64(to) || boxes > 5 {
				t.Fatalf("%d boxes of [%d, %d) end at %d", boxes, from, to, n)
			}
		}
	}
}
