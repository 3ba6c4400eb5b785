package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/zarrdb/zarrdb/bench/field"
	"github.com/zarrdb/zarrdb/engine"
)

// pythonScript measures arrays as Python programs see them.
//
//go:embed python.py
var pythonScript string

// python measures the work of Python programs around arrays: the workers of a data
// loader, dask, and the first value of a new process.
func python(ctx context.Context, b *bench) {
	if b.python == "" {
		fmt.Println("python     not measured: there is no -python")
		return
	}
	dir := b.path("python")
	check(os.Mkdir(dir, 0o755))
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "bin")
	buildProgram(ctx, program)
	check(os.Setenv("ZARRDB_BINARY", program))
	planes := field.Shape[0]
	if b.quick {
		planes = 64
	}
	data := filled(planes)
	defer release(data)
	l := b.layouts()[1]
	path := filepath.Join(dir, "field.zdb")
	db := must(engine.Create(ctx, path, nil))
	l.write(ctx, db, data, planes)
	check(db.Close())
	exportForeign(ctx, path, filepath.Join(dir, "field.zarr"), engine.ExportOptions{})
	for _, system := range []string{inPython, throughZarr, "zarr-python", "zarrs", "tensorstore"} {
		b.asPython(ctx, dir, "loader", system, l)
	}
	b.asPython(ctx, dir, "start", inPython, l)
	for _, system := range []string{"zarr-python", inPython, throughZarr, "icechunk"} {
		b.asPython(ctx, dir, "dask", system, layout{})
	}
}

// buildProgram builds zarrdb as users get it: its index allocates otherwise with cgo.
func buildProgram(ctx context.Context, to string) {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", to, "./cmd/zarrdb")
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	named("go build", func() { check(build.Run()) })
}

func (b *bench) asPython(ctx context.Context, dir, part, system string, l layout) {
	b.script(ctx, b.python, pythonScript, part, map[string]any{
		"dir": dir, "system": system, "variant": l.name, "package": must(filepath.Abs("python")), "quick": b.quick,
	})
}
