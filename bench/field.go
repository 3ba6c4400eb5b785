package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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

// layouts are all variants; the quick ones have no shard, which is deeper than the small
// field.
func (b *bench) layouts() []layout {
	big := []int64{32, 128, 128}
	list := []layout{
		{name: "raw", chunks: big, codecs: `[{"name":"bytes","configuration":{"endian":"little"}}]`},
		{name: "blosc-lz4", chunks: big, codecs: blosc("lz4", 5)},
		{name: "blosc-zstd", chunks: big, codecs: blosc("zstd", 3)},
		{name: "zstd-3", chunks: big, codecs: codec("zstd", `{"level":3,"checksum":false}`)},
		{name: "gzip-5", chunks: big, codecs: codec("gzip", `{"level":5}`), planes: 64},
		{name: "shard-blosc-lz4", chunks: []int64{32, 64, 64}, shard: []int64{128, 512, 512}, codecs: blosc("lz4", 5)},
		{name: "blosc-lz4-64K", chunks: []int64{4, 64, 64}, codecs: blosc("lz4", 5)},
	}
	if b.quick {
		list = slices.DeleteFunc(list, func(l layout) bool { return l.shard != nil })
	}
	return list
}

// bytesOf is the size of some planes of the field.
func bytesOf(planes int) int { return planes * field.Shape[1] * field.Shape[2] * 4 }

// filled returns some planes of the field, in memory to be released.
func filled(planes int) []byte {
	data := must(memory(bytesOf(planes)))
	field.Fill(data, 0)
	return data
}

// shape returns the shape of an array of some planes of the field.
func (layout) shape(planes int) []int64 {
	return []int64{int64(planes), int64(field.Shape[1]), int64(field.Shape[2])}
}

// write commits an array of some planes of the field.
func (l layout) write(ctx context.Context, db *engine.DB, data []byte, planes int) {
	spec := zarr.Spec{Shape: l.shape(planes), Chunks: l.chunks, Shards: l.shard, DataType: "float32", Codecs: json.RawMessage(l.codecs)}
	writeArray(ctx, db, "field", spec, data)
}

// writeArray commits a new array.
func writeArray(ctx context.Context, db *engine.DB, path string, spec zarr.Spec, data []byte) {
	update(ctx, db, "the field", func(s *engine.Session) {
		check(must(s.CreateArray(ctx, path, spec)).WriteBytes(ctx, zarr.Sel(), data))
	})
}

// openArray runs fn on the array of a database without a cache.
func openArray(ctx context.Context, dir, path string, o engine.Options, fn func(a *zarr.Array)) {
	o.ReadOnly, o.CacheBytes = true, -1
	db := must(engine.Open(ctx, dir, &o))
	defer db.Close()
	view(ctx, db, func(s *engine.Snapshot) { fn(must(s.Array(ctx, path))) })
}

// chunkTimes reads n chunks of a shape at random, each into the memory that dst returns for
// its bytes.
func chunkTimes(ctx context.Context, a *zarr.Array, chunk []int64, n int, seed rand.Source, dst func(size int64) []byte) []time.Duration {
	rng, shape := rand.New(seed), a.Shape()
	boxes, size := make([][]zarr.Index, n), int64(4)
	for i := range boxes {
		for d, k := range chunk {
			lo := rng.Int64N(shape[d]/k) * k
			boxes[i] = append(boxes[i], zarr.Slice(lo, lo+k, 1))
		}
	}
	for _, k := range chunk {
		size *= k
	}
	return timed(n, func(i int) { check(a.ReadBytes(ctx, zarr.Sel(boxes[i]...), dst(size))) })
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
