package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb/bench/field"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
)

// layout is how the field is stored in one variant.
type layout struct {
	name          string
	chunks, shard []int64
	codecs        string
	planes        int // of the field; all if 0
}

func codec(name, configuration string) string {
	return fmt.Sprintf(`[{"name":"bytes","configuration":{"endian":"little"}},{"name":%q,"configuration":%s}]`, name, configuration)
}

func blosc(cname string, level int) string {
	return codec("blosc", fmt.Sprintf(`{"cname":%q,"clevel":%d,"shuffle":"shuffle","typesize":4,"blocksize":0}`, cname, level))
}

func layouts() []layout {
	big := []int64{32, 128, 128}
	return []layout{
		{name: "none", chunks: big, codecs: `[{"name":"bytes","configuration":{"endian":"little"}}]`},
		{name: "blosc-lz4", chunks: big, codecs: blosc("lz4", 5)},
		{name: "blosc-zstd", chunks: big, codecs: blosc("zstd", 3)},
		{name: "zstd-3", chunks: big, codecs: codec("zstd", `{"level":3,"checksum":false}`)},
		{name: "gzip-5", chunks: big, codecs: codec("gzip", `{"level":5}`), planes: 64},
		{name: "shard-blosc-lz4", chunks: []int64{32, 64, 64}, shard: []int64{128, 512, 512}, codecs: blosc("lz4", 5)},
		{name: "blosc-lz4-64K", chunks: []int64{4, 64, 64}, codecs: blosc("lz4", 5)},
	}
}

// readWrite writes the field, reads it whole, and reads single chunks.
func readWrite(ctx context.Context, b *bench) error {
	planes := field.Shape[0]
	if b.quick {
		planes = 32
	}
	data, err := memory(planes * field.Shape[1] * field.Shape[2] * 4)
	if err != nil {
		return err
	}
	defer release(data)
	field.Fill(data, 0)
	for _, l := range layouts() {
		if b.quick && l.shard != nil {
			continue // a shard is deeper than the small field
		}
		n := planes
		if l.planes > 0 {
			n = min(n, l.planes)
		}
		if err := l.measure(ctx, b, data[:n*field.Shape[1]*field.Shape[2]*4], n); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

func (l layout) measure(ctx context.Context, b *bench, data []byte, planes int) error {
	dir := b.path("field.zdb")
	defer os.RemoveAll(dir)
	db, err := engine.Create(ctx, dir, &engine.Options{CacheBytes: -1})
	if err != nil {
		return err
	}
	start := time.Now()
	if err := l.write(ctx, db, data, planes); err != nil {
		return err
	}
	b.add("write", l.name, "durable", gbps(len(data), time.Since(start)), "GB/s")
	size, err := diskBytes(dir)
	if err != nil {
		return err
	}
	b.add("write", l.name, "disk", float64(size)/float64(len(data)), "of raw")
	if err := db.Close(); err != nil {
		return err
	}
	if err := l.readWhole(ctx, b, dir, data); err != nil {
		return err
	}
	return l.readChunks(ctx, b, dir, l.shape(planes))
}

// shape is that of an array of some planes of the field.
func (layout) shape(planes int) []int64 {
	return []int64{int64(planes), int64(field.Shape[1]), int64(field.Shape[2])}
}

// write commits an array of some planes of the field.
func (l layout) write(ctx context.Context, db *engine.DB, data []byte, planes int) error {
	spec := zarr.Spec{Shape: l.shape(planes), Chunks: l.chunks, Shards: l.shard, DataType: "float32", Codecs: json.RawMessage(l.codecs)}
	_, err := db.Update(ctx, "main", "the field", func(s *engine.Session) error {
		a, err := s.CreateArray(ctx, "field", spec)
		if err != nil {
			return err
		}
		return a.WriteBytes(ctx, zarr.Sel(), data)
	})
	return err
}

// readWhole reads everything, cold where the page cache can be dropped, then
// hot. The destination is touched before, as a program that reads twice has it.
func (l layout) readWhole(ctx context.Context, b *bench, dir string, data []byte) error {
	cold := dropCaches() == nil
	db, err := engine.Open(ctx, dir, &engine.Options{ReadOnly: true, CacheBytes: -1})
	if err != nil {
		return err
	}
	defer db.Close()
	return db.View(ctx, "main", func(s *engine.Snapshot) error {
		a, err := s.Array(ctx, "field")
		if err != nil {
			return err
		}
		dst, err := memory(len(data))
		if err != nil {
			return err
		}
		defer release(dst)
		for i := range dst {
			dst[i] = 1
		}
		var best time.Duration
		for i := range 4 {
			start := time.Now()
			if err := a.ReadBytes(ctx, zarr.Sel(), dst); err != nil {
				return err
			}
			d := time.Since(start)
			if i == 0 && cold {
				b.add("read", l.name, "cold", gbps(len(dst), d), "GB/s")
			}
			if i > 0 && (best == 0 || d < best) {
				best = d
			}
		}
		if !bytes.Equal(dst, data) {
			return fmt.Errorf("the field does not read back")
		}
		b.add("read", l.name, "hot", gbps(len(dst), best), "GB/s")
		return nil
	})
}

// readChunks reads single chunks (inner chunks of shards) at random, with one
// and two threads.
func (l layout) readChunks(ctx context.Context, b *bench, dir string, shape []int64) error {
	db, err := engine.Open(ctx, dir, &engine.Options{ReadOnly: true, CacheBytes: -1, Workers: 1})
	if err != nil {
		return err
	}
	defer db.Close()
	return db.View(ctx, "main", func(s *engine.Snapshot) error {
		a, err := s.Array(ctx, "field")
		if err != nil {
			return err
		}
		n := 2000
		if b.quick {
			n = 200
		}
		for _, threads := range []int{1, 2} {
			times := make([][]time.Duration, threads)
			errs := make([]error, threads)
			start := time.Now()
			var wg sync.WaitGroup
			for t := range threads {
				wg.Go(func() { times[t], errs[t] = l.chunkTimes(ctx, a, shape, n, uint64(t)) })
			}
			wg.Wait()
			elapsed := time.Since(start)
			var all []time.Duration
			for t := range threads {
				if errs[t] != nil {
					return errs[t]
				}
				all = append(all, times[t]...)
			}
			bytes := 4 * int(l.chunks[0]*l.chunks[1]*l.chunks[2])
			name := fmt.Sprintf("%d thread", threads)
			b.add("chunk", l.name, name+" p50", micros(quantile(all, 0.5)), "us")
			b.add("chunk", l.name, name+" p99", micros(quantile(all, 0.99)), "us")
			b.add("chunk", l.name, name, gbps(bytes*len(all), elapsed), "GB/s")
		}
		return nil
	})
}

func (l layout) chunkTimes(ctx context.Context, a *zarr.Array, shape []int64, n int, seed uint64) ([]time.Duration, error) {
	rng := rand.New(rand.NewPCG(seed, 3))
	dst := make([]byte, 4*l.chunks[0]*l.chunks[1]*l.chunks[2])
	times := make([]time.Duration, n)
	for i := range times {
		var idx [3]zarr.Index
		for d := range idx {
			lo := rng.Int64N(shape[d]/l.chunks[d]) * l.chunks[d]
			idx[d] = zarr.Slice(lo, lo+l.chunks[d], 1)
		}
		start := time.Now()
		if err := a.ReadBytes(ctx, zarr.Sel(idx[:]...), dst); err != nil {
			return nil, err
		}
		times[i] = time.Since(start)
	}
	return times, nil
}

// dropCaches empties the page cache, which only root may.
func dropCaches() error {
	return os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)
}

func diskBytes(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
