package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
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
		{name: "none", chunks: big, codecs: `[{"name":"bytes","configuration":{"endian":"little"}}]`},
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

// readWrite writes the field, reads it whole, and reads single chunks.
func readWrite(ctx context.Context, b *bench) {
	planes := field.Shape[0]
	if b.quick {
		planes = 32
	}
	data := filled(planes)
	defer release(data)
	for _, l := range b.layouts() {
		n := planes
		if l.planes > 0 {
			n = min(n, l.planes)
		}
		named(l.name, func() { l.measure(ctx, b, data[:bytesOf(n)], n) })
	}
}

func (l layout) measure(ctx context.Context, b *bench, data []byte, planes int) {
	dir := b.path("field.zdb")
	defer os.RemoveAll(dir)
	db := must(engine.Create(ctx, dir, &engine.Options{CacheBytes: -1}))
	b.add("write", l.name, "durable", gbps(len(data), took(func() { l.write(ctx, db, data, planes) })), "GB/s")
	b.add("write", l.name, "disk", float64(must(diskBytes(dir)))/float64(len(data)), "of raw")
	check(db.Close())
	l.readWhole(ctx, b, dir, data)
	l.readChunks(ctx, b, dir)
}

// shape is that of an array of some planes of the field.
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

// readWhole reads everything, cold where the page cache can be dropped, then
// hot. The destination is touched before, as a program that reads twice has it; then
// every read is into memory that the process did not have.
func (l layout) readWhole(ctx context.Context, b *bench, dir string, data []byte) {
	cold := dropCaches() == nil
	openArray(ctx, dir, "field", engine.Options{}, func(a *zarr.Array) {
		dst, err := memory(len(data))
		check(err)
		defer release(dst)
		for i := range dst {
			dst[i] = 1
		}
		times := timed(4, func(int) { check(a.ReadBytes(ctx, zarr.Sel(), dst)) })
		if cold {
			b.add("read", l.name, "cold", gbps(len(dst), times[0]), "GB/s")
		}
		readsBack(dst, data)
		b.add("read", l.name, "hot", gbps(len(dst), slices.Min(times[1:])), "GB/s")
		times = times[:0]
		for range 3 {
			debug.FreeOSMemory()
			var out []float32
			times = append(times, took(func() { out, _, err = zarr.Read[float32](ctx, a, zarr.Sel()) }))
			check(err)
			last := data[len(data)-4:]
			if got := out[len(out)-1]; got != math.Float32frombits(binary.LittleEndian.Uint32(last)) {
				check(errors.New("the field does not read back"))
			}
		}
		b.add("read", l.name, "hot, new memory", gbps(len(dst), slices.Min(times)), "GB/s")
	})
}

// readsBack makes sure that what was read is what was written.
func readsBack(have, want []byte) {
	if !bytes.Equal(have, want) {
		check(errors.New("the field does not read back"))
	}
}

// readChunks reads single chunks (inner chunks of shards) at random, with one
// and two threads.
func (l layout) readChunks(ctx context.Context, b *bench, dir string) {
	n := 2000
	if b.quick {
		n = 200
	}
	size := 4 * l.chunks[0] * l.chunks[1] * l.chunks[2]
	openArray(ctx, dir, "field", engine.Options{Workers: 1}, func(a *zarr.Array) {
		for _, threads := range []int{1, 2} {
			times := make([][]time.Duration, threads)
			elapsed := took(func() {
				parallel(threads, func(t int) {
					dst := make([]byte, size)
					times[t] = chunkTimes(ctx, a, l.chunks, n, rand.NewPCG(uint64(t), 3), func(int64) []byte { return dst })
				})
			})
			all := slices.Concat(times...)
			name := fmt.Sprintf("%d thread", threads)
			b.add("chunk", l.name, name+" p50", micros(quantile(all, 0.5)), "us")
			b.add("chunk", l.name, name+" p99", micros(quantile(all, 0.99)), "us")
			b.add("chunk", l.name, name, gbps(int(size)*len(all), elapsed), "GB/s")
		}
	})
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
