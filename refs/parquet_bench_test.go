package refs_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

// bigParquet writes a set of n references, some to each file.
func bigParquet(b *testing.B, n, perFile int) *kv.Mem {
	b.Helper()
	entries := func(yield func(refs.Entry, error) bool) {
		if !yield(text("t/.zarray", fmt.Sprintf(`{"shape": [%d, 100, 10], "chunks": [1, 1, 1]}`, n/1000)), nil) {
			return
		}
		for i := range n {
			ref := refs.Reference{
				URL:    fmt.Sprintf("s3://some-bucket/era5/2020/file_%06d.nc", i/perFile),
				Offset: 4000 + int64(i%100)*1_048_576, Length: 1_000_000 + int64(i*7919%48_000),
			}
			if !yield(refs.Entry{Key: fmt.Sprintf("t/%d.%d.%d", i/1000, i/10%100, i%10), Reference: ref}, nil) {
				return
			}
		}
	}
	dir := kv.NewMem()
	must.Do(b, refs.WriteParquet(b.Context(), dir, entries, nil))
	return dir
}

// BenchmarkReadParquet reads sets key by key and as columns. With -cpu 1, the result is the
// speed of a single core.
func BenchmarkReadParquet(b *testing.B) {
	const n = 1_000_000
	for _, per := range []int{100, 1} {
		dir := bigParquet(b, n, per)
		b.Run(fmt.Sprintf("entries/per_file_%d", per), func(b *testing.B) {
			got := 0
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range refs.ReadParquet(b.Context(), dir, nil) {
					must.Do(b, err)
					got++
				}
			}
			b.ReportMetric(float64(got)/b.Elapsed().Seconds()/1e6, "Mrefs/s")
		})
		b.Run(fmt.Sprintf("batches/per_file_%d", per), func(b *testing.B) {
			got := 0
			b.ReportAllocs()
			for b.Loop() {
				set, err := refs.OpenParquetSet(b.Context(), dir, nil)
				must.Do(b, err)
				for _, a := range set.Arrays() {
					for batch, err := range set.Batches(b.Context(), &a) {
						must.Do(b, err)
						got += batch.Len()
					}
				}
			}
			b.ReportMetric(float64(got)/b.Elapsed().Seconds()/1e6, "Mrefs/s")
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	view, err := refs.OpenParquet(b.Context(), bigParquet(b, 1_000_000, 100), nil)
	must.Do(b, err)
	rnd := rand.New(rand.NewPCG(1, 2))
	var key []byte
	for b.Loop() {
		i := rnd.IntN(1_000_000)
		key = fmt.Appendf(key[:0], "t/%d.%d.%d", i/1000, i/10%100, i%10)
		if _, err := view.Lookup(b.Context(), string(key)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriteParquet(b *testing.B) {
	const n = 1_000_000
	set := append(bigSet(n, 100, `{"temperature/.zarray": {"shape": [1000, 100, 10], "chunks": [1, 1, 1]},`, "s3://some-bucket/era5/2020/file_%06d.nc"), '}')
	entries := collect(b, refs.ReadJSON(b.Context(), kv.Bytes(set), nil))
	b.Run("large", func(b *testing.B) {
		for b.Loop() {
			must.Do(b, refs.WriteParquet(b.Context(), kv.NewMem(), sequence(entries, nil), nil))
		}
		b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds()/1e6, "Mrefs/s")
	})
	var small []refs.Entry
	for i := range 1000 {
		small = append(small, text(fmt.Sprintf("a%d/.zarray", i), `{"shape": [1], "chunks": [1]}`), ranged(fmt.Sprintf("a%d/0", i), 1, 2))
	}
	b.Run("small_arrays", func(b *testing.B) {
		for b.Loop() {
			must.Do(b, refs.WriteParquet(b.Context(), kv.NewMem(), sequence(small, nil), nil))
		}
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "ms/array")
	})
}
