package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/zarrdb/zarrdb/engine"
)

// manySets are linked into one database by manyReferences.
const manySets = 10

// setPath is where one of several sets is.
func setPath(i int) string { return fmt.Sprintf("run%d", i) }

// manyReferences measures a database of a hundred million virtual chunks: ten
// sets of ten million, each linked by a commit of its own, of files that no two
// sets share.
func manyReferences(ctx context.Context, b *bench) error {
	steps := int64(10_000)
	if b.quick {
		steps = 20
	}
	for _, perFile := range []int64{8, 1} {
		r := refBench{bench: b, workload: "references100M", variant: fmt.Sprintf("%d a file", perFile), set: refSet{steps: steps, perFile: perFile}}
		if err := r.many(ctx); err != nil {
			return fmt.Errorf("%s: %w", r.variant, err)
		}
	}
	return nil
}

func (r *refBench) many(ctx context.Context) error {
	dir, set := r.path("many.zdb"), r.path("many.json")
	defer os.RemoveAll(dir)
	defer os.Remove(set)
	db, err := engine.Create(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	took, last, peak := time.Duration(0), time.Duration(0), uint64(0)
	for i := range manySets {
		one := r.set
		one.first = int64(i) * one.steps
		if err := one.write(set); err != nil {
			return err
		}
		most := watchMemory()
		last, _, err = linkSet(ctx, db, set, setPath(i))
		if peak = max(peak, most()); err != nil {
			return err
		}
		took += last
	}
	n := manySets * r.set.steps * refsPerStep
	r.add("import", took.Seconds(), "s")
	r.add("import rate", float64(n)/took.Seconds()/1e6, "M/s")
	r.add("import of the last tenth", last.Seconds(), "s")
	r.add("import peak memory", float64(peak)/(1<<20), "MiB")
	debug.FreeOSMemory()
	if err := r.openAgain(ctx, db, dir, manySets); err != nil {
		return err
	}
	r.add("memory then", float64(heldMemory())/(1<<20), "MiB")
	return nil
}

// heldMemory is what this program has from the system.
func heldMemory() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
