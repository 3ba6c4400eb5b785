package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/zarrdb/zarrdb/bench/field"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// netcdfChunk is the shape of the chunks: 1 MiB.
var netcdfChunk = []int64{1, 512, 512}

// netcdf reads chunks as NetCDF-4 files hold them, shuffled and deflated, through
// references to one file.
func netcdf(ctx context.Context, b *bench) error {
	planes := 64
	if b.quick {
		planes = 8
	}
	for _, level := range []int{1, 4} {
		if err := netcdfLevel(ctx, b, planes, level); err != nil {
			return err
		}
	}
	return nil
}

func netcdfLevel(ctx context.Context, b *bench, planes, level int) error {
	dir := b.path("netcdf")
	defer os.RemoveAll(dir)
	data := make([]byte, planes*field.Shape[1]*field.Shape[2]*4)
	field.Fill(data, 0)
	set, file := filepath.Join(dir, "refs.json"), filepath.Join(dir, "chunks.nc")
	ratio, err := writeNetCDF(ctx, dir, set, file, data, level)
	if err != nil {
		return err
	}
	variant := fmt.Sprintf("shuffle, zlib %d", level)
	b.add("netcdf", variant, "size", ratio, "of raw")

	path := filepath.Join(dir, "t.zdb")
	db, err := engine.Create(ctx, path, nil)
	if err != nil {
		return err
	}
	src, err := engine.OpenSource(ctx, set, nil)
	if err == nil {
		_, err = db.Import(ctx, src, engine.ImportOptions{Link: true})
		err = errors.Join(err, src.Close())
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	for _, workers := range []int{1, 0} {
		if err := readNetCDF(ctx, b, path, variant, data, workers); err != nil {
			return err
		}
	}
	args := map[string]any{"workload": "netcdf", "variant": variant, "set": set, "file": file, "bytes": len(data)}
	return errors.Join(b.beside(ctx, "numcodecs", args), b.beside(ctx, "zarr_read", args))
}

// writeNetCDF puts the chunks of the field one behind the other into a file, and
// writes a set that refers to them.
func writeNetCDF(ctx context.Context, dir, set, file string, data []byte, level int) (ratio float64, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, err
	}
	doc := fmt.Sprintf(`{"zarr_format":2,"shape":[%d,%d,%d],"chunks":[%d,%d,%d],"dtype":"<f4","compressor":{"id":"zlib","level":%d},"filters":[{"id":"shuffle","elementsize":4}],"fill_value":0,"order":"C"}`,
		len(data)/(4*field.Shape[1]*field.Shape[2]), field.Shape[1], field.Shape[2], netcdfChunk[0], netcdfChunk[1], netcdfChunk[2], level)
	mem := kv.NewMem()
	if err := mem.Set(ctx, "t/.zarray", []byte(doc)); err != nil {
		return 0, err
	}
	a, err := zarr.OpenArray(ctx, mem, "t", nil)
	if err == nil {
		err = a.WriteBytes(ctx, zarr.Sel(), data)
	}
	if err != nil {
		return 0, err
	}
	var all, refs bytes.Buffer
	fmt.Fprintf(&refs, `{".zgroup":"{\"zarr_format\":2}","t/.zarray":%q`, doc)
	for c, err := range a.Chunks(ctx, zarr.Sel()) {
		if err != nil {
			return 0, err
		}
		v, err := mem.Get(ctx, c.Key, kv.All())
		if err != nil {
			return 0, err
		}
		fmt.Fprintf(&refs, ",\n%q:[%q,%d,%d]", c.Key, file, all.Len(), len(v))
		all.Write(v)
	}
	refs.WriteString("}\n")
	return float64(all.Len()) / float64(len(data)), errors.Join(os.WriteFile(file, all.Bytes(), 0o666), os.WriteFile(set, refs.Bytes(), 0o666))
}

// readNetCDF reads the array with that many workers, as many as there are
// processors if 0.
func readNetCDF(ctx context.Context, b *bench, path, variant string, data []byte, workers int) error {
	db, err := engine.Open(ctx, path, &engine.Options{ReadOnly: true, CacheBytes: -1, Workers: workers, Follow: engine.Follow{Allow: []string{filepath.Dir(path) + "/"}}})
	if err != nil {
		return err
	}
	defer db.Close()
	return db.View(ctx, "main", func(s *engine.Snapshot) error {
		a, err := s.Array(ctx, "t")
		if err != nil {
			return err
		}
		dst := make([]byte, len(data))
		best := time.Duration(0)
		for range 3 {
			start := time.Now()
			if err := a.ReadBytes(ctx, zarr.Sel(), dst); err != nil {
				return err
			}
			if d := time.Since(start); best == 0 || d < best {
				best = d
			}
		}
		if !bytes.Equal(dst, data) {
			return errors.New("the field does not read back")
		}
		if workers == 1 {
			b.add("netcdf", variant, "decode, 1 thread", gbps(len(dst), best), "GB/s")
			return nil
		}
		b.add("netcdf", variant, "read", gbps(len(dst), best), "GB/s")
		rng, shape := rand.New(rand.NewPCG(4, 4)), a.Shape()
		times := make([]time.Duration, 200)
		for i := range times {
			var idx [3]zarr.Index
			for d, n := range netcdfChunk {
				lo := rng.Int64N(shape[d]/n) * n
				idx[d] = zarr.Slice(lo, lo+n, 1)
			}
			start := time.Now()
			if err := a.ReadBytes(ctx, zarr.Sel(idx[:]...), dst[:4*netcdfChunk[0]*netcdfChunk[1]*netcdfChunk[2]]); err != nil {
				return err
			}
			times[i] = time.Since(start)
		}
		b.add("netcdf", variant, "chunk p50", micros(quantile(times, 0.5)), "us")
		return nil
	})
}
