package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/bench/field"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// formatChunk is the shape of the chunks of the field in foreign formats: 256 KiB.
var formatChunk = []int64{4, 128, 128}

// foreignStore is the field in a foreign format: a file or folder that is exported from
// a database.
type foreignStore struct {
	variant, file string
	from          string // the database
	export        engine.ForeignOptions
	adapter       string // of the URL
	turned        bool   // is [x, y, z], not [z, y, x]
	part          string // of formats.py
	args          map[string]any
}

// foreignStores are all but the TIFF file, which nothing here exports.
func foreignStores() []foreignStore {
	tensorstore := func(driver string) map[string]any { return map[string]any{"driver": driver} }
	const own, linked, precomputed = "field.zdb", "linked.zdb", "neuroglancer_precomputed"
	return []foreignStore{
		{"icechunk, native", "native", own, engine.ForeignOptions{Format: "icechunk"}, "icechunk:", false, "icechunk", nil},
		{"icechunk, virtual", "virtual", linked, engine.ForeignOptions{Format: "icechunk"}, "icechunk:", false, "icechunk", map[string]any{"files": virtualFiles}},
		{"ocdbt, zstd", "ocdbt", own, engine.ForeignOptions{Format: "ocdbt"}, "ocdbt:", false, "tensorstore", tensorstore("zarr3")},
		{"n5, gzip", "n5", own, engine.ForeignOptions{Format: "n5"}, "n5:", false, "tensorstore", tensorstore("n5")},
		{"n5, raw", "n5raw", own, engine.ForeignOptions{Format: "n5", Compression: "raw"}, "n5:", false, "tensorstore", tensorstore("n5")},
		{"precomputed, raw", "volume", own, engine.ForeignOptions{Format: "precomputed"}, "neuroglancer-precomputed:", true, "tensorstore", tensorstore(precomputed)},
		{"precomputed, shards", "shards", own, engine.ForeignOptions{Format: "precomputed", Sharded: true}, "neuroglancer-precomputed:", true, "tensorstore", tensorstore(precomputed)},
	}
}

// virtualFiles is the folder of the file that the virtual chunks lie in.
const virtualFiles = "files"

// foreignFormats reads the field in place where foreign formats hold it, and imports
// a history of Icechunk.
func foreignFormats(ctx context.Context, b *bench) error {
	planes, reads := 32, 400
	if b.quick {
		planes, reads = 4, 20
	}
	dir := b.path("formats")
	defer os.RemoveAll(dir)
	if err := os.MkdirAll(filepath.Join(dir, virtualFiles), 0o777); err != nil {
		return err
	}
	data := make([]byte, planes*field.Shape[1]*field.Shape[2]*4)
	field.Fill(data, 0)
	if err := writeField(ctx, dir, data, planes); err != nil {
		return err
	}
	for _, s := range foreignStores() {
		if err := exportForeign(ctx, filepath.Join(dir, s.from), filepath.Join(dir, s.file), s.export); err != nil {
			return fmt.Errorf("%s: %w", s.variant, err)
		}
		chunk, want := formatChunk, data
		if s.turned {
			chunk, want = []int64{formatChunk[2], formatChunk[1], formatChunk[0], 1}, transposed(data, planes)
		}
		if err := s.measure(ctx, b, dir, chunk, want, reads); err != nil {
			return fmt.Errorf("%s: %w", s.variant, err)
		}
	}
	s := foreignStore{variant: "tiff, deflate", file: "field.tif", adapter: "tiff:", part: "tifffile"}
	if err := writeTIFF(filepath.Join(dir, s.file), data); err != nil {
		return err
	}
	if err := s.measure(ctx, b, dir, []int64{tiffTile, tiffTile, 1}, data, reads); err != nil {
		return fmt.Errorf("%s: %w", s.variant, err)
	}
	return foreignHistory(ctx, b)
}

// writeField writes the field into a database, and its chunks into a file that another
// one has links to.
func writeField(ctx context.Context, dir string, data []byte, planes int) error {
	db, err := engine.Create(ctx, filepath.Join(dir, "field.zdb"), nil)
	if err != nil {
		return err
	}
	l := layout{chunks: formatChunk, codecs: codec("zstd", `{"level":3,"checksum":false}`)}
	spec := zarr.Spec{Shape: l.shape(planes), Chunks: l.chunks, DataType: "float32", Codecs: json.RawMessage(l.codecs), DimensionNames: []string{"z", "y", "x"}}
	_, err = db.Update(ctx, "main", "field", func(s *engine.Session) error {
		a, err := s.CreateArray(ctx, "", spec)
		if err != nil {
			return err
		}
		return a.WriteBytes(ctx, zarr.Sel(), data)
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	return writeVirtual(ctx, dir)
}

// exportForeign writes a database in a format.
func exportForeign(ctx context.Context, db, dest string, o engine.ForeignOptions) error {
	src, err := engine.OpenSource(ctx, db+"/|zarrdb:@branch.main", nil)
	if err != nil {
		return err
	}
	_, err = engine.Export(ctx, src, dest, engine.ExportOptions{Foreign: o})
	return errors.Join(err, src.Close())
}

// writeVirtual puts the chunks of field.zdb one behind the other into a file, and links
// them into linked.zdb.
func writeVirtual(ctx context.Context, dir string) error {
	db, err := engine.Open(ctx, filepath.Join(dir, "field.zdb"), &engine.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	file, set := filepath.Join(dir, virtualFiles, "chunks.bin"), filepath.Join(dir, "set.json")
	var all, refs bytes.Buffer
	err = db.View(ctx, "main", func(s *engine.Snapshot) error {
		doc, err := s.Get(ctx, "zarr.json", kv.All())
		if err != nil {
			return err
		}
		fmt.Fprintf(&refs, `{"zarr.json":%q`, doc)
		for key, err := range s.List(ctx, kv.ListOptions{Prefix: "c/"}) {
			if err != nil {
				return err
			}
			v, err := s.Get(ctx, key, kv.All())
			if err != nil {
				return err
			}
			fmt.Fprintf(&refs, ",\n%q:[%q,%d,%d]", key, file, all.Len(), len(v))
			all.Write(v)
		}
		refs.WriteString("}\n")
		return nil
	})
	if err = errors.Join(err, db.Close(), os.WriteFile(file, all.Bytes(), 0o666), os.WriteFile(set, refs.Bytes(), 0o666)); err != nil {
		return err
	}
	if db, err = engine.Create(ctx, filepath.Join(dir, "linked.zdb"), nil); err != nil {
		return err
	}
	_, _, err = linkSet(ctx, db, set, "")
	return errors.Join(err, db.Close())
}

// transposed returns the field as [x, y, z], of planes that were [z, y, x].
func transposed(data []byte, planes int) []byte {
	out := make([]byte, len(data))
	ny, nx := field.Shape[1], field.Shape[2]
	for z := range planes {
		for y := range ny {
			row := data[4*(z*ny+y)*nx:]
			for x := range nx {
				copy(out[4*((x*ny+y)*planes+z):][:4], row[4*x:])
			}
		}
	}
	return out
}

// measure reads a store whole, into new memory, and random chunks of it, all from the
// page cache. Then another program does.
func (s foreignStore) measure(ctx context.Context, b *bench, dir string, chunk []int64, want []byte, reads int) error {
	path := filepath.Join(dir, s.file)
	url := "file://" + path
	if s.export.Format != "" {
		url += "/"
	}
	src, err := engine.OpenSource(ctx, url+"|"+s.adapter, &engine.SourceOptions{Follow: engine.Follow{Allow: []string{"file://" + dir + "/"}}})
	if err != nil {
		return err
	}
	defer src.Close()
	node, err := src.Node(ctx)
	if err != nil {
		return err
	}
	a, ok := node.Array()
	if !ok {
		return errors.New("not an array")
	}
	if err := s.readWhole(ctx, b, a, want); err != nil {
		return err
	}
	if err := s.readChunks(ctx, b, a, chunk, reads); err != nil {
		return err
	}
	args := map[string]any{
		"workload": "formats", "variant": s.variant, "path": path, "reads": reads,
		"sha256": fmt.Sprintf("%x", sha256.Sum256(want)), "chunk": strings.Trim(fmt.Sprint(chunk), "[]"),
	}
	for name, value := range s.args {
		args[name] = value
	}
	return b.formatsOfOthers(ctx, s.part, args)
}

func (s foreignStore) readWhole(ctx context.Context, b *bench, a *zarr.Array, want []byte) error {
	best := time.Duration(0)
	for i := range 4 {
		start := time.Now()
		dst, err := memory(len(want))
		if err != nil {
			return err
		}
		err = a.ReadBytes(ctx, zarr.Sel(), dst)
		d := time.Since(start)
		if err == nil && i == 0 && !bytes.Equal(dst, want) {
			err = errors.New("the field does not read back")
		}
		if err := errors.Join(err, release(dst)); err != nil {
			return err
		}
		if i > 0 && (best == 0 || d < best) {
			best = d
		}
	}
	b.add("formats", s.variant, "read", gbps(len(want), best), "GB/s")
	return nil
}

func (s foreignStore) readChunks(ctx context.Context, b *bench, a *zarr.Array, chunk []int64, reads int) error {
	rng, shape := rand.New(rand.NewPCG(7, 7)), a.Shape()
	times := make([]time.Duration, reads)
	for i := range times {
		box, size := make([]zarr.Index, len(shape)), int64(4)
		for d, n := range chunk {
			lo := rng.Int64N(shape[d]/n) * n
			box[d] = zarr.Slice(lo, lo+n, 1)
			size *= n
		}
		start := time.Now()
		if err := a.ReadBytes(ctx, zarr.Sel(box...), make([]byte, size)); err != nil {
			return err
		}
		times[i] = time.Since(start)
	}
	b.add("formats", s.variant, "chunk p50", micros(quantile(times, 0.5)), "us")
	return nil
}
