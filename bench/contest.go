package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Foreign load above this many cores makes a figure worthless: it is taken again.
const foreignLoad = 0.2

// contest lets every program do the same work in turn, several times, on the same values.
type contest struct {
	b      *bench
	all    []*contestant
	source string
	planes int
}

// fair measures the table of RESULTS.md: whole arrays, single chunks and small selections
// for each way to encode, and trees of arrays.
func fair(ctx context.Context, b *bench) {
	c := &contest{b: b, planes: b.planes, source: b.path("field.raw")}
	data := filled(c.planes)
	check(os.WriteFile(c.source, data, 0o644))
	defer os.Remove(c.source)
	sums := map[int]uint32{}
	for _, l := range b.layouts() {
		n := l.of(c.planes)
		sums[n] = crc32.ChecksumIEEE(data[:bytesOf(n)])
	}
	check(release(data))
	if b.python != "" {
		program := b.path("bin")
		buildProgram(ctx, program)
		check(os.Setenv("ZARRDB_BINARY", program))
	}
	c.all = b.contestants(ctx)
	defer func() {
		for _, k := range c.all {
			k.end()
		}
	}()
	for _, l := range b.layouts() {
		if b.asked(l.name) {
			b.step("table "+l.name, func() { c.layout(ctx, l, sums[l.of(c.planes)]) })
		}
	}
	if b.asked("trees") {
		b.step("table trees", func() { c.trees(ctx) })
	}
}

// asked reports whether -layouts has a part of the table.
func (b *bench) asked(part string) bool {
	return b.only == "" || slices.Contains(strings.Split(b.only, ","), part)
}

// of is how many planes of the field a layout takes.
func (l layout) of(planes int) int {
	if l.planes > 0 {
		return min(planes, l.planes)
	}
	return planes
}

// document is the zarr.json of the field.
func (l layout) document(shape []int64) json.RawMessage {
	codecs, grid := json.RawMessage(l.codecs), l.chunks
	if l.shard != nil {
		grid = l.shard
		codecs = must(json.Marshal([]any{map[string]any{"name": "sharding_indexed", "configuration": map[string]any{
			"chunk_shape": l.chunks, "codecs": json.RawMessage(l.codecs), "index_location": "end",
			"index_codecs": json.RawMessage(`[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}]`),
		}}}))
	}
	return must(json.Marshal(map[string]any{
		"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "float32", "fill_value": 0.0, "codecs": codecs, "attributes": map[string]any{},
		"chunk_grid":         map[string]any{"name": "regular", "configuration": map[string]any{"chunk_shape": grid}},
		"chunk_key_encoding": map[string]any{"name": "default", "configuration": map[string]any{"separator": "/"}},
	}))
}

// layout measures one way to encode.
func (c *contest) layout(ctx context.Context, l layout, sum uint32) {
	shape := l.shape(l.of(c.planes))
	j := job{Source: c.source, Variant: l.name, Document: l.document(shape), Shape: shape, Chunks: l.chunks, Shards: l.shard}
	in := c.writes(ctx, j)
	c.opened(ctx, in, j, false, func(in []*contestant) {
		verified(in, j, sum)
		c.each(in, l.name, []metric{{"read", "read all, fresh memory", "GB/s"}}, j.as("read"))
		touched := j.as("read")
		touched.Touched = true
		c.each(in, l.name, []metric{{"read", "read all, touched memory", "GB/s"}}, touched)
		n := 400
		if l.chunks[0] < 32 {
			n = 4000
		}
		if c.b.quick {
			n /= 10
		}
		for _, threads := range []int{1, 2} {
			k := j.as("chunks")
			k.Threads, k.Count = threads, n
			if threads == 1 {
				c.each(in, l.name, []metric{{"p50", "random chunk p50, 1 reader", "us"}}, k)
			} else {
				c.each(in, l.name, []metric{{"rate", "random chunks, 2 readers", "GB/s"}}, k)
			}
		}
	})
	c.cold(ctx, in, j)
	if l.name == "blosc-lz4" {
		c.opened(ctx, in, j, true, func(in []*contestant) {
			k := j.as("points")
			k.Count = 1000
			c.each(in, l.name, []metric{{"series", "a[:, y, x], cached", "us"}, {"element", "one element, cached", "us"}}, k)
		})
	}
	for _, k := range c.all {
		k.leave()
		check(os.RemoveAll(k.dir))
	}
}

// metric is a figure of an answer, and how the table calls it.
type metric struct{ name, called, unit string }

// as is the same job with other work.
func (j job) as(work string) job {
	j.Work = work
	return j
}

// writes measures writes, each into a new database or folder, and returns the contestants that
// wrote one.
func (c *contest) writes(ctx context.Context, j job) []*contestant {
	return c.turns(c.all, j.Variant, []metric{{"write", "write, durable", "GB/s"}}, j.as("write"), func(k *contestant) answer {
		return c.fresh(ctx, k, j)
	})
}

// fresh makes an empty database or folder.
func (c *contest) fresh(ctx context.Context, k *contestant, j job) answer {
	k.leave()
	check(os.RemoveAll(k.dir))
	if k.ours {
		makeDatabase(ctx, k.dir)
		k.hold(ctx, false)
	}
	return k.do(j.as("prepare"))
}

// opened runs fn while the contestants have the array open.
func (c *contest) opened(ctx context.Context, in []*contestant, j job, cached bool, fn func(in []*contestant)) {
	j.Cached = cached
	var open []*contestant
	for _, k := range in {
		k.hold(ctx, cached)
		if a := k.do(j.as("open")); a.Cannot == "" {
			open = append(open, k)
		}
	}
	fn(open)
	for _, k := range open {
		k.do(j.as("close"))
	}
}

// cold reads after the page cache was dropped, which only root may do.
func (c *contest) cold(ctx context.Context, in []*contestant, j job) {
	if dropCaches() != nil {
		return
	}
	c.turns(in, j.Variant, []metric{{"read", "read all, cold", "GB/s"}}, j.as("read"), func(k *contestant) answer {
		k.do(j.as("close"))
		k.leave() // mapped files stay in the page cache
		check(dropCaches())
		k.hold(ctx, false)
		return k.do(j.as("open"))
	})
	for _, k := range in {
		k.do(j.as("close"))
	}
}

// verified makes sure that every program reads the written elements.
func verified(in []*contestant, j job, want uint32) {
	k := j.as("read")
	k.Sum = true
	for _, c := range in {
		if a := c.do(k); a.Cannot == "" && a.Sum != want {
			check(fmt.Errorf("%s: the field does not read back from %s", j.Variant, c.name))
		}
	}
}

// trees makes and lists hierarchies.
func (c *contest) trees(ctx context.Context) {
	n := 10_000
	if c.b.quick {
		n = 100
	}
	j, variant := job{Work: "tree", Count: n}, fmt.Sprintf("%d arrays", n)
	in := c.turns(c.all, variant, []metric{{"create", "create", "s"}}, j, func(k *contestant) answer {
		k.leave()
		check(os.RemoveAll(k.dir))
		if k.ours {
			makeDatabase(ctx, k.dir)
			k.hold(ctx, false)
		}
		return answer{}
	})
	c.each(in, variant, []metric{{"list", "list", "ms"}, {"open", "open one", "us"}}, j.as("members"))
}

// each lets the contestants do a job in turn.
func (c *contest) each(in []*contestant, variant string, metrics []metric, j job) {
	c.turns(in, variant, metrics, j, func(*contestant) answer { return answer{} })
}

// turns lets contestants do a job several times, one after the other, and in another order each
// time. It returns the contestants that can. A run beside other work of the machine is
// repeated; a write is not judged so, because the kernel writes back in threads of its own.
func (c *contest) turns(in []*contestant, variant string, metrics []metric, j job, before func(*contestant) answer) (can []*contestant) {
	rows := make([]*measure, len(metrics))
	can = slices.Clone(in)
	for round := range c.b.rounds {
		order := slices.Clone(can)
		for i := range order {
			order[i] = can[(i+round)%len(can)]
		}
		for _, k := range order {
			j.Seed = round + 1
			a, load := c.quiet(k, j, before, j.Work != "write" && j.Work != "tree")
			if a.Cannot != "" {
				can = slices.DeleteFunc(can, func(o *contestant) bool { return o == k })
				continue
			}
			for i, m := range metrics {
				row := c.b.sample("", variant, m.called, m.unit, k.name, a.Figures[m.name])
				row.Load = max(row.Load, load)
				rows[i] = row
			}
		}
	}
	for _, r := range rows {
		if r != nil {
			fmt.Println(r.line())
		}
	}
	return can
}

// quiet does a job, again if other work of the machine took part of the processors.
func (c *contest) quiet(k *contestant, j job, before func(*contestant) answer, judged bool) (a answer, load float64) {
	for range 3 {
		if a = before(k); a.Cannot != "" {
			return a, 0
		}
		debug.FreeOSMemory()
		start, busy, own := time.Now(), busyTicks(), c.ticks()
		a = k.do(j)
		seconds := time.Since(start).Seconds()
		load = max(0, float64(busyTicks()-busy-(c.ticks()-own))/100/seconds)
		if a.Cannot != "" || !judged || load <= foreignLoad || seconds < 0.1 {
			break
		}
	}
	return a, load
}

// ticks is the processor time of all contestants and of the driver.
func (c *contest) ticks() (n int64) {
	n = processTicks(os.Getpid())
	for _, k := range c.all {
		n += k.ticks()
	}
	return n
}

// line is a row while the run goes on.
func (r *measure) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-28s %-16s %5s", r.Metric, r.Variant, r.Unit)
	for _, name := range append(slices.Clone(doors), peers...) {
		if s := r.Samples[name]; len(s) > 0 {
			fmt.Fprintf(&b, "  %s %s", name, figure(median(s)))
		}
	}
	return b.String()
}
