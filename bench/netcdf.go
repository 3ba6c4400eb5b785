package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/zarrdb/zarrdb/bench/field"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// netcdfChunk is the shape of the chunks: 1 MiB.
var netcdfChunk = []int64{1, 512, 512}

// netcdf reads chunks as NetCDF-4 files hold them, shuffled and deflated, through
// references to one file.
func netcdf(ctx context.Context, b *bench) {
	planes := 64
	if b.quick {
		planes = 8
	}
	for _, level := range []int{1, 4} {
		netcdfLevel(ctx, b, planes, level)
	}
}

func netcdfLevel(ctx context.Context, b *bench, planes, level int) {
	dir := b.path("netcdf")
	defer os.RemoveAll(dir)
	check(os.MkdirAll(dir, 0o777))
	data := make([]byte, bytesOf(planes))
	field.Fill(data, 0)
	set, file := filepath.Join(dir, "refs.json"), filepath.Join(dir, "chunks.nc")
	variant := fmt.Sprintf("shuffle, zlib %d", level)
	b.add("netcdf", variant, "size", float64(writeNetCDF(ctx, set, file, data, level))/float64(len(data)), "of raw")

	path := filepath.Join(dir, "t.zdb")
	db := must(engine.Create(ctx, path, nil))
	src := must(engine.OpenSource(ctx, set, nil))
	must(db.Import(ctx, src, engine.ImportOptions{Link: true}))
	check(errors.Join(src.Close(), db.Close()))
	for _, workers := range []int{1, 0} {
		readNetCDF(ctx, b, path, variant, data, workers)
	}
	args := map[string]any{"workload": "netcdf", "variant": variant, "set": set, "file": file, "bytes": len(data)}
	b.beside(ctx, peersScript, "numcodecs", args)
	b.beside(ctx, peersScript, "zarr_read", args)
}

// writeNetCDF puts the chunks of the field one behind the other into a file,
// writes a set that refers to them, and returns the size of the file.
func writeNetCDF(ctx context.Context, set, file string, data []byte, level int) int {
	doc := fmt.Sprintf(`{"zarr_format":2,"shape":[%d,%d,%d],"chunks":[%d,%d,%d],"dtype":"<f4","compressor":{"id":"zlib","level":%d},"filters":[{"id":"shuffle","elementsize":4}],"fill_value":0,"order":"C"}`,
		len(data)/bytesOf(1), field.Shape[1], field.Shape[2], netcdfChunk[0], netcdfChunk[1], netcdfChunk[2], level)
	mem := kv.NewMem()
	check(mem.Set(ctx, "t/.zarray", []byte(doc)))
	a := must(zarr.OpenArray(ctx, mem, "t", nil))
	check(a.WriteBytes(ctx, zarr.Sel(), data))
	var keys []string
	for c, err := range a.Chunks(ctx, zarr.Sel()) {
		check(err)
		keys = append(keys, c.Key)
	}
	return writeSet(ctx, mem, fmt.Sprintf(`".zgroup":"{\"zarr_format\":2}","t/.zarray":%q`, doc), keys, file, set)
}

// readNetCDF reads the array with that many workers, as many as there are
// processors if 0.
func readNetCDF(ctx context.Context, b *bench, path, variant string, data []byte, workers int) {
	o := engine.Options{Workers: workers, Follow: engine.Follow{Allow: []string{filepath.Dir(path) + "/"}}}
	openArray(ctx, path, "t", o, func(a *zarr.Array) {
		dst := make([]byte, len(data))
		best := slices.Min(timed(3, func(int) { check(a.ReadBytes(ctx, zarr.Sel(), dst)) }))
		readsBack(dst, data)
		if workers == 1 {
			b.add("netcdf", variant, "decode, 1 thread", gbps(len(dst), best), "GB/s")
			return
		}
		b.add("netcdf", variant, "read", gbps(len(dst), best), "GB/s")
		times := chunkTimes(ctx, a, netcdfChunk, 200, rand.NewPCG(4, 4), func(size int64) []byte { return dst[:size] })
		b.add("netcdf", variant, "chunk p50", micros(quantile(times, 0.5)), "us")
	})
}
