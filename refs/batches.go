package refs

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs/parquet"
)

// ParquetSet is a parquet set whose index was read. It yields whole columns of
// references in C order, without a key for each. Safe for concurrent use, so
// that arrays can be read in parallel.
type ParquetSet struct {
	index  *partitioned
	arrays []ParquetArray
	dir    kv.Reader
	o      ReadOptions
}

// ParquetArray is an array of a [ParquetSet]. It must not be changed.
type ParquetArray struct {
	// Prefix is the prefix of its chunks' keys: its path and a slash, or empty
	// for an array at the root.
	Prefix string
	// Grid is the number of chunks along each dimension. An array of rank 0 has
	// one of 1: the key of its chunk ends in "0".
	Grid []int64
	// Separator stands between coordinates in keys: '.' or '/'.
	Separator byte

	a *array
}

// AppendKey appends the key of the chunk with a number in C order, which is
// below the product of the grid.
func (a *ParquetArray) AppendKey(dst []byte, number int64) []byte {
	return append(dst, newOdometer(a.a, number).key...)
}

// Entries yields the references of a batch of the array, which must be one of a,
// with their keys, in C order. Chunks that are missing are left out.
//
// The sequence reads the columns, so it is valid as long as the batch, and may
// run again until then. The caller owns the entries: keys and Data are copies,
// URLs are the strings of the batch.
func (a *ParquetArray) Entries(b *Batch) iter.Seq[Entry] { return b.entries(a.a, new(parquet.Arena)) }

// Batch is references to chunks of one array, as columns of equal length: row i
// is the chunk with number First + i in C order. The columns belong to the
// reader and are valid until the next batch is read. Strings stay valid; equal
// URLs that follow each other mostly share their bytes.
type Batch struct {
	// First is the number of the first row.
	First int64
	// URL is empty where Data is the value, and where the row has no reference.
	URL []string
	// Offset and Length are as in [Reference] in rows with a URL, else
	// undefined.
	Offset, Length []int64
	// Data is the value itself, or nil. A chunk with neither URL nor Data is
	// missing.
	Data [][]byte
}

// Len is the number of rows.
func (b *Batch) Len() int { return len(b.URL) }

// OpenParquetSet reads the index of the parquet set in dir. Errors are as for
// [ReadParquet].
func OpenParquetSet(ctx context.Context, dir kv.Reader, o *ReadOptions) (*ParquetSet, error) {
	opts := o.withDefaults()
	p, err := readZmetadata(ctx, dir, opts)
	if err != nil {
		return nil, err
	}
	return newParquetSet(p, dir, opts), nil
}

func newParquetSet(p *partitioned, dir kv.Reader, o ReadOptions) *ParquetSet {
	s := &ParquetSet{index: p, dir: dir, o: o}
	for i := range p.arrays {
		a := &p.arrays[i]
		s.arrays = append(s.arrays, ParquetArray{a.prefix, a.counts, a.sep, a})
	}
	return s
}

// Documents yields the metadata documents, which are all keys except chunks, in
// the order of keys.
func (s *ParquetSet) Documents() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, d := range s.index.docs {
			if !yield(Entry{d.key, Reference{Data: bytes.Clone(d.data), Form: FormText}}) {
				return
			}
		}
	}
}

// Arrays returns the arrays, by prefix. Their chunks are all other keys.
func (s *ParquetSet) Arrays() []ParquetArray { return slices.Clone(s.arrays) }

// Batches yields the references to the chunks of an array of the set, in C
// order. Partitions that do not exist are left out. The sequence ends after the
// first error.
func (s *ParquetSet) Batches(ctx context.Context, a *ParquetArray) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		r := batchReader{ctx: ctx, dir: s.dir, o: s.o}
		err := r.array(a.a, func(b *Batch) error {
			if !yield(b, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && err != errStopped {
			yield(nil, err)
		}
	}
}

// batchReader reads the chunks of arrays.
type batchReader struct {
	ctx  context.Context
	dir  kv.Reader
	o    ReadOptions
	file partitionReader
	out  Batch
}

// array calls fn with all chunks of an array.
func (r *batchReader) array(a *array, fn func(*Batch) error) error {
	numbers, all, err := existing(r.ctx, r.dir, a)
	if err != nil {
		return err
	}
	if !all {
		for _, n := range numbers {
			if err := r.partition(a, n, fn); err != nil {
				return err
			}
		}
		return nil
	}
	for n := range a.partitions() {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if err := r.partition(a, n, fn); err != nil {
			return err
		}
	}
	return nil
}

// partition calls fn with the references of a partition, if it exists.
func (r *batchReader) partition(a *array, number int64, fn func(*Batch) error) error {
	next := number * a.record
	rows := int64(0)
	err := r.file.each(r.ctx, r.dir, a, number, r.o, func(b *parquet.Batch) error {
		r.out = Batch{next, b.Path, b.Offset, b.Size, b.Raw}
		if i, err := r.out.check(); err != nil {
			return keyError(string(newOdometer(a, next+int64(i)).key), err)
		}
		rows += int64(b.Len())
		next += int64(b.Len())
		return fn(&r.out)
	})
	switch {
	case err == kv.ErrNotFound:
		return nil
	case err == nil && rows < a.rows(number):
		return tooFewRows(a, number, rows)
	}
	return err
}

// check turns the rows of a file into references. An error is about row i.
func (b *Batch) check() (i int, err error) {
	urls, offsets, lengths, data := b.URL, b.Offset[:len(b.URL)], b.Length[:len(b.URL)], b.Data[:len(b.URL)]
	for i := range urls {
		switch {
		case data[i] == nil && (offsets[i]|lengths[i] > 0 || urls[i] == ""):
			// A missing chunk, or a valid range.
		case data[i] == nil:
			ref, err := rowReference(urls[i], offsets[i], lengths[i], nil)
			if err != nil {
				return i, err
			}
			lengths[i] = ref.Length
		default:
			ref, err := rowReference("", 0, 0, data[i])
			if err != nil {
				return i, err
			}
			urls[i], data[i] = "", ref.Data
		}
	}
	return 0, nil
}
