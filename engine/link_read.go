package engine

import (
	"context"
	"strings"

	"github.com/zarrdb/zarrdb/refs"
	"github.com/zarrdb/zarrdb/txn"
)

// linkReader reads a set and sends it in batches.
type linkReader struct {
	*linker
	pass  func(*linkBatch) (*linkBatch, error) // of relay
	batch *linkBatch                           // that is being filled
}

// read sends the whole set. Chunks of a parquet set go as columns, unless they
// are to have other keys.
func (r *linkReader) read(ctx context.Context) error {
	if r.place == nil {
		set, err := r.set.Parquet(ctx)
		if err != nil {
			return err
		}
		if set != nil {
			return r.parquet(ctx, set)
		}
	}
	for e, err := range r.entries(ctx) {
		if err == nil {
			err = r.entry(e)
		}
		if err != nil {
			return err
		}
	}
	return r.send()
}

// send passes the batch on, if anything is in it, and takes another.
func (r *linkReader) send() (err error) {
	if r.batch.grid != nil || len(r.batch.entries) > 0 {
		r.batch, err = r.pass(r.batch)
	}
	return err
}

// entry adds an entry to the batch, and sends full batches.
func (r *linkReader) entry(e refs.Entry) error {
	if r.batch.entries == nil {
		r.batch.entries = make([]refs.Entry, 0, batchEntries)
	}
	if r.batch.entries = append(r.batch.entries, e); len(r.batch.entries) < batchEntries {
		return nil
	}
	return r.send()
}

// parquet sends a parquet set.
func (r *linkReader) parquet(ctx context.Context, set *refs.ParquetSet) error {
	for e := range set.Documents() {
		if err := r.entry(e); err != nil {
			return err
		}
	}
	for _, a := range set.Arrays() {
		dir, below := strings.CutPrefix(a.Prefix, r.prefix)
		grid := &txn.ChunkGrid{Dir: dir, Counts: a.Grid, Sep: a.Separator}
		for b, err := range set.Batches(ctx, &a) {
			switch {
			case err != nil:
			case below && onlyURLs(b):
				err = r.references(ctx, grid, &a, b)
			default:
				err = r.rows(&a, b)
			}
			if err != nil {
				return err
			}
		}
	}
	return r.send()
}

// onlyURLs reports whether no value stands in the set itself.
func onlyURLs(b *refs.Batch) bool {
	for _, data := range b.Data {
		if data != nil {
			return false
		}
	}
	return true
}

// rows sends references with their keys.
func (r *linkReader) rows(a *refs.ParquetArray, b *refs.Batch) error {
	for e := range a.Entries(b) {
		if err := r.entry(e); err != nil {
			return err
		}
	}
	return nil
}

// references sends a batch as columns, in which URLs are absolute.
func (r *linkReader) references(ctx context.Context, grid *txn.ChunkGrid, a *refs.ParquetArray, b *refs.Batch) error {
	key := func(i int) string { return string(a.AppendKey(nil, b.First+int64(i))) }
	if err := r.columns.ask(ctx, b.Len(), func(i int) string { return b.URL[i] }, key); err != nil {
		return err
	}
	if err := r.send(); err != nil { // entries that come before
		return err
	}
	out := &r.batch.refs
	out.First = b.First
	out.Offset, out.Length = append(out.Offset[:0], b.Offset...), append(out.Length[:0], b.Length...)
	out.URL, out.Validator = append(out.URL[:0], b.URL...), out.Validator[:0]
	for i, url := range b.URL {
		if url == "" {
			continue
		}
		file, err := r.columns.of(url)
		if err == nil {
			err = file.check(b.Offset[i], b.Length[i], "")
		}
		if err != nil {
			return keyFailed(key(i), err)
		}
		out.URL[i] = file.src.URL
		if file.src.Validator != "" {
			if len(out.Validator) == 0 {
				out.Validator = append(out.Validator, make([]string, b.Len())...)
			}
			out.Validator[i] = file.src.Validator
		}
	}
	if len(out.Validator) == 0 {
		out.Validator = nil
	}
	r.batch.grid = grid
	return r.send()
}
