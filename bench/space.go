package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// overwriting is an array that is overwritten again and again.
type overwriting struct {
	name  string
	bytes int64 // of the array
	chunk int64 // bytes
	times int   // it is overwritten
	// some is how many of a hundred chunks are overwritten each time, chosen at
	// random.
	some int
}

// space measures the disk space after old versions were let go, and the space
// that the collection needs meanwhile.
func space(ctx context.Context, b *bench) {
	cases := []overwriting{
		{"1 GiB, 2 MiB chunks, 10 times", 1 << 30, 2 << 20, 10, 100},
		{"256 MiB, 64 KiB chunks, 10 times half", 256 << 20, 64 << 10, 10, 50},
		{"1 GiB, 4 KiB chunks, once half", 1 << 30, 4 << 10, 1, 50},
	}
	for _, c := range cases {
		if b.quick {
			c.bytes /= 16
		}
		named(c.name, func() { c.measure(ctx, b) })
	}
}

func (o overwriting) measure(ctx context.Context, b *bench) {
	dir := b.path("space.zdb")
	defer os.RemoveAll(dir)
	db := must(engine.Create(ctx, dir, nil))
	data := make([]byte, o.chunk)
	rng := rand.New(rand.NewPCG(10, 10))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	write := func(version int) {
		update(ctx, db, "overwrite", func(s *engine.Session) {
			if version == 0 {
				spec := zarr.Spec{Shape: []int64{o.bytes / o.chunk, o.chunk}, Chunks: []int64{1, o.chunk}, DataType: "uint8"}
				must(s.CreateArray(ctx, "a", spec))
			}
			for i := range o.bytes / o.chunk {
				if version > 0 && rng.IntN(100) >= o.some {
					continue
				}
				data[0], data[1], data[2], data[3] = byte(version), byte(i), byte(i>>8), byte(i>>16)
				check(s.Set(ctx, fmt.Sprintf("a/c/%d/0", i), data))
			}
		})
	}
	write(0)
	check(db.Close()) // room that a growing pack has in advance does not count
	one := must(allocated(dir))
	db = must(engine.Open(ctx, dir, nil))
	defer db.Close()
	for version := range o.times {
		write(version + 1)
	}
	must(db.Expire(ctx, txn.ExpireOptions{Keep: 1}))
	o.collect(ctx, b, db, dir, one)
}

// collect lets the collector run while the blocks of the files are counted.
func (o overwriting) collect(ctx context.Context, b *bench, db *engine.DB, dir string, one int64) {
	before := must(allocated(dir))
	count := func() int64 {
		n, err := allocated(dir)
		if err != nil {
			return 0 // files go meanwhile
		}
		return n
	}
	var freed int64
	var d time.Duration
	peak := peakOf(time.Millisecond, count, func() {
		d = took(func() { freed = must(db.GC(ctx, txn.GCOptions{})).FreedBytes })
	})
	after := must(allocated(dir))
	copies := func(n int64) float64 { return float64(n) / float64(one) }
	b.add("space", o.name, "with old versions", copies(before), "copies")
	b.add("space", o.name, "after expire and gc", copies(after), "copies")
	b.add("space", o.name, "taken during gc", 100*copies(max(peak-before, 0)), "%")
	b.add("space", o.name, "gc", d.Seconds(), "s")
	b.add("space", o.name, "gc frees", float64(freed)/1e9/d.Seconds(), "GB/s")
}

// allocated is how much room the files below dir take on disk, each once.
func allocated(dir string) (n int64, err error) {
	seen := map[fileID]struct{}{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err == nil {
			id, size := blocks(info)
			if _, ok := seen[id]; !ok || id == (fileID{}) {
				n += size
			}
			seen[id] = struct{}{}
		}
		return err
	})
	return n, err
}
