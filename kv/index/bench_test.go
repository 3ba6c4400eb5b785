package index

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/digest"
)

// benchPages makes n pages of 4 KiB with random names.
func benchPages(b *testing.B, n int, o *Options) (*Index, []digest.Sum) {
	b.Helper()
	x := mustOpen(b, filepath.Join(b.TempDir(), "d"), o)
	b.Cleanup(func() { mustClose(b, x) })
	names := make([]digest.Sum, n)
	page := make([]byte, 4096)
	rng := rand.NewChaCha8([32]byte{1})
	batch := x.NewBatch()
	for i := range names {
		_, _ = rng.Read(page)
		names[i] = digest.Of(page)
		batch.PutPage(names[i], page)
		if batch.Len() > 4<<20 || i == n-1 {
			must.Do(b, batch.Commit(false))
			batch.Close()
			batch = x.NewBatch()
		}
	}
	batch.Close()
	must.Do(b, x.Flush())
	return x, names
}

func BenchmarkGetPage(b *testing.B) {
	for _, c := range []struct {
		name  string
		cache int64
	}{{"cached", 256 << 20}, {"uncached", 1 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			x, names := benchPages(b, 20_000, &Options{Create: true, CacheBytes: c.cache})
			ctx := context.Background()
			for _, name := range names {
				if _, err := x.GetPage(ctx, name); err != nil {
					b.Fatal(err)
				}
			}
			rng := rand.New(rand.NewPCG(1, 1))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := x.GetPage(ctx, names[rng.IntN(len(names))]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("missing", func(b *testing.B) {
		x, names := benchPages(b, 20_000, &Options{Create: true})
		ctx := context.Background()
		var i uint64
		for b.Loop() {
			i++
			name := names[i%uint64(len(names))]
			binary.LittleEndian.PutUint64(name[8:], i)
			if _, err := x.GetPage(ctx, name); err != ErrNotFound {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCommit writes what a small commit writes: six pages and a few keys.
func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 16} {
		for _, size := range []int{100, 12 << 10} {
			b.Run(fmt.Sprintf("%d/%dB", writers, size), func(b *testing.B) {
				x := mustOpen(b, filepath.Join(b.TempDir(), "d"), &Options{Create: true})
				defer mustClose(b, x)
				value := make([]byte, size)
				var n atomic.Uint64
				b.SetParallelism(max(1, writers/2)) // two processors
				run := func() {
					batch := x.NewBatch()
					batch.Set(SpaceMeta, binary.BigEndian.AppendUint64(nil, n.Add(1)), value)
					if err := batch.Commit(true); err != nil {
						b.Error(err)
					}
					batch.Close()
				}
				if writers == 1 {
					for b.Loop() {
						run()
					}
					return
				}
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						run()
					}
				})
			})
		}
	}
}

// BenchmarkOpen opens an index with ten million entries. Making it takes a
// minute, so it needs ZARRDB_LONG.
func BenchmarkOpen(b *testing.B) {
	if os.Getenv("ZARRDB_LONG") == "" {
		b.Skip("needs ZARRDB_LONG")
	}
	dir := filepath.Join(b.TempDir(), "d")
	x := mustOpen(b, dir, &Options{Create: true})
	list := func(yield func(Page, error) bool) {
		var name digest.Sum
		for i := range uint64(10_000_000) {
			binary.BigEndian.PutUint64(name[:], i*0x1234567)
			if !yield(Page{name, name[:]}, nil) {
				return
			}
		}
	}
	must.Do(b, x.Ingest(list))
	mustClose(b, x)
	for b.Loop() {
		mustClose(b, mustOpen(b, dir, nil))
	}
}

func BenchmarkIngest(b *testing.B) {
	x := mustOpen(b, filepath.Join(b.TempDir(), "d"), &Options{Create: true})
	defer mustClose(b, x)
	page := make([]byte, 4096)
	round := uint64(0)
	b.SetBytes(10_000 * 4096)
	for b.Loop() {
		round++
		must.Do(b, x.Ingest(func(yield func(Page, error) bool) {
			var name digest.Sum
			for i := range uint64(10_000) {
				binary.BigEndian.PutUint64(name[:], i*0x12345678912)
				binary.BigEndian.PutUint64(name[8:], round)
				if !yield(Page{name, page}, nil) {
					return
				}
			}
		}))
	}
}
