package main

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

// limits measures what this machine can do, so that the other figures can be
// read: copying memory and taking it from the system, reading from the page
// cache, and writing to disk.
func limits(_ context.Context, b *bench) error {
	src, dst := make([]byte, 256<<20), make([]byte, 256<<20)
	copy(dst, src) // touches every page
	var best time.Duration
	for range 5 {
		start := time.Now()
		copy(dst, src)
		if d := time.Since(start); best == 0 || d < best {
			best = d
		}
	}
	b.add("limits", "memcpy", "rate", gbps(len(src), best), "GB/s")
	b.add("limits", "memory", "first touch of 4 KiB", micros(firstTouch(16<<10)), "us")

	f, err := os.Create(b.path("limits"))
	if err != nil {
		return err
	}
	defer f.Close()
	start := time.Now()
	for i := range 4 {
		if _, err := f.WriteAt(src, int64(i*len(src))); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	b.add("limits", "disk", "write+fsync 1 GiB", gbps(4*len(src), time.Since(start)), "GB/s")
	var syncs []time.Duration
	for i := range 200 {
		start := time.Now()
		if _, err := f.WriteAt(src[:4096], int64(i)*4096); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		syncs = append(syncs, time.Since(start))
	}
	b.add("limits", "disk", "fsync p50", micros(quantile(syncs, 0.5)), "us")
	rng, reads := rand.New(rand.NewPCG(1, 1)), make([]time.Duration, 10_000)
	for i := range reads {
		at := rng.Int64N(4*int64(len(src))/2048) * 2048
		start := time.Now()
		if _, err := f.ReadAt(dst[:2048], at); err != nil {
			return err
		}
		reads[i] = time.Since(start)
	}
	b.add("limits", "page cache", "read of 2 KiB p50", micros(quantile(reads, 0.5)), "us")
	return os.Remove(f.Name())
}

// firstTouch is how long the first write to a piece of 4 KiB of so many takes,
// in memory that the program did not have before.
func firstTouch(pieces int) time.Duration {
	b := make([]byte, pieces<<12)
	start := time.Now()
	for i := range pieces {
		b[i<<12] = 1
	}
	return time.Since(start) / time.Duration(pieces)
}

func gbps(bytes int, d time.Duration) float64 { return float64(bytes) / 1e9 / d.Seconds() }

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// quantile sorts its argument.
func quantile(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[min(int(q*float64(len(d))), len(d)-1)]
}
