package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// manySets are linked into one database by manyReferences.
const manySets = 10

// setPath is where one of several sets is.
func setPath(i int) string { return fmt.Sprintf("run%d", i) }

// manyReferences measures a database of a hundred million virtual chunks: ten
// sets of ten million, each linked by a commit of its own, of files that no two
// sets share.
func manyReferences(ctx context.Context, b *bench) {
	steps := int64(10_000)
	if b.quick {
		steps = 20
	}
	for _, perFile := range []int64{8, 1} {
		r := refBench{bench: b, workload: "references100M", variant: fmt.Sprintf("%d a file", perFile), set: refSet{steps: steps, perFile: perFile}}
		named(r.variant, func() { r.many(ctx) })
	}
}

func (r *refBench) many(ctx context.Context) {
	set := r.path("many.json")
	defer os.Remove(set)
	db, remove := r.create(ctx, "many.zdb")
	defer remove()
	all, last, peak := time.Duration(0), time.Duration(0), int64(0)
	for i := range manySets {
		one := r.set
		one.first = int64(i) * one.steps
		one.write(set)
		peak = max(peak, peakMemory(func() { last, _ = linkSet(ctx, db, set, setPath(i)) }))
		all += last
	}
	r.imported(manySets*r.set.steps*refsPerStep, all, peak)
	r.add("import of the last tenth", last.Seconds(), "s")
	debug.FreeOSMemory()
	r.openAgain(ctx, db, r.path("many.zdb"), manySets)
	r.add("memory then", mebibytes(heldMemory()), "MiB")
}

// heldMemory returns the memory that this program has from the system.
func heldMemory() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
