package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/txn"
)

// commits measures commits by how much they change, by how long the history
// is, and by how many committers there are.
func commits(ctx context.Context, b *bench) error {
	chunks, lengths := []int64{1, 100, 10_000, 1_000_000}, []int{10, 1000, 100_000}
	if b.quick {
		chunks, lengths = []int64{1, 100, 10_000}, []int{10, 1000}
	}
	if err := changedChunks(ctx, b, chunks); err != nil {
		return err
	}
	if err := historyLength(ctx, b, lengths); err != nil {
		return err
	}
	if err := b.versionsOfOthers(ctx, "history", map[string]any{"workload": "commits", "dir": b.dir}); err != nil {
		return err
	}
	return committers(ctx, b)
}

// changedChunks measures commits that change some of many chunks.
func changedChunks(ctx context.Context, b *bench, changed []int64) error {
	n := changed[len(changed)-1]
	dir := b.path("changed.zdb")
	defer os.RemoveAll(dir)
	db, err := engine.Create(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := fillChunks(ctx, db, "a", n); err != nil {
		return err
	}
	settle()
	rng := rand.New(rand.NewPCG(2, 2))
	value := make([]byte, chunkBytes)
	for _, k := range changed {
		rounds := int(min(max(20_000/k, 1), 200))
		var whole, last []time.Duration
		for range rounds {
			start := time.Now()
			s, err := db.Begin(ctx, "main")
			if err != nil {
				return err
			}
			for i := range k {
				at := i
				if k < n {
					at = rng.Int64N(n)
				}
				binary.LittleEndian.PutUint64(value, rng.Uint64())
				if err := s.Set(ctx, fmt.Sprintf("a/c/%d/0", at), value); err != nil {
					return err
				}
			}
			ready := time.Now()
			if _, err := s.Commit(ctx, txn.CommitOptions{Message: "change"}); err != nil {
				return err
			}
			last = append(last, time.Since(ready))
			whole = append(whole, time.Since(start))
		}
		variant := fmt.Sprintf("%d of %d chunks", k, n)
		b.add("commits", variant, "session + write + commit p50", micros(quantile(whole, 0.5)), "us")
		b.add("commits", variant, "commit p50", micros(quantile(last, 0.5)), "us")
		if err := diffAndMerge(ctx, b, db, variant, k, n); err != nil {
			return err
		}
	}
	return nil
}

// diffAndMerge compares the newest commit with the one before, and merges as
// many other changes as it made.
func diffAndMerge(ctx context.Context, b *bench, db *engine.DB, variant string, k, n int64) error {
	head, err := db.Head("main")
	if err != nil {
		return err
	}
	c, err := db.Lookup(ctx, head)
	if err != nil {
		return err
	}
	start := time.Now()
	if _, err := db.NodeChanges(ctx, c.Parents[0], head, ""); err != nil {
		return err
	}
	b.add("commits", variant, "diff", micros(time.Since(start)), "us")
	if k == n {
		return nil // there are no others
	}
	side := fmt.Sprintf("side-%d", k)
	if err := db.CreateBranch(ctx, side, c.Parents[0]); err != nil {
		return err
	}
	_, err = db.Update(ctx, side, "side", func(s *engine.Session) error {
		for i := range k {
			// Another array, because the chunks of head are random.
			if err := s.Set(ctx, fmt.Sprintf("b/c/%d/0", i), fmt.Appendf(nil, "%064d", i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	other, err := db.Head(side)
	if err != nil {
		return err
	}
	start = time.Now()
	if _, err := db.Merge(ctx, "main", other, txn.CommitOptions{}); err != nil {
		return err
	}
	b.add("commits", variant, "merge with as many others", micros(time.Since(start)), "us")
	return nil
}

// historyLength measures commits of one chunk, and what reads history, when
// there are many commits already.
func historyLength(ctx context.Context, b *bench, lengths []int) error {
	dir := b.path("history.zdb")
	defer os.RemoveAll(dir)
	db, err := engine.Create(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	const chunks = 1000
	if err := fillChunks(ctx, db, "a", chunks); err != nil {
		return err
	}
	made := 2 // the empty one and the fill
	for _, n := range lengths {
		for made < n {
			// Many at a time, only to get there.
			const together = 64
			if err := parallel(together, func(w int) error {
				_, err := db.Update(ctx, "main", "history", func(s *engine.Session) error {
					return s.Set(ctx, fmt.Sprintf("a/c/%d/0", (made+w)%chunks), fmt.Appendf(nil, "%064d", made+w))
				})
				return err
			}); err != nil {
				return err
			}
			made += together
		}
		if err := onHistory(ctx, b, db, fmt.Sprintf("%d commits before", n)); err != nil {
			return err
		}
		made += 100
	}
	return nil
}

func onHistory(ctx context.Context, b *bench, db *engine.DB, variant string) error {
	measure := func(name string, op func(i int) error) error {
		var times []time.Duration
		for i := range 100 {
			start := time.Now()
			if err := op(i); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			times = append(times, time.Since(start))
		}
		b.add("commits", variant, name+" p50", micros(quantile(times, 0.5)), "us")
		return nil
	}
	head, err := db.Head("main")
	if err != nil {
		return err
	}
	read := func(n int) func(int) error {
		return func(int) error {
			left := n
			for _, err := range db.Log(ctx, head) {
				if err != nil {
					return err
				}
				if left--; left == 0 {
					break
				}
			}
			return nil
		}
	}
	return errors.Join(
		measure("commit of 1 chunk", func(i int) error {
			_, err := db.Update(ctx, "main", "one", func(s *engine.Session) error {
				return s.Set(ctx, fmt.Sprintf("a/c/%d/0", i), fmt.Appendf(nil, "%s %d", variant, i))
			})
			return err
		}),
		measure("log of 10", read(10)),
		measure("log of 1000", read(1000)),
		measure("checkout of main~8", func(int) error {
			return db.View(ctx, "main~8", func(*engine.Snapshot) error { return nil })
		}),
	)
}

// committers measures commits of one chunk each by many goroutines at once.
func committers(ctx context.Context, b *bench) error {
	for _, workers := range []int{1, 8, 64} {
		dir := b.path("committers.zdb")
		db, err := engine.Create(ctx, dir, nil)
		if err != nil {
			return err
		}
		err = errors.Join(committing(ctx, b, db, workers), db.Close(), os.RemoveAll(dir))
		if err != nil {
			return err
		}
	}
	return nil
}

func committing(ctx context.Context, b *bench, db *engine.DB, workers int) error {
	const chunks = 10_000
	if err := fillChunks(ctx, db, "a", chunks); err != nil {
		return err
	}
	settle()
	length := 5 * time.Second
	if b.quick {
		length = 200 * time.Millisecond
	}
	var done atomic.Int64
	times := make([][]time.Duration, workers)
	start := time.Now()
	err := parallel(workers, func(w int) error {
		for i := 0; time.Since(start) < length; i++ {
			at := time.Now()
			_, err := db.Update(ctx, "main", "one", func(s *engine.Session) error {
				return s.Set(ctx, fmt.Sprintf("a/c/%d/0", (i*workers+w)%chunks), fmt.Appendf(nil, "%064d", i))
			})
			if err != nil {
				return err
			}
			times[w] = append(times[w], time.Since(at))
			done.Add(1)
		}
		return nil
	})
	if err != nil {
		return err
	}
	elapsed := time.Since(start)
	var all []time.Duration
	for _, t := range times {
		all = append(all, t...)
	}
	variant := fmt.Sprintf("%d committers", workers)
	b.add("commits", variant, "single-chunk commits", float64(done.Load())/elapsed.Seconds(), "/s")
	b.add("commits", variant, "latency p50", micros(quantile(all, 0.5)), "us")
	b.add("commits", variant, "latency p99", micros(quantile(all, 0.99)), "us")
	return nil
}

// parallel runs n goroutines and joins their errors.
func parallel(n int, fn func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = fn(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
