package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/tree"
)

// refSet is a reference set of one array of steps × 1000 chunks: compressed, so
// that no two have the same length, in files of some chunks each.
type refSet struct {
	steps, first int64 // how many, and the number of the first one
	perFile      int64
}

const refsPerStep = 1000

// chunkLength returns the length of the chunk with a number.
func chunkLength(n int64) int64 { return 40_000 + n*7919%16_381 }

// write makes the set a JSON file.
func (s refSet) write(path string) {
	f := must(os.Create(path))
	w := bufio.NewWriterSize(f, 1<<20)
	zarray := fmt.Sprintf(`{"zarr_format":2,"shape":[%d,%d],"chunks":[1,100],"dtype":"<f4","compressor":null,"filters":null,"fill_value":0,"order":"C"}`,
		s.steps, refsPerStep*100)
	fmt.Fprintf(w, `{"version":1,"refs":{".zgroup":"{\"zarr_format\":2}","t/.zarray":%q,"t/.zattrs":"{\"_ARRAY_DIMENSIONS\":[\"time\",\"x\"]}"`, zarray)
	file, offset := int64(-1), int64(0)
	for i := range s.steps * refsPerStep {
		n := s.first*refsPerStep + i
		if n/s.perFile != file {
			file, offset = n/s.perFile, 8192
		}
		fmt.Fprintf(w, ",\n\"t/%d.%d\":[\"s3://archive/model/run-%03d/output-%08d.nc\",%d,%d]", i/refsPerStep, i%refsPerStep, file/10_000, file, offset, chunkLength(n))
		offset += chunkLength(n)
	}
	w.WriteString("}}\n")
	check(errors.Join(w.Flush(), f.Close()))
}

// references measures linking ten million virtual chunks, and the cost of
// changing a few of them afterwards.
func references(ctx context.Context, b *bench) {
	steps := int64(10_000)
	if b.quick {
		steps = 100
	}
	for _, perFile := range []int64{8, 1} {
		r := refBench{bench: b, workload: "references", set: refSet{steps: steps, perFile: perFile}}
		named(fmt.Sprintf("%d a file", perFile), func() { r.run(ctx) })
	}
}

// refBench is a set that is linked from JSON, exported to parquet and linked
// from there.
type refBench struct {
	*bench
	set               refSet
	workload, variant string
}

func (r *refBench) add(metric string, value float64, unit string) {
	r.bench.add(r.workload, r.variant, metric, value, unit)
}

func (r *refBench) run(ctx context.Context) {
	const name = "refs.zdb"
	json, parquet := r.path("refs.json"), r.path("refs.parquet")
	defer os.RemoveAll(json)
	defer os.RemoveAll(parquet)
	r.set.write(json)
	r.variant = fmt.Sprintf("JSON, %d a file", r.set.perFile)
	db, remove := r.create(ctx, name)
	defer remove()
	r.link(ctx, db, r.path(name), json)
	r.besideJSON(ctx, json)
	src := must(engine.OpenSource(ctx, r.path(name)+"/|zarrdb:@branch.main", nil))
	d := took(func() {
		must(engine.ExportReferences(ctx, src, parquet, engine.ExportReferencesOptions{Parquet: true}))
	})
	check(src.Close())
	remove()
	r.variant = fmt.Sprintf("parquet, %d a file", r.set.perFile)
	r.set.steps++ // link appended one
	r.add("export", d.Seconds(), "s")
	r.add("export rate", float64(r.set.steps*refsPerStep)/d.Seconds()/1e6, "M/s")
	db, remove = r.create(ctx, name)
	defer remove()
	r.link(ctx, db, r.path(name), parquet)
	r.besideParquet(ctx, parquet)
}

// besideJSON measures other programs on the same set, or on a hundredth of it if
// they would take minutes.
func (r *refBench) besideJSON(ctx context.Context, set string) {
	if r.set.perFile == 1 {
		return
	}
	few := r.path("few.json")
	defer os.RemoveAll(few)
	defer os.RemoveAll(few + ".kerchunk")
	small := refSet{steps: max(r.set.steps/100, 1), perFile: r.set.perFile}
	small.write(few)
	beside := func(part string, s refSet, path, variant string) {
		r.beside(ctx, peersScript, part, map[string]any{"workload": "references", "variant": variant, "set": path, "n": s.steps * refsPerStep})
	}
	beside("fsspec_json", r.set, set, r.variant)
	beside("virtualizarr", small, few, r.variant)
	beside("kerchunk", small, few, strings.Replace(r.variant, "JSON", "parquet", 1))
}

func (r *refBench) besideParquet(ctx context.Context, set string) {
	if r.set.perFile == 1 {
		return
	}
	n := r.set.steps * refsPerStep
	dir := r.path("icechunk")
	defer os.RemoveAll(dir)
	r.beside(ctx, peersScript, "fsspec_parquet", map[string]any{"workload": "references", "variant": r.variant, "set": set, "n": n})
	r.beside(ctx, peersScript, "icechunk", map[string]any{"workload": "references", "variant": r.variant, "dir": dir, "n": n, "per_file": r.set.perFile})
}

// link measures a new database that the set is linked into.
func (r *refBench) link(ctx context.Context, db *engine.DB, dir, set string) {
	n := r.set.steps * refsPerStep
	var d time.Duration
	most := peakMemory(func() { d, _ = linkSet(ctx, db, set, "") })
	r.imported(n, d, most)
	d, written := linkSet(ctx, db, set, "")
	r.add("import again, nothing new", d.Seconds(), "s")
	r.add("  written", float64(written), "B")
	r.grow(ctx, db)
	r.list(ctx, db, n+refsPerStep)
	r.change(ctx, db)
	r.openAgain(ctx, db, dir, 1)
}

// imported adds the figures of linking n references.
func (r *refBench) imported(n int64, d time.Duration, peak int64) {
	r.add("import", d.Seconds(), "s")
	r.add("import rate", float64(n)/d.Seconds()/1e6, "M/s")
	r.add("import peak memory", mebibytes(peak), "MiB")
}

// change commits one changed reference at a time.
func (r *refBench) change(ctx context.Context, db *engine.DB) {
	other := tree.Source{URL: "s3://archive/" + r.variant + ".nc"} // an export of this version is imported again
	times := timed(50, func(i int) {
		update(ctx, db, "change", func(s *engine.Session) {
			check(s.SetVirtual(ctx, fmt.Sprintf("t/%d.7", i), other, uint64(i), uint64(chunkLength(int64(i)*refsPerStep+7))))
		})
	})
	r.add("commit of 1 changed p50", millis(quantile(times, 0.5)), "ms")
}

// openAgain opens the database anew, which has as many sets, and finds some references: the first
// time, their pages come from the page cache of the system and must be parsed. It opens twice,
// because the first time the file system may still be writing files of the import, and opening
// waits for a file.
func (r *refBench) openAgain(ctx context.Context, db *engine.DB, dir string, sets int) {
	check(db.Close())
	var snap *engine.Snapshot
	opens := func(metric string) {
		d := took(func() {
			db = must(engine.Open(ctx, dir, nil))
			snap = must(db.At(ctx, "main"))
		})
		r.add(metric, millis(d), "ms")
	}
	opens("open")
	check(errors.Join(snap.Close(), db.Close()))
	opens("open again")
	r.lookUp(ctx, snap, "look-up p50", sets)
	r.lookUp(ctx, snap, "look-up again p50", sets)
	check(errors.Join(snap.Close(), db.Close()))
	size := must(diskBytes(filepath.Join(dir, "index")))
	r.add("size of a reference", float64(size)/float64(int64(sets)*r.set.steps*refsPerStep), "B")
}

// grow appends another step.
func (r *refBench) grow(ctx context.Context, db *engine.DB) {
	more := r.path("more.json")
	refSet{steps: 1, first: r.set.steps, perFile: r.set.perFile}.write(more)
	before := db.DiskUse().IndexWritten
	d := took(func() {
		plan := must(engine.PlanAppend(ctx, []engine.Piece{{Name: more, Open: func(ctx context.Context) (*engine.Source, error) {
			return engine.OpenSource(ctx, more, nil)
		}}}, engine.AppendOptions{Dim: "time", Link: true}))
		must(db.Append(ctx, plan, engine.ImportOptions{Validate: engine.ValidateNone, Message: "append"}))
	})
	r.add("append 1000", millis(d), "ms")
	r.add("  written", float64(db.DiskUse().IndexWritten-before), "B")
}

// linkSet imports the set to a path, and returns the bytes that the index got.
func linkSet(ctx context.Context, db *engine.DB, url, to string) (d time.Duration, written int64) {
	o := engine.ImportOptions{To: to, Link: true, Overwrite: true, Validate: engine.ValidateNone, Message: "import"}
	before := db.DiskUse().IndexWritten
	d = took(func() {
		src := must(engine.OpenSource(ctx, url, nil))
		defer src.Close()
		must(db.Import(ctx, src, o))
	})
	return d, db.DiskUse().IndexWritten - before
}

// list lists all keys, n of them chunks.
func (r *refBench) list(ctx context.Context, db *engine.DB, n int64) {
	view(ctx, db, func(s *engine.Snapshot) {
		start, keys := time.Now(), int64(0)
		for _, err := range s.List(ctx, kv.ListOptions{}) {
			check(err)
			keys++
		}
		if keys != n+3 {
			check(fmt.Errorf("%d keys, not %d", keys, n+3))
		}
		r.add("keys", float64(keys)/time.Since(start).Seconds()/1e6, "M/s")
	})
}

// lookUp finds a thousand references, always the same ones and few enough that
// their pages stay in memory.
func (r *refBench) lookUp(ctx context.Context, snap *engine.Snapshot, metric string, sets int) {
	rng := rand.New(rand.NewPCG(3, 3))
	times := make([]time.Duration, 1000)
	for i := range times {
		set, at := rng.Int64N(int64(sets)), rng.Int64N(r.set.steps*refsPerStep)
		for at%refsPerStep == 7 { // some of these were changed
			at = rng.Int64N(r.set.steps * refsPerStep)
		}
		key := fmt.Sprintf("t/%d.%d", at/refsPerStep, at%refsPerStep)
		if sets > 1 {
			key = setPath(int(set)) + "/" + key
		}
		start := time.Now()
		v, err := snap.Value(ctx, key)
		times[i] = time.Since(start)
		if err != nil || v.Length != chunkLength(set*r.set.steps*refsPerStep+at) {
			check(fmt.Errorf("%s: %+v, %v", key, v, err))
		}
	}
	r.add(metric, micros(quantile(times, 0.5)), "us")
}

// peakMemory returns the most memory that this program has from the system while fn runs.
func peakMemory(fn func()) int64 { return peakOf(5*time.Millisecond, heldMemory, fn) }

// peakOf returns the largest of samples that are taken while fn runs.
func peakOf(every time.Duration, sample func() int64, fn func()) int64 {
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		most := sample()
		for {
			select {
			case <-time.After(every):
				most = max(most, sample())
			case <-stop:
				peak <- most
				return
			}
		}
	}()
	err := attempt(fn)
	close(stop)
	most := <-peak
	check(err)
	return most
}
