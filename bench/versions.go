package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

// chunkBytes is the size of the chunks of the version benchmarks: 64 random
// float64, above what is kept inline.
const chunkBytes = 1024

// versions measures what commits and refs cost in an array of few and of many
// chunks: only the changes may count.
func versions(ctx context.Context, b *bench) error {
	sizes := []int64{10, 10_000, 1_000_000}
	if b.quick {
		sizes = []int64{10, 10_000}
	}
	arrays := make([]*chunkArray, len(sizes))
	for i, n := range sizes {
		a := &chunkArray{n: n, rng: rand.New(rand.NewPCG(1, 1))}
		dir := b.path(fmt.Sprintf("versions-%d.zdb", n))
		defer os.RemoveAll(dir)
		var err error
		if a.db, err = engine.Create(ctx, dir, nil); err != nil {
			return err
		}
		defer a.db.Close()
		start := time.Now()
		if err := fillChunks(ctx, a.db, "a", n); err != nil {
			return err
		}
		b.add("versions", variantOf(n), "fill + first commit", time.Since(start).Seconds(), "s")
		arrays[i] = a
	}
	if err := commitInTurn(ctx, b, arrays); err != nil {
		return err
	}
	for _, a := range arrays {
		variant := variantOf(a.n)
		if err := errors.Join(refCosts(ctx, b, a.db, variant), letGo(ctx, b, a.db, variant)); err != nil {
			return err
		}
		if a.n > 10_000 {
			continue // takes others minutes: their figures are recorded ones
		}
		args := map[string]any{"workload": "versions", "variant": variant, "dir": b.dir, "n": a.n}
		if err := errors.Join(b.versionsOfOthers(ctx, "icechunk", args), b.versionsOfOthers(ctx, "ocdbt", args)); err != nil {
			return err
		}
	}
	return nil
}

// letGo measures expiry of all versions but the last, and the collection of what
// they hold.
func letGo(ctx context.Context, b *bench, db *engine.DB, variant string) error {
	for i := range refRounds {
		if err := errors.Join(db.DeleteBranch(fmt.Sprintf("b%d", i)), db.DeleteTag(fmt.Sprintf("t%d", i))); err != nil {
			return err
		}
	}
	start := time.Now()
	if _, err := db.Expire(ctx, txn.ExpireOptions{Keep: 1}); err != nil {
		return err
	}
	if _, err := db.GC(ctx, txn.GCOptions{}); err != nil {
		return err
	}
	b.add("versions", variant, "expire + gc", millis(time.Since(start)), "ms")
	return nil
}

// refRounds is how often what must not depend on the number of chunks is done.
const refRounds = 50

// chunkArray is a database with an array "a" of n chunks.
type chunkArray struct {
	n       int64
	db      *engine.DB
	rng     *rand.Rand
	commits []time.Duration
}

// commitInTurn commits one random chunk in each array, over and over, so that
// whatever else the machine does meets all of them alike.
func commitInTurn(ctx context.Context, b *bench, arrays []*chunkArray) error {
	const rounds = 300
	value := make([]byte, chunkBytes)
	before := make([]int64, len(arrays))
	for i, a := range arrays {
		before[i] = a.db.DiskUse().IndexWritten
	}
	settle()
	for i := range rounds {
		for _, a := range arrays {
			binary.LittleEndian.PutUint64(value, a.rng.Uint64())
			key := fmt.Sprintf("a/c/%d/0", a.rng.Int64N(a.n))
			start := time.Now()
			_, err := a.db.Update(ctx, "main", fmt.Sprint(i), func(s *engine.Session) error { return s.Set(ctx, key, value) })
			if err != nil {
				return err
			}
			a.commits = append(a.commits, time.Since(start))
		}
	}
	for i, a := range arrays {
		written := a.db.DiskUse().IndexWritten - before[i]
		b.add("versions", variantOf(a.n), "commit of 1 chunk p50", micros(quantile(a.commits, 0.5)), "us")
		b.add("versions", variantOf(a.n), "commit of 1 chunk p99", micros(quantile(a.commits, 0.99)), "us")
		b.add("versions", variantOf(a.n), "index bytes per commit", float64(written)/rounds, "B")
	}
	return nil
}

func variantOf(n int64) string { return fmt.Sprintf("%d chunks", n) }

// fillChunks makes an array of n chunks through the raw store, one commit.
func fillChunks(ctx context.Context, db *engine.DB, path string, n int64) error {
	_, err := db.Update(ctx, "main", "fill", func(s *engine.Session) error {
		spec := zarr.Spec{Shape: []int64{n, chunkBytes / 8}, Chunks: []int64{1, chunkBytes / 8}, DataType: "float64"}
		if _, err := s.CreateArray(ctx, path, spec); err != nil {
			return err
		}
		value := make([]byte, chunkBytes)
		for i := range n {
			binary.LittleEndian.PutUint64(value, uint64(i))
			if err := s.Set(ctx, fmt.Sprintf("%s/c/%d/0", path, i), value); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// refCosts measures what must not depend on the number of chunks.
func refCosts(ctx context.Context, b *bench, db *engine.DB, variant string) error {
	head, err := db.Head("main")
	if err != nil {
		return err
	}
	measure := func(name string, op func(i int) error) error {
		var times []time.Duration
		for i := range refRounds {
			start := time.Now()
			if err := op(i); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			times = append(times, time.Since(start))
		}
		b.add("versions", variant, name+" p50", micros(quantile(times, 0.5)), "us")
		return nil
	}
	older, err := db.Resolve(ctx, "main~10")
	if err != nil {
		return err
	}
	steps := []struct {
		name string
		op   func(i int) error
	}{
		{"branch", func(i int) error { return db.CreateBranch(ctx, fmt.Sprintf("b%d", i), head) }},
		{"tag", func(i int) error { return db.CreateTag(ctx, fmt.Sprintf("t%d", i), head) }},
		{"reset", func(i int) error {
			_, err := db.Reset(ctx, "b0", []txn.CommitID{head, older}[i%2])
			return err
		}},
		{"open old version + 1 chunk", func(int) error {
			return db.View(ctx, "main~10", func(s *engine.Snapshot) error {
				_, err := kv.Get(ctx, s, "a/c/0/0")
				return err
			})
		}},
		{"diff of 10 commits", func(int) error {
			_, err := db.NodeChanges(ctx, older, head, "")
			return err
		}},
		{"rename array", func(i int) error {
			names := []string{"a", "b"}
			_, err := db.Update(ctx, "main", "mv", func(s *engine.Session) error { return s.Move(ctx, names[i%2], names[(i+1)%2]) })
			return err
		}},
		{"copy array", func(i int) error {
			_, err := db.Update(ctx, "main", "cp", func(s *engine.Session) error { return s.Copy(ctx, nil, "a", fmt.Sprintf("copy%d", i)) })
			return err
		}},
		{"delete array", func(i int) error {
			_, err := db.Update(ctx, "main", "rm", func(s *engine.Session) error { return s.Remove(ctx, fmt.Sprintf("copy%d", i)) })
			return err
		}},
	}
	for _, s := range steps {
		if err := measure(s.name, s.op); err != nil {
			return err
		}
	}
	return nil
}

// lookup measures finding random chunks among many, and opening the database
// that holds them.
func lookup(ctx context.Context, b *bench) error {
	n := int64(10_000_000)
	if b.quick {
		n = 100_000
	}
	dir, variant := b.path("lookup.zdb"), variantOf(n)
	defer os.RemoveAll(dir)
	opts := &engine.Options{PageCacheBytes: 2 << 30}
	db, err := engine.Create(ctx, dir, opts)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := fillTiny(ctx, db, n); err != nil {
		return err
	}
	b.add("lookup", variant, "fill + first commit", time.Since(start).Seconds(), "s")
	if err := db.Close(); err != nil {
		return err
	}
	start = time.Now()
	if db, err = engine.Open(ctx, dir, opts); err != nil {
		return err
	}
	defer db.Close()
	b.add("lookup", variant, "open", millis(time.Since(start)), "ms")
	return db.View(ctx, "main", func(s *engine.Snapshot) error {
		rng := rand.New(rand.NewPCG(5, 5))
		find := func(times []time.Duration) error {
			for i := range times {
				key := fmt.Sprintf("a/c/%d/%d", rng.Int64N(n/1000), rng.Int64N(1000))
				start := time.Now()
				_, err := s.Locate(ctx, key)
				times[i] = time.Since(start)
				if err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
			}
			return nil
		}
		cold := make([]time.Duration, 20_000)
		if err := find(cold); err != nil {
			return err
		}
		b.add("lookup", variant, "first touches p50", micros(quantile(cold, 0.5)), "us")
		for v, err := range s.Values(ctx, "a/") { // every page once
			if _ = v; err != nil {
				return err
			}
		}
		hot := make([]time.Duration, 200_000)
		if err := find(hot); err != nil {
			return err
		}
		b.add("lookup", variant, "cached p50", micros(quantile(hot, 0.5)), "us")
		b.add("lookup", variant, "cached p99", micros(quantile(hot, 0.99)), "us")
		start := time.Now()
		count := 0
		for _, err := range s.Values(ctx, "a/") {
			if err != nil {
				return err
			}
			count++
		}
		b.add("lookup", variant, "scan", float64(count)/1e6/time.Since(start).Seconds(), "M keys/s")
		return nil
	})
}

// fillTiny makes an array of n chunks of a few bytes.
func fillTiny(ctx context.Context, db *engine.DB, n int64) error {
	_, err := db.Update(ctx, "main", "fill", func(s *engine.Session) error {
		spec := zarr.Spec{Shape: []int64{n / 1000, 1000}, Chunks: []int64{1, 1}, DataType: "float64"}
		if _, err := s.CreateArray(ctx, "a", spec); err != nil {
			return err
		}
		value := make([]byte, 8)
		for i := range n {
			binary.LittleEndian.PutUint64(value, uint64(i))
			if err := s.Set(ctx, fmt.Sprintf("a/c/%d/%d", i/1000, i%1000), value); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}
