package main

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

// limits measures the limits of this machine, for comparison with the other
// figures: copying memory and taking it from the system, reading from the page
// cache, and writing to disk.
func limits(_ context.Context, b *bench) {
	src, dst := make([]byte, 256<<20), make([]byte, 256<<20)
	copy(dst, src) // touches every page
	b.add("limits", "memcpy", "rate", gbps(len(src), slices.Min(timed(5, func(int) { copy(dst, src) }))), "GB/s")
	b.add("limits", "memory", "first touch of 4 KiB", micros(firstTouch(16<<10)), "us")

	f := must(os.Create(b.path("limits")))
	defer os.Remove(f.Name())
	defer f.Close()
	write := took(func() {
		for i := range 4 {
			must(f.WriteAt(src, int64(i*len(src))))
		}
		check(f.Sync())
	})
	b.add("limits", "disk", "write+fsync 1 GiB", gbps(4*len(src), write), "GB/s")
	syncs := timed(200, func(i int) {
		must(f.WriteAt(src[:4096], int64(i)*4096))
		check(f.Sync())
	})
	b.add("limits", "disk", "fsync p50", micros(quantile(syncs, 0.5)), "us")
	rng := rand.New(rand.NewPCG(1, 1))
	reads := timed(10_000, func(int) { must(f.ReadAt(dst[:2048], rng.Int64N(4*int64(len(src))/2048)*2048)) })
	b.add("limits", "page cache", "read of 2 KiB p50", micros(quantile(reads, 0.5)), "us")
}

// firstTouch is how long the first write to a piece of 4 KiB of so many takes,
// in memory that the program did not have before.
func firstTouch(pieces int) time.Duration {
	b := make([]byte, pieces<<12)
	return took(func() {
		for i := range pieces {
			b[i<<12] = 1
		}
	}) / time.Duration(pieces)
}

func gbps(bytes int, d time.Duration) float64 { return float64(bytes) / 1e9 / d.Seconds() }

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// quantile sorts its argument.
func quantile(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[min(int(q*float64(len(d))), len(d)-1)]
}
