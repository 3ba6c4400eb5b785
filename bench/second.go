package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zarrdb/zarrdb"
	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// secondBench compares a process that has a database open (the holder) with a process that
// uses a database of a holder (a peer). This process is both: it has one copy of a database
// open, and is the peer of a process that has another copy open. They take turns, and the
// figure of a row is the median of all runs.
type secondBench struct {
	*bench
	runs, nodes, commits int
	side                 int64 // of a grid of chunks that is scanned
	chunks               int64 // among which one is found, and which are linked
	bytes                int64 // of an array that is written
}

func second(ctx context.Context, b *bench) {
	s := secondBench{b, 5, 10_000, 100_000, 1000, 10_000_000, 1 << 30}
	if b.quick {
		s = secondBench{b, 1, 100, 100, 100, 10_000, 8 << 20}
	}
	s.warm(ctx)
	s.cold(ctx)
	s.write(ctx)
	s.idle(ctx)
}

// process is one of the two ways to use a database.
type process struct {
	dir   string
	other *actor // has the database of a peer open
}

// both are the holder of the database in dir, and a peer of one with the same content.
func (s *secondBench) both(ctx context.Context, dir string) (p [2]process) {
	check(os.CopyFS(dir+"-beside", os.DirFS(dir)))
	p[0], p[1] = process{dir: dir}, process{dir: dir + "-beside"}
	p[1].beside(ctx)
	return p
}

// beside has another process open the database of a peer.
func (p *process) beside(ctx context.Context) {
	p.other = play(ctx, "wait", p.dir)
	p.other.line()
}

func (p process) end() {
	if p.other != nil {
		p.other.end()
	}
	_ = os.RemoveAll(p.dir)
}

func (p process) open(ctx context.Context) *engine.DB {
	return must(zarrdb.Open(ctx, p.dir, &zarrdb.Options{Private: p.other == nil}))
}

// asked reports whether -rows has a row.
func (s *secondBench) asked(row string) bool {
	return regexp.MustCompile(s.pattern).MatchString(row)
}

// compare adds a row. run measures something once, in the holder or in the peer.
func (s *secondBench) compare(row string, run func(peer int) time.Duration) {
	if !s.asked(row) {
		return
	}
	var times [2][]time.Duration
	for i := range 2 * s.runs {
		peer := (i + i/2) % 2 // either is the first as often as the other
		settle()
		times[peer] = append(times[peer], run(peer))
	}
	for i, name := range []string{inProcess, secondProcess} {
		for _, d := range times[i] {
			s.sample("two processes", row, "time", "us", name, micros(d))
		}
	}
	here, there := quantile(times[0], 0.5), quantile(times[1], 0.5)
	fmt.Printf("%-10s %-40s %v, second process %v, %.2f times\n", "beside", row, here, there, there.Seconds()/here.Seconds())
}

// commitTo commits the writes of fn to a branch.
func commitTo(ctx context.Context, db *engine.DB, branch string, fn func(s *engine.Session)) {
	must(db.Update(ctx, branch, "more", func(s *engine.Session) error {
		fn(s)
		return nil
	}))
}

// make fills a database without waiting for the disk.
func (s *secondBench) make(ctx context.Context, dir string, fill func(db *engine.DB)) {
	db := must(zarrdb.Open(ctx, dir, &zarrdb.Options{Create: true, Private: true, Engine: engine.Options{Durability: txn.DurabilityNone}}))
	defer db.Close()
	fill(db)
}

// warm measures reads of 16 MiB from caches.
func (s *secondBench) warm(ctx context.Context) {
	dir := s.path("warm.zdb")
	values := make([]float32, 4<<20)
	for i := range values {
		values[i] = float32(i % 1000)
	}
	spec := zarr.Spec{Shape: []int64{64, 256, 256}, Chunks: []int64{64, 32, 32}, DataType: "float32"}
	s.make(ctx, dir, func(db *engine.DB) {
		commitTo(ctx, db, "", func(s *engine.Session) {
			check(zarr.Write(ctx, must(s.CreateArray(ctx, "t", spec)), zarr.Sel(), values))
		})
	})
	both := s.both(ctx, dir)
	var dbs [2]*engine.DB
	var arrays, own [2]*zarr.Array
	for i, p := range both {
		defer p.end()
		dbs[i] = p.open(ctx)
		defer dbs[i].Close()
		v := must(dbs[i].At(ctx, "main"))
		defer v.Close()
		arrays[i] = must(v.Array(ctx, "t"))
		session := must(dbs[i].Begin(ctx, ""))
		defer session.Abort()
		own[i] = must(session.CreateArray(ctx, "own", spec))
		check(zarr.Write(ctx, own[i], zarr.Sel(), values))
	}
	repeat := func(row string, n int, read func(peer int)) {
		s.compare("warm: "+row, func(peer int) time.Duration {
			read(peer)
			return took(func() {
				for range n {
					read(peer)
				}
			}) / time.Duration(n)
		})
	}
	of := func(arrays *[2]*zarr.Array, sel ...zarr.Index) func(peer int) {
		return func(peer int) {
			_, _, err := zarr.Read[float32](ctx, arrays[peer], zarr.Sel(sel...))
			check(err)
		}
	}
	repeat("`a[:, y, x]`", 2000, of(&arrays, zarr.All(), zarr.At(100), zarr.At(100)))
	repeat("one element", 20_000, of(&arrays, zarr.At(1), zarr.At(100), zarr.At(100)))
	repeat("whole array of 16 MiB", 50, of(&arrays))
	repeat("one element in a session", 5000, of(&own, zarr.At(1), zarr.At(100), zarr.At(100)))
	repeat("open a version and an array", 200, func(peer int) {
		v := must(dbs[peer].At(ctx, "main"))
		defer v.Close()
		must(v.Array(ctx, "t"))
	})
}

// cold measures reads of a database that was just opened.
func (s *secondBench) cold(ctx context.Context) {
	var made []process
	both := sync.OnceValue(func() []process {
		dir := s.path("cold.zdb")
		s.make(ctx, dir, func(db *engine.DB) { s.fill(ctx, db) })
		both := s.both(ctx, dir)
		made = both[:]
		return made
	})
	defer func() {
		for _, p := range made {
			p.end()
		}
	}()
	row := func(row string, want int64, read func(db *engine.DB, v *engine.Snapshot) (n int64)) {
		s.compare("cold: "+row, func(peer int) time.Duration {
			p := &both()[peer]
			if p.other != nil { // its caches are empty too, and its memory is touched, as in this process
				p.other.say("again")
				p.other.line()
			}
			db := p.open(ctx)
			defer db.Close()
			v := must(db.At(ctx, "main"))
			defer v.Close()
			return took(func() {
				if n := read(db, v); n != want {
					check(fmt.Errorf("%s: %d found, want %d", row, n, want))
				}
			})
		})
	}
	row("one value of 10 M chunks", 1, func(_ *engine.DB, v *engine.Snapshot) int64 {
		return int64(len(must(kv.Get(ctx, v, s.chunkKey(rand.Int64N(s.chunks))))))
	})
	row("open 10,000 arrays", int64(s.nodes)+1, func(_ *engine.DB, v *engine.Snapshot) int64 { return count(v.Walk(ctx, "many")) })
	row("list 10,000 arrays", int64(s.nodes)+1, func(_ *engine.DB, v *engine.Snapshot) int64 {
		return count(v.List(ctx, kv.ListOptions{Prefix: "many/"}))
	})
	row("scan 1 M chunks", s.side*s.side, func(_ *engine.DB, v *engine.Snapshot) int64 {
		return count(v.List(ctx, kv.ListOptions{Prefix: "grid/c/"}))
	})
	row("diff, 10,000 of 1 M chunks", 10*s.side, func(db *engine.DB, _ *engine.Snapshot) int64 { return count(db.Diff(ctx, "main~1", "main", "")) })
	row("log of 100,000 commits", int64(s.commits)+3, func(db *engine.DB, _ *engine.Snapshot) int64 { return count(db.Log(ctx, "long")) })
}

// chunkKey is the key of one of many chunks.
func (s *secondBench) chunkKey(i int64) string {
	return "big/c/" + strconv.FormatInt(i/1000, 10) + "/" + strconv.FormatInt(i%1000, 10)
}

// fill makes many nodes, chunks and commits.
func (s *secondBench) fill(ctx context.Context, db *engine.DB) {
	grid := zarr.Spec{Shape: []int64{s.side, s.side}, Chunks: []int64{1, 1}, DataType: "uint8"}
	commitTo(ctx, db, "", func(w *engine.Session) {
		for i := range s.nodes {
			must(w.CreateArray(ctx, fmt.Sprintf("many/a%05d", i), grid))
		}
		values := make([]uint8, s.side*s.side)
		for i := range values {
			values[i] = uint8(1 + i%200)
		}
		check(zarr.Write(ctx, must(w.CreateArray(ctx, "grid", grid)), zarr.Sel(), values))
		must(w.CreateArray(ctx, "big", s.big()))
		bulk := must(w.Bulk(ctx, "big", true))
		for i := range s.chunks {
			check(bulk.Set(ctx, strings.TrimPrefix(s.chunkKey(i), "big/"), []byte{byte(i)}))
		}
		check(bulk.Finish(ctx))
	})
	commitTo(ctx, db, "", func(w *engine.Session) {
		a := must(w.Array(ctx, "grid"))
		for i := int64(0); i < s.side; i += s.side / 10 {
			check(zarr.Write(ctx, a, zarr.Sel(zarr.All(), zarr.At(i)), bytes.Repeat([]byte{250}, int(s.side))))
		}
	})
	check(db.CreateBranch(ctx, "long", "main"))
	for i := range s.commits {
		commitTo(ctx, db, "long", func(w *engine.Session) { check(w.Set(ctx, "n", strconv.AppendInt(nil, int64(i), 10))) })
	}
}

func (s *secondBench) big() zarr.Spec {
	return zarr.Spec{Shape: []int64{s.chunks / 1000, 1000}, Chunks: []int64{1, 1}, DataType: "uint8"}
}

func count[T any](seq iter.Seq2[T, error]) (n int64) {
	for _, err := range seq {
		check(err)
		n++
	}
	return n
}

// write measures commits, each to a new database.
func (s *secondBench) write(ctx context.Context) {
	row := func(row string, commit func(p process, db *engine.DB) time.Duration) {
		s.compare("write: "+row, func(peer int) time.Duration {
			dir := s.path("write.zdb")
			s.make(ctx, dir, func(*engine.DB) {})
			both := s.both(ctx, dir)
			defer both[0].end()
			defer both[1].end()
			db := both[peer].open(ctx)
			defer db.Close()
			settle()
			return commit(both[peer], db)
		})
	}
	n := s.bytes / 4
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(i*7919%100003) / 3
	}
	chunk := min(n/4, 1<<20)
	array := func(name string, times int, spec zarr.Spec, part int64) {
		row(name, func(_ process, db *engine.DB) time.Duration {
			return quantile(timed(times, func(i int) {
				commitTo(ctx, db, "", func(w *engine.Session) {
					a := must(w.CreateArray(ctx, fmt.Sprint("a", i), spec))
					for i := int64(0); i < spec.Shape[0]; i += part {
						check(zarr.Write(ctx, a, zarr.Sel(zarr.Slice(i, i+part, 1)), values[i:i+part]))
					}
				})
			}), 0.5)
		})
	}
	raw := json.RawMessage(`[{"name":"bytes","configuration":{"endian":"little"}}]`)
	lz4 := json.RawMessage(`[{"name":"bytes","configuration":{"endian":"little"}},{"name":"numcodecs.lz4"}]`)
	shape := []int64{n}
	row("commit of 1 KiB", func(_ process, db *engine.DB) time.Duration {
		return quantile(timed(200, func(i int) {
			commitTo(ctx, db, "", func(w *engine.Session) { check(w.Set(ctx, "k", fmt.Appendf(nil, "%01024d", i))) })
		}), 0.5)
	})
	array("1 GiB, raw", 1, zarr.Spec{Shape: shape, Chunks: []int64{chunk}, DataType: "float32", Codecs: raw}, n)
	array("1 GiB, lz4", 1, zarr.Spec{Shape: shape, Chunks: []int64{chunk}, DataType: "float32", Codecs: lz4}, n)
	array("1 GiB, lz4, shards", 1, zarr.Spec{Shape: shape, Chunks: []int64{chunk / 16}, Shards: []int64{chunk}, DataType: "float32", Codecs: lz4}, n)
	part := min(n/16, 1<<18)
	array("4 MiB in quarters of chunks", 9, zarr.Spec{Shape: []int64{4 * part}, Chunks: []int64{part / 4}, DataType: "float32"}, part/16)
	var more int64
	row("10 M references", func(p process, db *engine.DB) (d time.Duration) {
		use := func() {
			d = took(func() {
				commitTo(ctx, db, "", func(w *engine.Session) {
					must(w.CreateArray(ctx, "big", s.big()))
					bulk := must(w.Bulk(ctx, "big", true))
					for i := range s.chunks {
						check(bulk.SetVirtual(ctx, strings.TrimPrefix(s.chunkKey(i), "big/"), tree.Source{URL: "file:///data/x.bin"}, uint64(i), 1))
					}
					check(bulk.Finish(ctx))
				})
			})
		}
		if p.other == nil {
			use()
			return d
		}
		more = max(more, grows(p.other.cmd.Process.Pid, use))
		return d
	})
	if more > 0 {
		s.add("two processes", "10 M references by a peer", "memory of the holder", mebibytes(more), "MiB")
	}
}

// grows returns how much private memory another process gets while fn runs, at most.
func grows(pid int, fn func()) (most int64) {
	before, done := private(pid), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-done:
				return
			case <-tick.C:
				most = max(most, private(pid)-before)
			}
		}
	})
	fn()
	close(done)
	wg.Wait()
	return most
}

// idle measures the memory of a peer that has read an array and waits.
func (s *secondBench) idle(ctx context.Context) {
	const row = "memory of an idle peer"
	if !s.asked(row) {
		return
	}
	dir := s.path("idle.zdb")
	s.make(ctx, dir, func(db *engine.DB) {
		commitTo(ctx, db, "", func(w *engine.Session) { must(w.CreateArray(ctx, "a", s.big())) })
	})
	both := s.both(ctx, dir)
	defer both[0].end()
	defer both[1].end()
	p := play(ctx, "wait", both[1].dir)
	defer p.end()
	p.line()
	if n := private(p.cmd.Process.Pid); n > 0 {
		s.add("two processes", row, "private memory", mebibytes(n), "MiB")
	}
}
