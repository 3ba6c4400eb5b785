package codecs_test

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/zarrdb/zarrdb/codecs"
)

// Once the pools are warm, no chunk costs a buffer, nor an inner chunk an
// allocation.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
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
				if err := run(); err != nil {
					t.Fatal(err)
				}
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
