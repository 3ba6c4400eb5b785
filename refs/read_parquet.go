package refs

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strconv"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs/parquet"
)

// ReadParquet yields the entries of the parquet set in dir, as fsspec's
// LazyReferenceMapper, kerchunk and VirtualiZarr write it (References
// specification, "Parquet references"): first the metadata documents in the
// order of keys, then for each array its chunks in C order. Each key occurs
// once. The sequence ends after the first error.
//
// Rows with neither URL nor bytes, and partitions that do not exist, are chunks
// without a value and not yielded. The set's own ".zmetadata" is no entry: it is
// the index of the set.
//
// Memory is bounded: one page of each column of one partition
// ([ReadOptions].Partition). If dir is no kv.Lister, partitions are probed one
// by one, and a set that could have more than a million of them is [ErrLimit].
func ReadParquet(ctx context.Context, dir kv.Reader, o *ReadOptions) iter.Seq2[Entry, error] {
	opts := o.withDefaults()
	return func(yield func(Entry, error) bool) {
		p, err := readZmetadata(ctx, dir, opts)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		streamPartitions(ctx, dir, p, opts)(yield)
	}
}

// maxProbed bounds the number of partitions whose files are probed.
const maxProbed = 1 << 20

func streamPartitions(ctx context.Context, dir kv.Reader, p *partitioned, o ReadOptions) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for e := range newParquetSet(p, dir, o).Documents() {
			if !yield(e, nil) {
				return
			}
		}
		s := streamer{r: batchReader{ctx: ctx, dir: dir, o: o}, yield: yield}
		for i := range p.arrays {
			if err := s.array(&p.arrays[i]); err != nil {
				if err != errStopped {
					yield(Entry{}, err)
				}
				return
			}
		}
	}
}

var errStopped = errors.New("refs: the caller stopped")

// streamer yields the chunks of arrays with their keys.
type streamer struct {
	r     batchReader
	yield func(Entry, error) bool
	keys  parquet.Arena
}

func (s *streamer) array(a *array) error {
	return s.r.array(a, func(b *Batch) error {
		for e := range b.entries(a, &s.keys) {
			if !s.yield(e, nil) {
				return errStopped
			}
		}
		return nil
	})
}

// entries yields the existing chunks with their keys.
func (b *Batch) entries(a *array, keys *parquet.Arena) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		at := newOdometer(a, b.First)
		for i, url := range b.URL {
			if data := b.Data[i]; url != "" {
				if !yield(Entry{keys.Text(at.key), Reference{URL: url, Offset: b.Offset[i], Length: b.Length[i]}}) {
					return
				}
			} else if data != nil {
				if !yield(Entry{keys.Text(at.key), Reference{Data: bytes.Clone(data)}}) {
					return
				}
			}
			at.next()
		}
	}
}

// odometer iterates over the chunks of an array in C order.
type odometer struct {
	a      *array
	coords []int64
	key    []byte
	last   int // offset of the last coordinate in key
}

// newOdometer begins at a chunk.
func newOdometer(a *array, number int64) *odometer {
	o := &odometer{a: a, coords: make([]int64, len(a.counts))}
	for d := len(a.counts) - 1; d >= 0; d-- {
		if n := a.counts[d]; n > 0 {
			o.coords[d] = number % n
			number /= n
		}
	}
	o.print()
	return o
}

func (o *odometer) print() {
	o.key = append(o.key[:0], o.a.prefix...)
	for d, c := range o.coords {
		if d > 0 {
			o.key = append(o.key, o.a.sep)
		}
		o.last = len(o.key)
		o.key = strconv.AppendInt(o.key, c, 10)
	}
}

// next moves to the next chunk; after the last one to the first.
func (o *odometer) next() {
	d := len(o.coords) - 1
	if o.coords[d]++; o.coords[d] < o.a.counts[d] {
		o.key = strconv.AppendInt(o.key[:o.last], o.coords[d], 10)
		return
	}
	for ; o.coords[d] == o.a.counts[d]; d-- {
		if o.coords[d] = 0; d == 0 {
			break
		}
		o.coords[d-1]++
	}
	o.print()
}
