package codecs_test

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/race"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Once the pools are warm, no chunk costs a buffer, nor an inner chunk an
// allocation.
func TestNoAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector empties pools")
	}
	// So do collections, and each processor has its own.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, c := range benchChains {
		b, elems, stored := benchChunk(t, c.v3)
		runtime.GC() // the others are off
		dst := codecs.Dst{Data: make([]byte, 2*len(elems)), Strides: []int{8192, 4}}
		whole := codecs.Box{Start: []int{0, 0}, Count: benchShape}
		part := codecs.Box{Start: []int{3, 5}, Count: []int{300, 17}}
		for name, run := range map[string]func() error{
			"Decode":          func() (err error) { elems, err = b.Decode(elems[:0], stored); return err },
			"DecodeInto":      func() error { return b.DecodeInto(stored, whole, dst) },
			"DecodeInto part": func() error { return b.DecodeInto(stored, part, dst) },
		} {
			const runs = 10
			var before, after runtime.MemStats
			for i := range runs + 1 {
				if i == 1 {
					runtime.ReadMemStats(&before)
				}
				must.Do(t, run())
			}
			runtime.ReadMemStats(&after)
			if n := (after.TotalAlloc - before.TotalAlloc) / runs; n > uint64(len(elems))/64 {
				t.Errorf("%s, %s: %d bytes allocated for a chunk of %d", c.name, name, n, len(elems))
			}
			if n := (after.Mallocs - before.Mallocs) / runs; n >= 16 {
				t.Errorf("%s, %s: %d allocations", c.name, name, n)
			}
		}
	}
}

// A shard is encoded inner chunk by inner chunk from where its elements lie:
// there is no copy of all of them.
func TestShardIsNotGathered(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector empties pools")
	}
	b := bind(t, `[{"name":"sharding_indexed","configuration":{"chunk_shape":[64,64,64],"codecs":[{"name":"bytes"}],
		"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}]}}]`,
		dtype.NewUint(8), []int{128, 1024, 1024}, []byte{0})
	line := make([]byte, 1024) // as all lines of the shard are
	line[1000] = 1
	const left = 128 << 20 / 16 // of the shard: an inner chunk of each 16 is not of the fill value
	dst := make([]byte, 0, left+1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	stored, err := b.EncodeFrom(dst, codecs.Src{Data: line, Strides: []int{0, 0, 1}})
	runtime.ReadMemStats(&after)
	if err != nil || len(stored) < left || &stored[0] != &dst[:1][0] {
		t.Fatalf("%d bytes, %v", len(stored), err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("%d MiB allocated for a shard of 128, of which %d are left", n>>20, left>>20)
	}
}
