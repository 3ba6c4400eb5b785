package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr"
)

// metadata makes arrays in 100 groups, lists them, and opens single ones. The first list is that of a
// process that has read nothing.
func metadata(ctx context.Context, b *bench) {
	n := 10_000
	if b.quick {
		n = 1000
	}
	dir, variant := b.path("metadata.zdb"), fmt.Sprintf("%d arrays", n)
	defer os.RemoveAll(dir)
	path := func(i int) string { return fmt.Sprintf("g%02d/a%04d", i%100, i/100) }
	db := must(engine.Create(ctx, dir, nil))
	b.add("metadata", variant, "create", took(func() {
		update(ctx, db, "arrays", func(s *engine.Session) {
			for i := range n {
				must(s.CreateArray(ctx, path(i), zarr.Spec{Shape: []int64{100, 100}, Chunks: []int64{10, 10}, DataType: "float32"}))
			}
		})
	}).Seconds(), "s")
	check(db.Close())
	db = must(engine.Open(ctx, dir, &engine.Options{ReadOnly: true}))
	defer db.Close()
	view(ctx, db, func(s *engine.Snapshot) {
		times := timed(4, func(int) {
			found := 0
			for node, err := range s.Walk(ctx, "") {
				check(err)
				if _, ok := node.Array(); ok {
					found++
				}
			}
			if found != n {
				check(fmt.Errorf("%d of %d arrays are listed", found, n))
			}
		})
		b.add("metadata", variant, "list, first", millis(times[0]), "ms")
		b.add("metadata", variant, "list", millis(slices.Min(times[1:])), "ms")
		keys := timed(4, func(int) {
			for _, err := range s.List(ctx, kv.ListOptions{}) {
				check(err)
			}
		})
		b.add("metadata", variant, "keys", millis(slices.Min(keys)), "ms")
		rng := rand.New(rand.NewPCG(9, 9))
		open := timed(20_000, func(int) { must(s.Array(ctx, path(rng.IntN(n)))) })
		b.add("metadata", variant, "open one p50", micros(quantile(open, 0.5)), "us")
	})
}
