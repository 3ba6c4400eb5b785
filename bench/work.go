package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"time"
	"unsafe"

	"github.com/zarrdb/zarrdb"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/zarr"
)

// worker does the jobs of a contest through the API of this module.
type worker struct {
	db      *engine.DB
	version *engine.Snapshot
	a       *zarr.Array
	touched []byte
}

// work answers the jobs of standard input.
func work(ctx context.Context) {
	var w worker
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return // the driver has no more
		}
		var j job
		check(json.Unmarshal(line, &j))
		var got answer
		if err := attempt(func() { got = w.do(ctx, j) }); err != nil {
			got = answer{Error: err.Error()}
		}
		check(json.NewEncoder(os.Stdout).Encode(got))
	}
}

func (w *worker) do(ctx context.Context, j job) answer {
	switch j.Work {
	case "write":
		return w.write(ctx, j)
	case "open":
		w.open(ctx, j)
	case "read":
		return w.read(ctx, j)
	case "chunks":
		return w.chunks(ctx, j)
	case "points":
		return w.points(ctx, j)
	case "close":
		w.close()
	case "tree":
		return w.tree(ctx, j)
	case "members":
		return w.members(ctx, j)
	case "prepare":
	default:
		check(fmt.Errorf("no work is called %q", j.Work))
	}
	return answer{}
}

func (w *worker) connect(ctx context.Context, j job) {
	o := zarrdb.Options{}
	if !j.Cached {
		o.Engine.CacheBytes = -1
	}
	w.db = must(zarrdb.Open(ctx, j.Dir, &o))
}

func (w *worker) close() {
	if w.version != nil {
		w.version.Close()
	}
	if w.db != nil {
		check(w.db.Close())
	}
	if w.touched != nil {
		check(release(w.touched))
	}
	*w = worker{}
}

func (w *worker) write(ctx context.Context, j job) answer {
	data, end := mapped(j.Source, bytesOf(int(j.Shape[0])))
	defer end()
	w.connect(ctx, j)
	defer w.close()
	s := must(w.db.Begin(ctx, "main"))
	check(s.Set(ctx, "field/zarr.json", j.Document))
	a := must(s.Array(ctx, "field"))
	settle()
	d := took(func() {
		check(a.WriteBytes(ctx, zarr.Sel(), data))
		must(s.Commit(ctx, engine.CommitOptions{Message: "field"}))
	})
	return answer{Figures: map[string]float64{"write": gbps(len(data), d)}}
}

func (w *worker) open(ctx context.Context, j job) {
	w.connect(ctx, j)
	w.version = must(w.db.At(ctx, "main"))
	w.a = must(w.version.Array(ctx, "field"))
}

// read reads everything as a Go program does: with Read, or into its own memory.
func (w *worker) read(ctx context.Context, j job) answer {
	size := bytesOf(int(j.Shape[0]))
	var data []byte
	var d time.Duration
	if j.Touched {
		if len(w.touched) != size {
			w.touched = must(memory(size))
			for i := range w.touched {
				w.touched[i] = 1
			}
		}
		data = w.touched
		d = took(func() { check(w.a.ReadBytes(ctx, zarr.Sel(), data)) })
	} else {
		var out []float32
		var err error
		d = took(func() { out, _, err = zarr.Read[float32](ctx, w.a, zarr.Sel()) })
		check(err)
		data = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(out))), 4*len(out))
	}
	if j.Sum {
		return answer{Sum: crc32.ChecksumIEEE(data)}
	}
	debug.FreeOSMemory() // the next result lies in other memory
	return answer{Figures: map[string]float64{"read": gbps(size, d)}}
}

// chunks reads single chunks at random, each into memory of its own thread.
func (w *worker) chunks(ctx context.Context, j job) answer {
	size := 4 * j.Chunks[0] * j.Chunks[1] * j.Chunks[2]
	times := make([][]time.Duration, j.Threads)
	elapsed := took(func() {
		parallel(j.Threads, func(t int) {
			dst := make([]byte, size)
			times[t] = chunkTimes(ctx, w.a, j.Chunks, j.Count, rand.NewPCG(uint64(t), uint64(j.Seed)), func(int64) []byte { return dst })
		})
	})
	var all []time.Duration
	for _, t := range times {
		all = append(all, t...)
	}
	return answer{Figures: map[string]float64{"p50": micros(quantile(all, 0.5)), "rate": gbps(int(size)*len(all), elapsed)}}
}

// points reads series and single elements out of chunks that were read before.
func (w *worker) points(ctx context.Context, j job) answer {
	window := zarr.Sel(zarr.All(), zarr.Slice(0, 256, 1), zarr.Slice(0, 256, 1))
	for range 2 {
		_, _, err := zarr.Read[float32](ctx, w.a, window)
		check(err)
	}
	rng := rand.New(rand.NewPCG(uint64(j.Seed), 5))
	get := func(t zarr.Index) {
		_, _, err := zarr.Read[float32](ctx, w.a, zarr.Sel(t, zarr.At(rng.Int64N(256)), zarr.At(rng.Int64N(256))))
		check(err)
	}
	series := timed(j.Count, func(int) { get(zarr.All()) })
	element := timed(j.Count, func(int) { get(zarr.At(rng.Int64N(j.Shape[0]))) })
	return answer{Figures: map[string]float64{"series": micros(quantile(series, 0.5)), "element": micros(quantile(element, 0.5))}}
}

func treePath(i int) string { return fmt.Sprintf("g%02d/a%04d", i%100, i/100) }

// tree makes arrays in 100 groups.
func (w *worker) tree(ctx context.Context, j job) answer {
	w.connect(ctx, j)
	defer w.close()
	settle()
	d := took(func() {
		s := must(w.db.Begin(ctx, "main"))
		for i := range j.Count {
			must(s.CreateArray(ctx, treePath(i), zarr.Spec{Shape: []int64{100, 100}, Chunks: []int64{10, 10}, DataType: "float32"}))
		}
		must(s.Commit(ctx, engine.CommitOptions{Message: "arrays"}))
	})
	return answer{Figures: map[string]float64{"create": d.Seconds()}}
}

// members lists all arrays of a tree in a database that was just opened, and opens single ones.
func (w *worker) members(ctx context.Context, j job) answer {
	w.connect(ctx, j)
	defer w.close()
	w.version = must(w.db.At(ctx, "main"))
	found := 0
	list := took(func() {
		for node, err := range w.version.Walk(ctx, "") {
			check(err)
			if _, ok := node.Array(); ok {
				found++
			}
		}
	})
	if found != j.Count {
		check(fmt.Errorf("%d of %d arrays are listed", found, j.Count))
	}
	rng := rand.New(rand.NewPCG(uint64(j.Seed), 9))
	open := timed(2000, func(int) { must(w.version.Array(ctx, treePath(rng.IntN(j.Count)))) })
	return answer{Figures: map[string]float64{"list": millis(list), "open": micros(quantile(open, 0.5))}}
}

// makeDatabase makes an empty database without a chunk cache.
func makeDatabase(ctx context.Context, dir string) {
	check(errors.Join(os.RemoveAll(dir), must(engine.Create(ctx, dir, nil)).Close()))
}
