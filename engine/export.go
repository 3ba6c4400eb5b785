package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/dirkv"
	"github.com/zarrdb/zarrdb/kv/zipkv"
	"github.com/zarrdb/zarrdb/zarr"
)

// ExportOptions say how an export is written. The zero value works.
type ExportOptions struct {
	// Overwrite removes what is at the destination first.
	Overwrite bool
	// Resume keeps what an earlier export to the same directory wrote.
	Resume bool
	// Workers is how many keys are copied at a time; default as the source.
	Workers int
	// Progress, if set, is told from time to time how far the export is. Calls
	// do not overlap.
	Progress func(Progress)
}

// ExportResult is what an export wrote.
type ExportResult struct {
	Keys, Bytes int64
}

// Export copies the hierarchy that src names to a directory, or to a zip archive
// if dest ends in ".zip": keys and bytes as they are stored. In a directory,
// metadata is written last, so that an export that was stopped does not pass
// for a complete array; a zip archive appears when it is complete.
func Export(ctx context.Context, src *Source, dest string, o ExportOptions) (*ExportResult, error) {
	view, from, err := src.hierarchy(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := zarr.Open(ctx, view, from, src.open); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	ex := &exporter{view: view, from: dir(from), o: o, pool: src.pool}
	if o.Workers > 0 {
		ex.pool = newPool(o.Workers)
	}
	if err := prepareDest(dest, o); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	if o.Progress != nil {
		if err := ex.count(ctx); err != nil {
			return nil, err
		}
	}
	if strings.HasSuffix(dest, ".zip") {
		err = ex.toZip(ctx, dest)
	} else {
		err = ex.toDir(ctx, dest)
	}
	if err != nil {
		return nil, fmt.Errorf("export to %s: %w", dest, err)
	}
	return &ExportResult{Keys: ex.meter.keys.Load(), Bytes: ex.meter.bytes.Load()}, nil
}

// prepareDest makes sure that nothing is overwritten by accident.
func prepareDest(dest string, o ExportOptions) error {
	entries, err := os.ReadDir(dest)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return nil
	case o.Overwrite:
		return os.RemoveAll(dest)
	case err == nil && o.Resume:
		return nil
	}
	return fmt.Errorf("%s: %w", dest, fs.ErrExist)
}

// exporter is one export under way.
type exporter struct {
	view  kv.ReadLister
	from  string
	o     ExportOptions
	pool  *pool
	meter meter
}

func (ex *exporter) list(ctx context.Context) iter.Seq2[string, error] {
	return ex.view.List(ctx, kv.ListOptions{Prefix: ex.from})
}

func (ex *exporter) count(ctx context.Context) error {
	for _, err := range ex.list(ctx) {
		if err != nil {
			return err
		}
		ex.meter.total++
	}
	return nil
}

// isDocument reports whether a key is the metadata of a node in any version.
func isDocument(key string) bool {
	switch path.Base(key) {
	case docV3, docV2Array, docV2Group, docV2Attrs, docV2Metadata, docV1Array, docV1Attrs, "group.json", "array.json":
		return true
	}
	return false
}

func (ex *exporter) toDir(ctx context.Context, dest string) error {
	store, err := dirkv.Create(dest, &dirkv.Options{NoSync: true})
	if err != nil {
		return err
	}
	defer store.Close()
	var documents []string
	err = batches(ex.list(ctx), func(keys []string) error {
		chunks := keys[:0:0]
		for _, k := range keys {
			if isDocument(k) {
				documents = append(documents, k)
			} else {
				chunks = append(chunks, k)
			}
		}
		return ex.copyAll(ctx, store, chunks)
	})
	if err != nil {
		return err
	}
	if err := store.Sync(ctx); err != nil {
		return err
	}
	if err := ex.copyAll(ctx, store, documents); err != nil {
		return err
	}
	return store.Sync(ctx)
}

func (ex *exporter) copyAll(ctx context.Context, to kv.Store, keys []string) error {
	return ex.pool.Run(ctx, len(keys), func(ctx context.Context, i int) error {
		v, err := kv.Locate(ctx, ex.view, keys[i])
		if err != nil {
			return fmt.Errorf("%s: %w", keys[i], err)
		}
		key := strings.TrimPrefix(keys[i], ex.from)
		err = v.View(ctx, kv.All(), func(b []byte) error {
			if ex.o.Resume {
				if have, err := kv.Get(ctx, to, key); err == nil && bytes.Equal(have, b) {
					return nil
				}
			}
			return to.Set(ctx, key, b)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", keys[i], err)
		}
		ex.meter.add(v.Size(), ex.o.Progress)
		return nil
	})
}

func (ex *exporter) toZip(ctx context.Context, dest string) (err error) {
	z, err := zipkv.Create(dest, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, z.Abort())
		}
	}()
	for key, err := range ex.list(ctx) {
		if err != nil {
			return err
		}
		v, err := kv.Locate(ctx, ex.view, key)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		name := strings.TrimPrefix(key, ex.from)
		if err := v.View(ctx, kv.All(), func(b []byte) error { return z.Set(ctx, name, b) }); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		ex.meter.add(v.Size(), ex.o.Progress)
	}
	return z.Close()
}

// batchKeys is how many keys are handed out to workers at a time: enough to
// keep them busy, few enough to hold in memory.
const batchKeys = 4096

// batches cuts a listing into slices, which are reused.
func batches(keys iter.Seq2[string, error], fn func([]string) error) error {
	batch := make([]string, 0, batchKeys)
	for k, err := range keys {
		if err != nil {
			return err
		}
		if batch = append(batch, k); len(batch) < batchKeys {
			continue
		}
		if err := fn(batch); err != nil {
			return err
		}
		batch = batch[:0]
	}
	return fn(batch)
}
