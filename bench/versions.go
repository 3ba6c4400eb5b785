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
// float64, too long to be kept inline.
const chunkBytes = 1024

// versions measures the cost of commits and refs in an array of few and of many
// chunks: only the changes may count.
func versions(ctx context.Context, b *bench) {
	sizes := []int64{10, 10_000, 1_000_000}
	if b.quick {
		sizes = []int64{10, 10_000}
	}
	arrays := make([]*chunkArray, len(sizes))
	for i, n := range sizes {
		db, remove := b.create(ctx, fmt.Sprintf("versions-%d.zdb", n))
		defer remove()
		arrays[i] = &chunkArray{n: n, db: db, rng: rand.New(rand.NewPCG(1, 1))}
		b.add("versions", variantOf(n), "fill + first commit", took(func() { fillChunks(ctx, db, "a", n) }).Seconds(), "s")
	}
	commitInTurn(ctx, b, arrays)
	for _, a := range arrays {
		variant := variantOf(a.n)
		refCosts(ctx, b, a.db, variant)
		letGo(ctx, b, a.db, variant)
		if a.n > 10_000 {
			continue // other programs take minutes: their figures are recorded ones
		}
		for _, part := range []string{"icechunk", "ocdbt"} {
			b.beside(ctx, versionsScript, part, map[string]any{"workload": "versions", "variant": variant, "dir": b.dir, "n": a.n})
		}
	}
}

// letGo measures expiry of all versions but the last, and the collection of
// their values.
func letGo(ctx context.Context, b *bench, db *engine.DB, variant string) {
	for i := range refRounds {
		check(errors.Join(db.DeleteBranch(ctx, fmt.Sprintf("b%d", i)), db.DeleteTag(ctx, fmt.Sprintf("t%d", i))))
	}
	d := took(func() {
		must(db.Expire(ctx, txn.ExpireOptions{Keep: 1}))
		must(db.GC(ctx, txn.GCOptions{}))
	})
	b.add("versions", variant, "expire + gc", millis(d), "ms")
}

// refRounds is how often work is measured that must not depend on the number of chunks.
const refRounds = 50

// chunkArray is a database with an array "a" of n chunks.
type chunkArray struct {
	n       int64
	db      *engine.DB
	rng     *rand.Rand
	commits []time.Duration
}

// commitInTurn commits one random chunk in each array, over and over, so that
// other work of the machine meets all of them alike.
func commitInTurn(ctx context.Context, b *bench, arrays []*chunkArray) {
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
			a.commits = append(a.commits, took(func() {
				update(ctx, a.db, fmt.Sprint(i), func(s *engine.Session) { check(s.Set(ctx, key, value)) })
			}))
		}
	}
	for i, a := range arrays {
		written := a.db.DiskUse().IndexWritten - before[i]
		b.add("versions", variantOf(a.n), "commit of 1 chunk p50", micros(quantile(a.commits, 0.5)), "us")
		b.add("versions", variantOf(a.n), "commit of 1 chunk p99", micros(quantile(a.commits, 0.99)), "us")
		b.add("versions", variantOf(a.n), "index bytes per commit", float64(written)/rounds, "B")
	}
}

func variantOf(n int64) string { return fmt.Sprintf("%d chunks", n) }

// fillChunks makes an array of n chunks through the raw store, one commit.
func fillChunks(ctx context.Context, db *engine.DB, path string, n int64) {
	spec := zarr.Spec{Shape: []int64{n, chunkBytes / 8}, Chunks: []int64{1, chunkBytes / 8}, DataType: "float64"}
	fillArray(ctx, db, path, spec, n, func(i int64) string { return fmt.Sprintf("%d/0", i) })
}

// fillArray makes an array and sets n chunks of it, one commit.
func fillArray(ctx context.Context, db *engine.DB, path string, spec zarr.Spec, n int64, coords func(i int64) string) {
	update(ctx, db, "fill", func(s *engine.Session) {
		must(s.CreateArray(ctx, path, spec))
		value := make([]byte, 8*spec.Chunks[len(spec.Chunks)-1])
		for i := range n {
			binary.LittleEndian.PutUint64(value, uint64(i))
			check(s.Set(ctx, path+"/c/"+coords(i), value))
		}
	})
}

// refCosts measures work whose cost must not depend on the number of chunks.
func refCosts(ctx context.Context, b *bench, db *engine.DB, variant string) {
	head, older := must(db.Head(ctx, "main")), must(db.Resolve(ctx, "main~10"))
	names := []string{"a", "b"}
	b.steps("versions", variant, refRounds, []step{
		{"branch", func(i int) { check(db.Versions().CreateBranch(ctx, fmt.Sprintf("b%d", i), head)) }},
		{"tag", func(i int) { check(db.Versions().CreateTag(ctx, fmt.Sprintf("t%d", i), head)) }},
		{"reset", func(i int) { must(db.Versions().Reset(ctx, "b0", []txn.CommitID{head, older}[i%2])) }},
		{"open old version + 1 chunk", func(int) {
			check(db.View(ctx, "main~10", func(s *engine.Snapshot) error {
				must(kv.Get(ctx, s, "a/c/0/0"))
				return nil
			}))
		}},
		{"diff of 10 commits", func(int) { must(db.NodeChanges(ctx, older, head, "")) }},
		{"rename array", func(i int) {
			update(ctx, db, "mv", func(s *engine.Session) { check(s.Move(ctx, names[i%2], names[(i+1)%2])) })
		}},
		{"copy array", func(i int) {
			update(ctx, db, "cp", func(s *engine.Session) { check(s.Copy(ctx, nil, "a", fmt.Sprintf("copy%d", i))) })
		}},
		{"delete array", func(i int) {
			update(ctx, db, "rm", func(s *engine.Session) { check(s.Remove(ctx, fmt.Sprintf("copy%d", i))) })
		}},
	})
}

// lookup measures finding random chunks among many, and opening the database
// that holds them.
func lookup(ctx context.Context, b *bench) {
	n := int64(10_000_000)
	if b.quick {
		n = 100_000
	}
	dir, variant := b.path("lookup.zdb"), variantOf(n)
	defer os.RemoveAll(dir)
	opts := &engine.Options{PageCacheBytes: 2 << 30}
	db := must(engine.Create(ctx, dir, opts))
	spec := zarr.Spec{Shape: []int64{n / 1000, 1000}, Chunks: []int64{1, 1}, DataType: "float64"}
	fill := took(func() {
		fillArray(ctx, db, "a", spec, n, func(i int64) string { return fmt.Sprintf("%d/%d", i/1000, i%1000) })
	})
	b.add("lookup", variant, "fill + first commit", fill.Seconds(), "s")
	check(db.Close())
	b.add("lookup", variant, "open", millis(took(func() { db = must(engine.Open(ctx, dir, opts)) })), "ms")
	defer db.Close()
	view(ctx, db, func(s *engine.Snapshot) {
		rng := rand.New(rand.NewPCG(5, 5))
		find := func(times int) []time.Duration {
			keys := make([]string, times)
			for i := range keys {
				keys[i] = fmt.Sprintf("a/c/%d/%d", rng.Int64N(n/1000), rng.Int64N(1000))
			}
			return timed(times, func(i int) { must(s.Locate(ctx, keys[i])) })
		}
		b.add("lookup", variant, "first touches p50", micros(quantile(find(20_000), 0.5)), "us")
		scan := func() (count int) {
			for _, err := range s.Values(ctx, "a/") {
				check(err)
				count++
			}
			return count
		}
		scan() // every page once
		hot := find(200_000)
		b.add("lookup", variant, "cached p50", micros(quantile(hot, 0.5)), "us")
		b.add("lookup", variant, "cached p99", micros(quantile(hot, 0.99)), "us")
		start := time.Now()
		b.add("lookup", variant, "scan", float64(scan())/1e6/time.Since(start).Seconds(), "M keys/s")
	})
}
