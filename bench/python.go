package main

import (
	"context"
	_ "embed"
	"errors"
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
func python(ctx context.Context, b *bench) error {
	if b.python == "" {
		fmt.Println("python     not measured: there is no -python")
		return nil
	}
	dir := b.path("python")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "bin")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./cmd/zarrdb")
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	if err := os.Setenv("ZARRDB_BINARY", program); err != nil {
		return err
	}
	planes := field.Shape[0]
	if b.quick {
		planes = 64
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
		if err := l.inPython(ctx, b, dir, data, planes); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	var errs []error
	for _, system := range []string{"zarr-python", direct, adapted, "icechunk"} {
		errs = append(errs, b.asPython(ctx, b.python, dir, "dask", system, layout{}))
	}
	return errors.Join(errs...)
}

// inPython measures one layout.
func (l layout) inPython(ctx context.Context, b *bench, dir string, data []byte, planes int) error {
	db := filepath.Join(dir, "field.zdb")
	defer clean(dir)
	e, err := engine.Create(ctx, db, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(l.write(ctx, e, data, planes), e.Close()); err != nil {
		return err
	}
	src, err := engine.OpenSource(ctx, db+"/|zarrdb:@branch.main", nil)
	if err != nil {
		return err
	}
	_, err = engine.Export(ctx, src, filepath.Join(dir, "field.zarr"), engine.ExportOptions{})
	if err := errors.Join(err, src.Close()); err != nil {
		return err
	}
	holder, err := play(ctx, "wait", db) // without a chunk cache
	if err != nil {
		return err
	}
	_, err = holder.line()
	for _, system := range append([]string{direct, adapted}, arrayPeers...) {
		err = errors.Join(err, b.asPython(ctx, b.python, dir, "read", system, l))
	}
	holder.end()
	if err != nil {
		return err
	}
	if l.name == "none" || l.name == "blosc-lz4-64K" {
		if err := l.lmdb(ctx, b, dir, data); err != nil {
			return err
		}
	}
	if l.name != "blosc-lz4" {
		return nil
	}
	for _, part := range []string{"cached", "loader"} {
		for _, system := range append([]string{direct, adapted}, arrayPeers...) {
			if part == "loader" && strings.HasPrefix(system, "tensorstore") {
				continue // it cannot be used after fork
			}
			err = errors.Join(err, b.asPython(ctx, b.python, dir, part, system, l))
		}
	}
	return errors.Join(err, b.asPython(ctx, b.python, dir, "start", direct, l))
}

// lmdb measures zarr-python 2 over LMDB, which has an environment of its own.
func (l layout) lmdb(ctx context.Context, b *bench, dir string, data []byte) error {
	if b.python2 == "" {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, "field.raw"), data, 0o644); err != nil {
		return err
	}
	return b.asPython(ctx, b.python2, dir, "lmdb", "zarr2 + LMDB", l)
}

func (b *bench) asPython(ctx context.Context, python, dir, part, system string, l layout) error {
	pkg, err := filepath.Abs("python")
	if err != nil {
		return err
	}
	chunks := strings.Trim(strings.ReplaceAll(fmt.Sprint(l.chunks), " ", ","), "[]")
	return b.script(ctx, python, pythonScript, part, map[string]any{
		"dir": dir, "system": system, "variant": l.name, "chunks": chunks, "package": pkg, "quick": b.quick,
	})
}

// clean removes the arrays of a layout.
func clean(dir string) {
	for _, name := range []string{"field.zdb", "field.zarr", "field.ocdbt", "field.lmdb", "field.raw"} {
		_ = os.RemoveAll(filepath.Join(dir, name))
	}
}
