package txn

import (
	"fmt"
	"github.com/zarrdb/zarrdb/internal/must"
	"sync/atomic"
	"testing"
)

// BenchmarkCommitters measures durable commits of one key each, made by many
// goroutines on one branch of a database on disk.
func BenchmarkCommitters(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			db, err := Create(b.TempDir()+"/db", nil)
			must.Do(b, err)
			defer db.Close()
			s, err := db.Begin(bg, "main")
			must.Do(b, err)
			for i := range 10_000 { // documents, because nothing here knows arrays
				must.Do(b, s.Set(bg, fmt.Sprintf("a/c/%d", i), fmt.Appendf(nil, "%064d", i)))
			}
			if _, err := s.Commit(bg, CommitOptions{}); err != nil {
				b.Fatal(err)
			}
			var at atomic.Int64
			b.SetParallelism(max(n/2, 1)) // times GOMAXPROCS
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := at.Add(1)
					s, err := db.Begin(bg, "main")
					if err != nil {
						b.Error(err)
						return
					}
					if err := s.Set(bg, fmt.Sprintf("a/c/%d", i*7919%10_000), fmt.Appendf(nil, "%064d!", i)); err != nil {
						b.Error(err)
						return
					}
					if _, err := s.Commit(bg, CommitOptions{Message: "one"}); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}
