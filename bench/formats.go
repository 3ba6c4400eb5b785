package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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
	const own, linked = "field.zdb", "linked.zdb"
	return []foreignStore{
		{"icechunk, native", "native", own, engine.ForeignOptions{Format: "icechunk"}, "icechunk:", false, "icechunk", nil},
		{"icechunk, virtual", "virtual", linked, engine.ForeignOptions{Format: "icechunk"}, "icechunk:", false, "icechunk", map[string]any{"files": virtualFiles}},
		{"precomputed, raw", "volume", own, engine.ForeignOptions{Format: "precomputed"}, "neuroglancer-precomputed:", true, "tensorstore", nil},
		{"precomputed, shards", "shards", own, engine.ForeignOptions{Format: "precomputed", Sharded: true}, "neuroglancer-precomputed:", true, "tensorstore", nil},
	}
}

// virtualFiles is the folder of the file that the virtual chunks lie in.
const virtualFiles = "files"

// foreignFormats reads the field in place where foreign formats hold it, and imports
// a history of Icechunk.
func foreignFormats(ctx context.Context, b *bench) {
	planes, reads := 32, 400
	if b.quick {
		planes, reads = 4, 20
	}
	dir := b.path("formats")
	defer os.RemoveAll(dir)
	check(os.MkdirAll(filepath.Join(dir, virtualFiles), 0o777))
	data := make([]byte, bytesOf(planes))
	field.Fill(data, 0)
	writeField(ctx, dir, data, planes)
	for _, s := range foreignStores() {
		named(s.variant, func() {
			exportForeign(ctx, filepath.Join(dir, s.from), filepath.Join(dir, s.file), engine.ExportOptions{Foreign: s.export})
			chunk, want := formatChunk, data
			if s.turned {
				chunk, want = []int64{formatChunk[2], formatChunk[1], formatChunk[0], 1}, transposed(data, planes)
			}
			s.measure(ctx, b, dir, chunk, want, reads)
		})
	}
	s := foreignStore{variant: "tiff, deflate", file: "field.tif", adapter: "tiff:", part: "tifffile"}
	writeTIFF(filepath.Join(dir, s.file), data)
	named(s.variant, func() { s.measure(ctx, b, dir, []int64{tiffTile, tiffTile, 1}, data, reads) })
	foreignHistory(ctx, b)
}

// writeField writes the field into a database, and its chunks into a file that another
// one has links to.
func writeField(ctx context.Context, dir string, data []byte, planes int) {
	db := must(engine.Create(ctx, filepath.Join(dir, "field.zdb"), nil))
	defer db.Close()
	l := layout{chunks: formatChunk, codecs: codec("zstd", `{"level":3,"checksum":false}`)}
	writeArray(ctx, db, "", zarr.Spec{Shape: l.shape(planes), Chunks: l.chunks, DataType: "float32", Codecs: json.RawMessage(l.codecs), DimensionNames: []string{"z", "y", "x"}}, data)

	file, set := filepath.Join(dir, virtualFiles, "chunks.bin"), filepath.Join(dir, "set.json")
	view(ctx, db, func(s *engine.Snapshot) {
		var keys []string
		for key, err := range s.List(ctx, kv.ListOptions{Prefix: "c/"}) {
			check(err)
			keys = append(keys, key)
		}
		writeSet(ctx, s, fmt.Sprintf(`"zarr.json":%q`, must(s.Get(ctx, "zarr.json", kv.All()))), keys, file, set)
	})
	linked := must(engine.Create(ctx, filepath.Join(dir, "linked.zdb"), nil))
	defer linked.Close()
	linkSet(ctx, linked, set, "")
}

// writeSet puts values one behind the other into a file, writes a set that refers to them
// behind the given documents, and returns the size of the file.
func writeSet(ctx context.Context, from kv.Reader, documents string, keys []string, file, set string) int {
	var all bytes.Buffer
	refs := bytes.NewBufferString("{" + documents)
	for _, key := range keys {
		v := must(kv.Get(ctx, from, key))
		fmt.Fprintf(refs, ",\n%q:[%q,%d,%d]", key, file, all.Len(), len(v))
		all.Write(v)
	}
	refs.WriteString("}\n")
	check(os.WriteFile(file, all.Bytes(), 0o666))
	check(os.WriteFile(set, refs.Bytes(), 0o666))
	return all.Len()
}

// exportForeign exports the newest version of a database.
func exportForeign(ctx context.Context, db, dest string, o engine.ExportOptions) {
	src := must(engine.OpenSource(ctx, db+"/|zarrdb:@branch.main", nil))
	defer src.Close()
	must(engine.Export(ctx, src, dest, o))
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
func (s foreignStore) measure(ctx context.Context, b *bench, dir string, chunk []int64, want []byte, reads int) {
	path := filepath.Join(dir, s.file)
	url := "file://" + path
	if s.export.Format != "" {
		url += "/"
	}
	src := must(engine.OpenSource(ctx, url+"|"+s.adapter, &engine.SourceOptions{Follow: engine.Follow{Allow: []string{"file://" + dir + "/"}}}))
	defer src.Close()
	a, ok := must(src.Node(ctx)).Array()
	if !ok {
		check(errors.New("not an array"))
	}
	times := make([]time.Duration, 4)
	for i := range times {
		var dst []byte
		times[i] = took(func() {
			dst = must(memory(len(want)))
			check(a.ReadBytes(ctx, zarr.Sel(), dst))
		})
		if i == 0 {
			readsBack(dst, want)
		}
		check(release(dst))
	}
	b.add("formats", s.variant, "read", gbps(len(want), slices.Min(times[1:])), "GB/s")
	times = chunkTimes(ctx, a, chunk, reads, rand.NewPCG(7, 7), func(size int64) []byte { return make([]byte, size) })
	b.add("formats", s.variant, "chunk p50", micros(quantile(times, 0.5)), "us")
	args := map[string]any{
		"workload": "formats", "variant": s.variant, "path": path, "reads": reads,
		"sha256": fmt.Sprintf("%x", sha256.Sum256(want)), "chunk": strings.Trim(fmt.Sprint(chunk), "[]"),
	}
	maps.Copy(args, s.args)
	b.beside(ctx, formatsScript, s.part, args)
}
