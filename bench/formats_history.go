package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/zarr"
)

// foreignHistory imports a repository of a thousand snapshots, each with another
// thousand virtual chunks, with its history.
func foreignHistory(ctx context.Context, b *bench) {
	steps := int64(1000)
	if b.quick {
		steps = 20
	}
	from, repo := b.path("from.zdb"), b.path("repo")
	defer os.RemoveAll(from)
	defer os.RemoveAll(repo)
	writeHistory(ctx, from, steps)
	variant := fmt.Sprintf("icechunk, %d snapshots, %d virtual chunks", steps, steps*refsPerStep)
	export := took(func() {
		exportForeign(ctx, from, repo, engine.ExportOptions{Foreign: engine.ForeignOptions{Format: "icechunk", History: true}})
	})
	b.add("formats", variant, "export", export.Seconds(), "s")
	db, remove := b.create(ctx, "to.zdb")
	defer remove()
	src := must(engine.OpenSource(ctx, "file://"+repo+"/|icechunk:", nil))
	defer src.Close()
	var d time.Duration
	most := peakMemory(func() {
		d = took(func() {
			res := must(db.ImportHistory(ctx, src, engine.HistoryOptions{Link: true, Validate: engine.ValidateNone}))
			if res.Versions < steps {
				check(fmt.Errorf("%d versions, not %d", res.Versions, steps))
			}
		})
	})
	b.add("formats", variant, "import with history", d.Seconds(), "s")
	b.add("formats", variant, "import peak memory", mebibytes(most), "MiB")
}

// writeHistory makes a database of that many commits: each appends a thousand virtual
// chunks to an array.
func writeHistory(ctx context.Context, path string, steps int64) {
	db := must(engine.Create(ctx, path, nil))
	defer db.Close()
	for step := range steps {
		update(ctx, db, fmt.Sprintf("step %d", step), func(s *engine.Session) {
			if step == 0 {
				must(s.CreateArray(ctx, "t", zarr.Spec{Shape: []int64{steps, refsPerStep * 100}, Chunks: []int64{1, 100}, DataType: "float32"}))
			}
			source := tree.Source{URL: fmt.Sprintf("s3://archive/model/output-%05d.nc", step)}
			offset := uint64(8192)
			for i := range int64(refsPerStep) {
				length := uint64(chunkLength(step*refsPerStep + i))
				check(s.SetVirtual(ctx, fmt.Sprintf("t/c/%d/%d", step, i), source, offset, length))
				offset += length
			}
		})
	}
}
