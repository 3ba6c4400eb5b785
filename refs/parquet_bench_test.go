package refs_test

import (
	"fmt"
	"testing"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/refs/parquet"
)

func BenchmarkReadParquet(b *testing.B) {
	const n, record = 1_000_000, 100_000
	for _, per := range []int{100, 1} {
		dir := kv.NewMem()
		_ = dir.Set(b.Context(), ".zmetadata", fmt.Appendf(nil, `{"metadata":{"t/.zarray":{"shape":[%d,100,10],"chunks":[1,1,1]}},"record_size":%d}`, n/1000, record))
		for p := range n / record {
			var t parquet.Table
			for i := range record {
				k := (p*record + i)
				if f := k / per; f >= 0 && k%per == 0 {
					t.Paths = append(t.Paths, fmt.Sprintf("s3://some-bucket/era5/2020/file_%06d.nc", f))
				}
				t.Path = append(t.Path, int32(len(t.Paths)-1))
				t.Offset = append(t.Offset, 4000+int64(k%100)*1_048_576)
				t.Size = append(t.Size, 1_000_000+int64(k*7919%48_000))
			}
			f, err := t.Append(nil)
			if err != nil {
				b.Fatal(err)
			}
			_ = dir.Set(b.Context(), fmt.Sprintf("t/refs.%d.parq", p), f)
		}
		b.Run(fmt.Sprintf("per_file_%d", per), func(b *testing.B) {
			got := 0
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range refs.ReadParquet(b.Context(), dir, nil) {
					if err != nil {
						b.Fatal(err)
					}
					got++
				}
			}
			b.ReportMetric(float64(got)/b.Elapsed().Seconds()/1e6, "Mrefs/s")
		})
	}
}

func BenchmarkWriteParquet(b *testing.B) {
	const n = 1_000_000
	set := append(bigSet(n, 100, `{"temperature/.zarray": {"shape": [1000, 100, 10], "chunks": [1, 1, 1]},`, "s3://some-bucket/era5/2020/file_%06d.nc"), '}')
	entries := collect(b, refs.ReadJSON(b.Context(), kv.Bytes(set), nil))
	b.Run("large", func(b *testing.B) {
		for b.Loop() {
			if err := refs.WriteParquet(b.Context(), kv.NewMem(), sequence(entries, nil), nil); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds()/1e6, "Mrefs/s")
	})
	var small []refs.Entry
	for i := range 1000 {
		small = append(small, text(fmt.Sprintf("a%d/.zarray", i), `{"shape": [1], "chunks": [1]}`), ranged(fmt.Sprintf("a%d/0", i), 1, 2))
	}
	b.Run("small_arrays", func(b *testing.B) {
		for b.Loop() {
			if err := refs.WriteParquet(b.Context(), kv.NewMem(), sequence(small, nil), nil); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "ms/array")
	})
}
