package zarr

import (
	"context"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// touchedCache keeps chunks of up to most bytes, and takes every second touch of
// one for a return to it.
type touchedCache struct {
	most    int
	chunks  map[kv.ID][]byte
	touched map[kv.ID]bool
	hits    int
}

func (c *touchedCache) Get(id kv.ID, _ [16]byte) ([]byte, bool) {
	b, ok := c.chunks[id]
	if ok {
		c.hits++
	}
	return b, ok
}

func (c *touchedCache) Add(id kv.ID, _ [16]byte, chunk []byte) { c.chunks[id] = chunk }
func (c *touchedCache) Keeps(bytes int) bool                   { return bytes <= c.most }

func (c *touchedCache) Touch(id kv.ID, _ [16]byte, bytes int) bool {
	if bytes != 4*blockedBytes {
		panic("the decoded size is another")
	}
	c.touched[id] = !c.touched[id]
	return !c.touched[id]
}

// blockedBytes is the size of a block of the chunks of TestSmallReadsFillTheCache,
// which have four.
const blockedBytes = 64 << 10

// A small part of a chunk that has blocks is decoded by itself at first; the chunk
// goes into the cache when it is read again, or at once if all its blocks are
// needed, unless it is too large for the cache.
func TestSmallReadsFillTheCache(t *testing.T) {
	ctx := context.Background()
	const blosc = `[{"name":"bytes","configuration":{"endian":"little"}},{"name":"blosc","configuration":{"cname":"lz4","clevel":5,"shuffle":"noshuffle","typesize":4,"blocksize":65536}}]`
	store := idStore{kv.NewMem()}
	plain := must.Have(Create(ctx, store, "a", Spec{Shape: []int64{64, 64, 32}, Chunks: []int64{32, 64, 32}, DataType: "int32", Codecs: []byte(blosc)}, nil))
	data := make([]int32, 64*64*32)
	for i := range data {
		data[i] = int32(i)
	}
	must.Do(t, Write(ctx, plain, Sel(), data))
	for _, c := range []struct {
		name  string
		sel   Selection
		most  int
		added []int // chunks in the cache after the first, second and third read
	}{
		{"element", Sel(At(40), At(3), At(5)), 1 << 20, []int{0, 1, 1}},
		{"plane of two chunks", Sel(Slice(31, 33, 1)), 1 << 20, []int{0, 2, 2}},
		{"line through both", Sel(All(), At(3), At(5)), 1 << 20, []int{2, 2, 2}},
		{"two points far apart", Points([]int64{0, 31}, []int64{0, 63}, []int64{0, 31}), 1 << 20, []int{1, 1, 1}},
		{"line, too large", Sel(All(), At(3), At(5)), 4*blockedBytes - 1, []int{0, 0, 0}},
		{"element, too large", Sel(At(40), At(3), At(5)), 4*blockedBytes - 1, []int{0, 0, 0}},
	} {
		cache := &touchedCache{most: c.most, chunks: map[kv.ID][]byte{}, touched: map[kv.ID]bool{}}
		a := must.Have(OpenArray(ctx, store, "a", &OpenOptions{Cache: cache}))
		want := mustRead(Read[int32](ctx, plain, c.sel))
		for i, added := range c.added {
			before := cache.hits
			got := mustRead(Read[int32](ctx, a, c.sel))
			for k := range want {
				if got[k] != want[k] {
					t.Fatalf("%s, read %d: element %d is %d, want %d", c.name, i, k, got[k], want[k])
				}
			}
			if len(cache.chunks) != added {
				t.Errorf("%s, read %d: %d chunks in the cache, want %d", c.name, i, len(cache.chunks), added)
			}
			if i == 2 && added > 0 && cache.hits == before {
				t.Errorf("%s: the cache is not read", c.name)
			}
		}
	}
}
