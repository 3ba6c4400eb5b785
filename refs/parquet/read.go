package parquet

import (
	"context"
	"io"

	"github.com/zarrdb/zarrdb/kv"
)

// Options bound the memory of reading a file. nil and the zero value work.
type Options struct {
	// MaxBytes bounds the memory of pages. Default 256 MiB.
	MaxBytes int64
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.MaxBytes <= 0 {
		out.MaxBytes = 256 << 20
	}
	return out
}

// batchRows is the largest number of rows of a batch.
const batchRows = 4096

// wholeFile is the size up to which a file is read at once.
const wholeFile = 8 << 20

// Batch is some rows of a file, as columns of equal length.
type Batch struct {
	// Path is a URL, or empty where it is null or empty.
	Path []string
	// Offset and Size are in bytes, unchecked: they may be negative. A null is
	// 0.
	Offset, Size []int64
	// Raw is nil where it is null. The slices belong to the reader and are
	// valid until the next batch is read.
	Raw [][]byte
}

// Len is the number of rows.
func (b *Batch) Len() int { return len(b.Path) }

func (b *Batch) resize(n int) {
	if cap(b.Path) < n {
		*b = Batch{make([]string, batchRows), make([]int64, batchRows), make([]int64, batchRows), make([][]byte, batchRows)}
	}
	b.Path, b.Offset, b.Size, b.Raw = b.Path[:n], b.Offset[:n], b.Size[:n], b.Raw[:n]
}

// Reader reads a file from its first row to its last. The zero Reader is ready
// for Open. It is not safe for concurrent use. It holds one page of each column.
type Reader struct {
	meta  *meta
	cols  [numCols]column
	whole []byte
	spare int64 // budget

	group int   // the current one
	left  int64 // rows of it
}

// Open begins to read a file and forgets the one before, whose buffers are used
// again. v must be readable until the last row was read. Errors: kv.ErrCorrupt
// if it is no parquet file of references, errors.ErrUnsupported for unsupported
// features.
func (r *Reader) Open(ctx context.Context, v kv.Value, o *Options) error {
	opts := o.withDefaults()
	held := int64(0)
	for i := range r.cols {
		held += r.cols[i].held()
	}
	if held > opts.MaxBytes/4 {
		r.cols = [numCols]column{} // the next file may use other columns
	}
	size := v.Size()
	var whole []byte
	if size <= wholeFile {
		err := v.View(ctx, kv.All(), func(b []byte) error {
			r.whole = append(r.whole[:0], b...)
			return nil
		})
		if err != nil {
			return err
		}
		whole = r.whole
	}
	m, err := readMeta(ctx, v, whole)
	if err != nil {
		return err
	}
	r.meta, r.group, r.left = m, -1, 0
	r.spare = opts.MaxBytes
	for i := range r.cols {
		c := &r.cols[i]
		c.name, c.budget = colNames[i], &r.spare
		c.file(v, whole, m.end)
		c.src.ctx = ctx
		r.spare -= c.held()
	}
	return nil
}

// Rows is the number of rows of the file.
func (r *Reader) Rows() int64 { return r.meta.rows }

// Next reads some rows, at least one. At the end it is io.EOF.
func (r *Reader) Next(b *Batch) error {
	b.resize(0)
	for r.left == 0 {
		if r.group++; r.group >= len(r.meta.groups) {
			return io.EOF
		}
		g := &r.meta.groups[r.group]
		r.left = g.rows
		for i := range r.cols {
			r.cols[i].reset(r.meta.fields[i], g.cols[i])
		}
	}
	// A batch lies in one page of each column.
	n := int(min(r.left, batchRows))
	for i := range r.cols {
		if c := &r.cols[i]; c.present {
			if err := c.load(); err != nil {
				return err
			}
			n = min(n, c.left)
		}
	}
	b.resize(n)
	clear(b.Path)
	clear(b.Offset)
	clear(b.Size)
	clear(b.Raw)
	for i := range r.cols {
		c := &r.cols[i]
		if !c.present {
			continue
		}
		var err error
		switch i {
		case colPath:
			err = c.strings(b.Path)
		case colOffset:
			err = c.ints(b.Offset)
		case colSize:
			err = c.ints(b.Size)
		case colRaw:
			err = c.bytes(b.Raw)
		}
		if err != nil {
			b.resize(0)
			return err
		}
	}
	r.left -= int64(n)
	return nil
}
