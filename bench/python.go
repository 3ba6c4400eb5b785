package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/zarrdb/zarrdb/bench/field"
	"github.com/zarrdb/zarrdb/engine"
)

// pythonScript measures arrays as Python programs see them.
//
//go:embed python.py
var pythonScript string

// Names of our two ways in Python; figures of others have other names.
const (
	direct  = "zarrdb"
	adapted = "zarrdb through zarr-python"
)

// arrayPeers read the same Zarr arrays.
var arrayPeers = []string{"zarr-python", "zarrs", "tensorstore", "tensorstore ocdbt"}

// python measures the Python package beside other libraries, which read the same encoded
// chunks: whole arrays and random chunks with the chunk cache of the server off, small
// selections with it.
func python(ctx context.Context, b *bench) {
	if b.python == "" {
		fmt.Println("python     not measured: there is no -python")
		return
	}
	dir := b.path("python")
	check(os.Mkdir(dir, 0o755))
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "bin")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./cmd/zarrdb")
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	named("go build", func() { check(build.Run()) })
	check(os.Setenv("ZARRDB_BINARY", program))
	planes := field.Shape[0]
	if b.quick {
		planes = 64
	}
	data := filled(planes)
	defer release(data)
	for _, l := range b.layouts() {
		named(l.name, func() { l.inPython(ctx, b, dir, data, planes) })
	}
	for _, system := range []string{"zarr-python", direct, adapted, "icechunk"} {
		b.asPython(ctx, b.python, dir, "dask", system, layout{})
	}
}

// inPython measures one layout.
func (l layout) inPython(ctx context.Context, b *bench, dir string, data []byte, planes int) {
	path := filepath.Join(dir, "field.zdb")
	defer clean(dir)
	db := must(engine.Create(ctx, path, nil))
	l.write(ctx, db, data, planes)
	check(db.Close())
	exportForeign(ctx, path, filepath.Join(dir, "field.zarr"), engine.ExportOptions{})
	all := func(part string) {
		for _, system := range append([]string{direct, adapted}, arrayPeers...) {
			// tensorstore cannot be used after fork, and its OCDBT database is made by reading.
			if part == "loader" && strings.HasPrefix(system, "tensorstore") || part == "write" && system == "tensorstore ocdbt" {
				continue
			}
			b.asPython(ctx, b.python, dir, part, system, l)
		}
	}
	withHolder(ctx, path, func() {
		all("read")
		all("write")
	})
	if l.name == "none" || l.name == "blosc-lz4-64K" {
		l.lmdb(ctx, b, dir, data)
	}
	if l.name == "blosc-lz4" {
		all("cached")
		all("loader")
		b.asPython(ctx, b.python, dir, "start", direct, l)
	}
}

// withHolder runs fn while another process has the database open, without a chunk cache.
func withHolder(ctx context.Context, path string, fn func()) {
	holder := play(ctx, "wait", path)
	defer holder.end()
	holder.line()
	fn()
}

// lmdb measures zarr-python 2 over LMDB, which has an environment of its own.
func (l layout) lmdb(ctx context.Context, b *bench, dir string, data []byte) {
	if b.python2 != "" {
		check(os.WriteFile(filepath.Join(dir, "field.raw"), data, 0o644))
		b.asPython(ctx, b.python2, dir, "lmdb", "zarr2 + LMDB", l)
	}
}

func (b *bench) asPython(ctx context.Context, python, dir, part, system string, l layout) {
	chunks := strings.Trim(strings.ReplaceAll(fmt.Sprint(l.chunks), " ", ","), "[]")
	b.script(ctx, python, pythonScript, part, map[string]any{
		"dir": dir, "system": system, "variant": l.name, "chunks": chunks, "package": must(filepath.Abs("python")), "quick": b.quick,
	})
}

// clean removes the arrays of a layout.
func clean(dir string) {
	for _, name := range []string{"field.zdb", "field.zarr", "field.ocdbt", "field.lmdb", "field.raw"} {
		_ = os.RemoveAll(filepath.Join(dir, name))
	}
}
