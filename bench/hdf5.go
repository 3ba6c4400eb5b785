package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
)

// hdf5Files links files that h5py wrote, with one chunk a record, and reads a deflated one as
// it is. Others find the same chunks and read the same values. All figures are CPU seconds.
func hdf5Files(ctx context.Context, b *bench) {
	if b.python == "" {
		return // nothing here writes such files
	}
	args := map[string]any{"workload": "hdf5", "dir": b.path("hdf5"), "files": 20, "chunks": 1000, "large": 100_000, "planes": 64}
	if b.quick {
		args["files"], args["large"], args["planes"] = 2, 1000, 4
	}
	dir := b.path("hdf5")
	defer os.RemoveAll(dir)
	check(os.MkdirAll(dir, 0o777))
	b.beside(ctx, peersScript, "hdf5_files", args)
	cpu := func(variant string, fn func()) {
		times := make([]float64, 3)
		for i := range times {
			start := cpuSeconds()
			fn()
			times[i] = cpuSeconds() - start
		}
		b.add("hdf5", variant, "CPU", slices.Min(times), "s")
	}
	link := func(names ...string) {
		path := filepath.Join(dir, "linked.zdb")
		db := must(engine.Create(ctx, path, nil))
		defer os.RemoveAll(path)
		var pieces []engine.Piece
		for _, name := range names {
			pieces = append(pieces, engine.Piece{Name: name, Open: func(ctx context.Context) (*engine.Source, error) { return engine.OpenSource(ctx, name, nil) }})
		}
		plan := must(engine.PlanAppend(ctx, pieces, engine.AppendOptions{Dim: "time", Link: true}))
		must(db.Append(ctx, plan, engine.ImportOptions{}))
		check(db.Close())
	}
	parts := must(filepath.Glob(filepath.Join(dir, "part*.nc")))
	cpu(fmt.Sprintf("%v files of %v chunks, joined", args["files"], args["chunks"]), func() { link(parts...) })
	cpu(fmt.Sprintf("a file of %v chunks", args["large"]), func() { link(filepath.Join(dir, "large.nc")) })
	var dst []byte
	cpu(fmt.Sprintf("read %v MiB, shuffle and deflate", args["planes"]), func() {
		src := must(engine.OpenSource(ctx, filepath.Join(dir, "slab.nc")+"|hdf5:v", nil))
		a, ok := must(src.Node(ctx)).Array()
		if !ok {
			check(errors.New("not an array"))
		}
		dst = slices.Grow(dst[:0], int(a.Shape()[0])<<20)[:int(a.Shape()[0])<<20]
		check(errors.Join(a.ReadBytes(ctx, zarr.Sel(), dst), src.Close()))
	})
	for _, part := range []string{"hdf5_chunk_iter", "hdf5_kerchunk", "hdf5_virtualizarr", "hdf5_read"} {
		b.beside(ctx, peersScript, part, args)
	}
}
