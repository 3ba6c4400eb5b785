package main

import (
	"context"
	"os"
	"slices"
	"time"
)

// limits measures what this machine can do, so that the other figures can be
// read: copying memory and writing to disk.
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
	return os.Remove(f.Name())
}

func gbps(bytes int, d time.Duration) float64 { return float64(bytes) / 1e9 / d.Seconds() }

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// quantile sorts its argument.
func quantile(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[min(int(q*float64(len(d))), len(d)-1)]
}
