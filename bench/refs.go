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

// chunkLength is that of the chunk with a number.
func chunkLength(n int64) int64 { return 40_000 + n*7919%16_381 }

// write makes the set a JSON file.
func (s refSet) write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
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
	return errors.Join(w.Flush(), f.Close())
}

// references measures linking ten million virtual chunks, and what changing a
// few of them costs afterwards.
func references(ctx context.Context, b *bench) error {
	steps := int64(10_000)
	if b.quick {
		steps = 100
	}
	for _, perFile := range []int64{8, 1} {
		r := refBench{bench: b, workload: "references", set: refSet{steps: steps, perFile: perFile}}
		if err := r.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", r.variant, err)
		}
	}
	return nil
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

func (r *refBench) run(ctx context.Context) error {
	db, json, parquet := r.path("refs.zdb"), r.path("refs.json"), r.path("refs.parquet")
	for _, name := range []string{db, json, parquet} {
		defer os.RemoveAll(name)
	}
	if err := r.set.write(json); err != nil {
		return err
	}
	r.variant = fmt.Sprintf("JSON, %d a file", r.set.perFile)
	if err := r.link(ctx, db, json); err != nil {
		return err
	}
	if err := r.besideJSON(ctx, json); err != nil {
		return err
	}
	src, err := engine.OpenSource(ctx, db+"/|zarrdb:@branch.main", nil)
	if err != nil {
		return err
	}
	start := time.Now()
	_, err = engine.ExportReferences(ctx, src, parquet, engine.ExportReferencesOptions{Parquet: true})
	took := time.Since(start)
	if err = errors.Join(err, src.Close(), os.RemoveAll(db)); err != nil {
		return err
	}
	r.variant = fmt.Sprintf("parquet, %d a file", r.set.perFile)
	r.set.steps++ // link appended one
	r.add("export", took.Seconds(), "s")
	r.add("export rate", float64(r.set.steps*refsPerStep)/took.Seconds()/1e6, "M/s")
	if err := r.link(ctx, db, parquet); err != nil {
		return err
	}
	return r.besideParquet(ctx, parquet)
}

// besideJSON measures others on the same set, and those that take minutes for it
// on a hundredth.
func (r *refBench) besideJSON(ctx context.Context, set string) error {
	if r.set.perFile == 1 {
		return nil
	}
	few := r.path("few.json")
	defer os.RemoveAll(few)
	defer os.RemoveAll(few + ".kerchunk")
	small := refSet{steps: max(r.set.steps/100, 1), perFile: r.set.perFile}
	if err := small.write(few); err != nil {
		return err
	}
	args := func(s refSet, path, variant string) map[string]any {
		return map[string]any{"workload": "references", "variant": variant, "set": path, "n": s.steps * refsPerStep}
	}
	return errors.Join(
		r.beside(ctx, "fsspec_json", args(r.set, set, r.variant)),
		r.beside(ctx, "virtualizarr", args(small, few, r.variant)),
		r.beside(ctx, "kerchunk", args(small, few, strings.Replace(r.variant, "JSON", "parquet", 1))))
}

func (r *refBench) besideParquet(ctx context.Context, set string) error {
	if r.set.perFile == 1 {
		return nil
	}
	n := r.set.steps * refsPerStep
	dir := r.path("icechunk")
	defer os.RemoveAll(dir)
	return errors.Join(
		r.beside(ctx, "fsspec_parquet", map[string]any{"workload": "references", "variant": r.variant, "set": set, "n": n}),
		r.beside(ctx, "icechunk", map[string]any{"workload": "references", "variant": r.variant, "dir": dir, "n": n, "per_file": r.set.perFile}))
}

// link measures a new database that the set is linked into.
func (r *refBench) link(ctx context.Context, dir, set string) error {
	db, err := engine.Create(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	n := r.set.steps * refsPerStep
	peak := watchMemory()
	took, _, err := linkSet(ctx, db, set, "")
	most := peak()
	if err != nil {
		return err
	}
	r.add("import", took.Seconds(), "s")
	r.add("import rate", float64(n)/took.Seconds()/1e6, "M/s")
	r.add("import peak memory", float64(most)/(1<<20), "MiB")
	took, written, err := linkSet(ctx, db, set, "")
	if err != nil {
		return err
	}
	r.add("import again, nothing new", took.Seconds(), "s")
	r.add("  written", float64(written), "B")
	if err := r.grow(ctx, db); err != nil {
		return err
	}
	if err := r.list(ctx, db, n+refsPerStep); err != nil {
		return err
	}
	if err := r.change(ctx, db); err != nil {
		return err
	}
	return r.openAgain(ctx, db, dir, 1)
}

// change commits one changed reference at a time.
func (r *refBench) change(ctx context.Context, db *engine.DB) error {
	times := make([]time.Duration, 50)
	other := tree.Source{URL: "s3://archive/" + r.variant + ".nc"} // an export of this version is imported again
	for i := range times {
		start := time.Now()
		_, err := db.Update(ctx, "main", "change", func(s *engine.Session) error {
			return s.SetVirtual(ctx, fmt.Sprintf("t/%d.7", i), other, uint64(i), uint64(chunkLength(int64(i)*refsPerStep+7)))
		})
		if err != nil {
			return err
		}
		times[i] = time.Since(start)
	}
	r.add("commit of 1 changed p50", millis(quantile(times, 0.5)), "ms")
	return nil
}

// openAgain opens the database anew, which has as many sets, and finds some
// references: of the first time their pages come from the page cache of the
// system and must be parsed. It opens twice, because the first time the file
// system may be writing what the import left, and opening waits for a file.
func (r *refBench) openAgain(ctx context.Context, db *engine.DB, dir string, sets int) error {
	var snap *engine.Snapshot
	for _, metric := range []string{"open", "open again"} {
		if snap != nil {
			if err := snap.Close(); err != nil {
				return err
			}
		}
		if err := db.Close(); err != nil {
			return err
		}
		start := time.Now()
		var err error
		if db, err = engine.Open(ctx, dir, nil); err != nil {
			return err
		}
		if snap, err = db.At(ctx, "main"); err != nil {
			return errors.Join(err, db.Close())
		}
		r.add(metric, millis(time.Since(start)), "ms")
	}
	var err error
	for _, metric := range []string{"look-up p50", "look-up again p50"} {
		if err == nil {
			err = r.lookUp(ctx, snap, metric, sets)
		}
	}
	if err = errors.Join(err, snap.Close(), db.Close()); err != nil {
		return err
	}
	size, err := treeSize(filepath.Join(dir, "index"))
	r.add("size of a reference", float64(size)/float64(int64(sets)*r.set.steps*refsPerStep), "B")
	return err
}

// treeSize is the size of all files of a directory.
func treeSize(dir string) (size int64, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return 0, err
		}
		size += info.Size()
	}
	return size, err
}

// grow appends another step.
func (r *refBench) grow(ctx context.Context, db *engine.DB) error {
	more := r.path("more.json")
	if err := (refSet{steps: 1, first: r.set.steps, perFile: r.set.perFile}).write(more); err != nil {
		return err
	}
	before, start := db.DiskUse().IndexWritten, time.Now()
	plan, err := engine.PlanAppend(ctx, []engine.Piece{{Name: more, Open: func(ctx context.Context) (*engine.Source, error) {
		return engine.OpenSource(ctx, more, nil)
	}}}, "time", true)
	if err != nil {
		return err
	}
	if _, err := db.Append(ctx, plan, engine.ImportOptions{Validate: engine.ValidateNone, Message: "append"}); err != nil {
		return err
	}
	r.add("append 1000", time.Since(start).Seconds()*1e3, "ms")
	r.add("  written", float64(db.DiskUse().IndexWritten-before), "B")
	return nil
}

// linkSet imports the set to a path, and tells the bytes that the index got.
func linkSet(ctx context.Context, db *engine.DB, url, to string) (took time.Duration, written int64, err error) {
	o := engine.ImportOptions{To: to, Link: true, Overwrite: true, Validate: engine.ValidateNone, Message: "import"}
	before, start := db.DiskUse().IndexWritten, time.Now()
	src, err := engine.OpenSource(ctx, url, nil)
	if err != nil {
		return 0, 0, err
	}
	_, err = db.Import(ctx, src, o)
	took = time.Since(start)
	return took, db.DiskUse().IndexWritten - before, errors.Join(err, src.Close())
}

// list lists all keys, n of them chunks.
func (r *refBench) list(ctx context.Context, db *engine.DB, n int64) error {
	snap, err := db.At(ctx, "main")
	if err != nil {
		return err
	}
	defer snap.Close()
	start, keys := time.Now(), int64(0)
	for _, err := range snap.List(ctx, kv.ListOptions{}) {
		if err != nil {
			return err
		}
		keys++
	}
	if keys != n+3 {
		return fmt.Errorf("%d keys, not %d", keys, n+3)
	}
	r.add("keys", float64(keys)/time.Since(start).Seconds()/1e6, "M/s")
	return nil
}

// lookUp finds a thousand references, always the same ones and few enough that
// their pages stay in memory.
func (r *refBench) lookUp(ctx context.Context, snap *engine.Snapshot, metric string, sets int) error {
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
			return fmt.Errorf("%s: %+v, %v", key, v, err)
		}
	}
	r.add(metric, micros(quantile(times, 0.5)), "us")
	return nil
}

// watchMemory samples what this program has from the system until the function
// that it returns is called, which returns the most that was seen.
func watchMemory() (peak func() uint64) {
	stop, done := make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, heldMemory())
			select {
			case <-tick.C:
			case <-stop:
				done <- most
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		return <-done
	}
}
