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

// space measures what is left on disk after old versions were let go, and what
// the collection takes meanwhile.
func space(ctx context.Context, b *bench) error {
	cases := []overwriting{
		{"1 GiB, 2 MiB chunks, 10 times", 1 << 30, 2 << 20, 10, 100},
		{"256 MiB, 64 KiB chunks, 10 times half", 256 << 20, 64 << 10, 10, 50},
		{"1 GiB, 4 KiB chunks, once half", 1 << 30, 4 << 10, 1, 50},
	}
	for _, c := range cases {
		if b.quick {
			c.bytes /= 16
		}
		if err := c.measure(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func (o overwriting) measure(ctx context.Context, b *bench) (err error) {
	dir := b.path("space.zdb")
	defer os.RemoveAll(dir)
	db, err := engine.Create(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }() // whichever is open then
	data := make([]byte, o.chunk)
	rng := rand.New(rand.NewPCG(10, 10))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	var one int64 // version on disk
	for version := range 1 + o.times {
		_, err := db.Update(ctx, "main", "overwrite", func(s *engine.Session) error {
			if version == 0 {
				spec := zarr.Spec{Shape: []int64{o.bytes / o.chunk, o.chunk}, Chunks: []int64{1, o.chunk}, DataType: "uint8"}
				if _, err := s.CreateArray(ctx, "a", spec); err != nil {
					return err
				}
			}
			for i := range o.bytes / o.chunk {
				if version > 0 && rng.IntN(100) >= o.some {
					continue
				}
				data[0], data[1], data[2], data[3] = byte(version), byte(i), byte(i>>8), byte(i>>16)
				if err := s.Set(ctx, fmt.Sprintf("a/c/%d/0", i), data); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if version == 0 {
			// Room that a growing pack has in advance does not count.
			if err := db.Close(); err != nil {
				return err
			}
			if one, err = allocated(dir); err != nil {
				return err
			}
			if db, err = engine.Open(ctx, dir, nil); err != nil {
				return err
			}
		}
	}
	if _, err := db.Expire(ctx, txn.ExpireOptions{Keep: 1}); err != nil {
		return err
	}
	return o.collect(ctx, b, db, dir, one)
}

// collect lets the collector run while the blocks of the files are counted.
func (o overwriting) collect(ctx context.Context, b *bench, db *engine.DB, dir string, one int64) error {
	before, err := allocated(dir)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	peaks := make(chan int64)
	go func() {
		peak := before
		for {
			select {
			case <-done:
				peaks <- peak
				return
			case <-time.After(time.Millisecond):
				if n, err := allocated(dir); err == nil {
					peak = max(peak, n)
				}
			}
		}
	}()
	start := time.Now()
	r, err := db.GC(ctx, txn.GCOptions{})
	elapsed := time.Since(start)
	close(done)
	peak := <-peaks
	if err != nil {
		return err
	}
	after, err := allocated(dir)
	if err != nil {
		return err
	}
	copies := func(n int64) float64 { return float64(n) / float64(one) }
	b.add("space", o.name, "with old versions", copies(before), "copies")
	b.add("space", o.name, "after expire and gc", copies(after), "copies")
	b.add("space", o.name, "taken during gc", 100*copies(peak-before), "%")
	b.add("space", o.name, "gc", elapsed.Seconds(), "s")
	b.add("space", o.name, "gc frees", float64(r.FreedBytes)/1e9/elapsed.Seconds(), "GB/s")
	return nil
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
