package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
)

// commits measures commits by how much they change, by how long the history
// is, and by how many committers there are.
func commits(ctx context.Context, b *bench) {
	chunks, lengths := []int64{1, 100, 10_000, 1_000_000}, []int{10, 1000, 100_000}
	if b.quick {
		chunks, lengths = []int64{1, 100, 10_000}, []int{10, 1000}
	}
	changedChunks(ctx, b, chunks)
	historyLength(ctx, b, lengths)
	b.beside(ctx, versionsScript, "history", map[string]any{"workload": "commits", "dir": b.dir})
	for _, workers := range []int{1, 8, 64} {
		committers(ctx, b, workers)
	}
}

// changedChunks measures commits that change some of many chunks.
func changedChunks(ctx context.Context, b *bench, changed []int64) {
	n := changed[len(changed)-1]
	db, remove := b.create(ctx, "changed.zdb")
	defer remove()
	fillChunks(ctx, db, "a", n)
	settle()
	rng := rand.New(rand.NewPCG(2, 2))
	value := make([]byte, chunkBytes)
	for _, k := range changed {
		rounds := int(min(max(20_000/k, 1), 200))
		var last []time.Duration
		whole := timed(rounds, func(int) {
			s := must(db.Begin(ctx, "main"))
			for i := range k {
				at := i
				if k < n {
					at = rng.Int64N(n)
				}
				binary.LittleEndian.PutUint64(value, rng.Uint64())
				check(s.Set(ctx, fmt.Sprintf("a/c/%d/0", at), value))
			}
			last = append(last, took(func() { must(s.Commit(ctx, txn.CommitOptions{Message: "change"})) }))
		})
		variant := fmt.Sprintf("%d of %d chunks", k, n)
		b.add("commits", variant, "session + write + commit p50", micros(quantile(whole, 0.5)), "us")
		b.add("commits", variant, "commit p50", micros(quantile(last, 0.5)), "us")
		diffAndMerge(ctx, b, db, variant, k, n)
	}
}

// diffAndMerge compares the newest commit with the one before, and merges as
// many other changes as it made.
func diffAndMerge(ctx context.Context, b *bench, db *engine.DB, variant string, k, n int64) {
	head := must(db.Head(ctx, "main"))
	parent := must(db.Versions().Lookup(ctx, head)).Parents[0]
	b.add("commits", variant, "diff", micros(took(func() { must(db.NodeChanges(ctx, parent, head, "")) })), "us")
	if k == n {
		return // the commit changed every chunk: no others to merge with
	}
	side := fmt.Sprintf("side-%d", k)
	check(db.Versions().CreateBranch(ctx, side, parent))
	other := must(db.Update(ctx, side, "side", func(s *engine.Session) error {
		for i := range k {
			// Another array, because the chunks of head are random.
			check(s.Set(ctx, fmt.Sprintf("b/c/%d/0", i), fmt.Appendf(nil, "%064d", i)))
		}
		return nil
	}))
	merge := took(func() { must(db.Versions().Merge(ctx, "main", other.ID, txn.CommitOptions{})) })
	b.add("commits", variant, "merge with as many others", micros(merge), "us")
}

// historyLength measures commits of one chunk, and reads of the history, when
// there are many commits already.
func historyLength(ctx context.Context, b *bench, lengths []int) {
	db, remove := b.create(ctx, "history.zdb")
	defer remove()
	const chunks = 1000
	fillChunks(ctx, db, "a", chunks)
	made := 2 // the empty one and the fill
	for _, n := range lengths {
		for made < n {
			// Many at a time, only to get there.
			const together = 64
			parallel(together, func(w int) {
				update(ctx, db, "history", func(s *engine.Session) {
					check(s.Set(ctx, fmt.Sprintf("a/c/%d/0", (made+w)%chunks), fmt.Appendf(nil, "%064d", made+w)))
				})
			})
			made += together
		}
		onHistory(ctx, b, db, fmt.Sprintf("%d commits before", n))
		made += 100
	}
}

func onHistory(ctx context.Context, b *bench, db *engine.DB, variant string) {
	head := must(db.Head(ctx, "main"))
	read := func(n int) func(int) {
		return func(int) {
			left := n
			for _, err := range db.Versions().Log(ctx, head) {
				check(err)
				if left--; left == 0 {
					break
				}
			}
		}
	}
	b.steps("commits", variant, 100, []step{
		{"commit of 1 chunk", func(i int) {
			update(ctx, db, "one", func(s *engine.Session) {
				check(s.Set(ctx, fmt.Sprintf("a/c/%d/0", i), fmt.Appendf(nil, "%s %d", variant, i)))
			})
		}},
		{"log of 10", read(10)},
		{"log of 1000", read(1000)},
		{"checkout of main~8", func(int) {
			check(db.View(ctx, "main~8", func(*engine.Snapshot) error { return nil }))
		}},
	})
}

// step is an operation that is done several times.
type step struct {
	name string
	op   func(i int)
}

// steps measures each operation n times.
func (b *bench) steps(workload, variant string, n int, steps []step) {
	for _, s := range steps {
		named(s.name, func() {
			b.add(workload, variant, s.name+" p50", micros(quantile(timed(n, s.op), 0.5)), "us")
		})
	}
}

// committers measures commits of one chunk each by many goroutines at once.
func committers(ctx context.Context, b *bench, workers int) {
	db, remove := b.create(ctx, "committers.zdb")
	defer remove()
	const chunks = 10_000
	fillChunks(ctx, db, "a", chunks)
	settle()
	length := 5 * time.Second
	if b.quick {
		length = 200 * time.Millisecond
	}
	times := make([][]time.Duration, workers)
	start := time.Now()
	parallel(workers, func(w int) {
		for i := 0; time.Since(start) < length; i++ {
			times[w] = append(times[w], took(func() {
				update(ctx, db, "one", func(s *engine.Session) {
					check(s.Set(ctx, fmt.Sprintf("a/c/%d/0", (i*workers+w)%chunks), fmt.Appendf(nil, "%064d", i)))
				})
			}))
		}
	})
	elapsed := time.Since(start)
	all := slices.Concat(times...)
	variant := fmt.Sprintf("%d committers", workers)
	b.add("commits", variant, "single-chunk commits", float64(len(all))/elapsed.Seconds(), "/s")
	b.add("commits", variant, "latency p50", micros(quantile(all, 0.5)), "us")
	b.add("commits", variant, "latency p99", micros(quantile(all, 0.99)), "us")
}
