package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/zarrdb/zarrdb/engine"
	"github.com/zarrdb/zarrdb/kv/tree"
	"github.com/zarrdb/zarrdb/zarr"
)

// foreignHistory imports a repository of a thousand snapshots, each with another
// thousand virtual chunks, with its history.
func foreignHistory(ctx context.Context, b *bench) error {
	steps := int64(1000)
	if b.quick {
		steps = 20
	}
	from, repo, to := b.path("from.zdb"), b.path("repo"), b.path("to.zdb")
	for _, name := range []string{from, repo, to} {
		defer os.RemoveAll(name)
	}
	if err := writeHistory(ctx, from, steps); err != nil {
		return err
	}
	start := time.Now()
	if err := exportForeign(ctx, from, repo, engine.ForeignOptions{Format: "icechunk", History: true}); err != nil {
		return err
	}
	variant := fmt.Sprintf("icechunk, %d snapshots, %d virtual chunks", steps, steps*refsPerStep)
	b.add("formats", variant, "export", time.Since(start).Seconds(), "s")
	db, err := engine.Create(ctx, to, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	src, err := engine.OpenSource(ctx, "file://"+repo+"/|icechunk:", nil)
	if err != nil {
		return err
	}
	defer src.Close()
	peak := watchMemory()
	start = time.Now()
	res, err := db.ImportHistory(ctx, src, engine.HistoryOptions{Link: true, Validate: engine.ValidateNone})
	took := time.Since(start)
	most := peak()
	if err != nil {
		return err
	}
	if res.Versions < steps {
		return fmt.Errorf("%d versions, not %d", res.Versions, steps)
	}
	b.add("formats", variant, "import with history", took.Seconds(), "s")
	b.add("formats", variant, "import peak memory", float64(most)/(1<<20), "MiB")
	return nil
}

// writeHistory makes a database of that many commits: each appends a thousand virtual
// chunks to an array.
func writeHistory(ctx context.Context, path string, steps int64) error {
	db, err := engine.Create(ctx, path, nil)
	if err != nil {
		return err
	}
	for step := range steps {
		_, err := db.Update(ctx, "main", fmt.Sprintf("step %d", step), func(s *engine.Session) error {
			var err error
			if step == 0 {
				_, err = s.CreateArray(ctx, "t", zarr.Spec{Shape: []int64{steps, refsPerStep * 100}, Chunks: []int64{1, 100}, DataType: "float32"})
			}
			source := tree.Source{URL: fmt.Sprintf("s3://archive/model/output-%05d.nc", step)}
			offset := uint64(8192)
			for i := int64(0); i < refsPerStep && err == nil; i++ {
				length := uint64(chunkLength(step*refsPerStep + i))
				err = s.SetVirtual(ctx, fmt.Sprintf("t/c/%d/%d", step, i), source, offset, length)
				offset += length
			}
			return err
		})
		if err != nil {
			return errors.Join(err, db.Close())
		}
	}
	return db.Close()
}
