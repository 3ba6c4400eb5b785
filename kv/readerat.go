package kv

import (
	"context"
	"fmt"
	"io"
)

// ReaderAt presents v as an [io.ReaderAt] whose reads all run under ctx. It is
// safe for concurrent use and valid as long as v is.
func ReaderAt(ctx context.Context, v Value) io.ReaderAt { return valueReader{ctx, v} }

type valueReader struct {
	ctx context.Context
	v   Value
}

func (r valueReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("%w: offset %d", ErrRange, off)
	}
	size := r.v.Size()
	if off >= size {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	want := min(int64(len(p)), size-off)
	n := 0
	err := r.v.View(r.ctx, Span(off, want), func(b []byte) error {
		n = copy(p, b)
		return nil
	})
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// FromReaderAt presents size bytes of r as a [Value] with identity id, which
// is zero unless the bytes behind r never change. View reads into a pooled
// buffer. r must be safe for concurrent use.
func FromReaderAt(r io.ReaderAt, size int64, id ID) Value { return readerValue{r, size, id} }

type readerValue struct {
	r    io.ReaderAt
	size int64
	id   ID
}

func (v readerValue) Size() int64 { return v.size }
func (v readerValue) ID() ID      { return v.id }

func (v readerValue) View(ctx context.Context, rng Range, fn func([]byte) error) error {
	off, n, err := rng.Resolve(v.size)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	buf, err := borrow(n)
	if err != nil {
		return err
	}
	defer giveBack(buf)
	if err := readFullAt(v.r, *buf, off); err != nil {
		return err
	}
	return fn(*buf)
}

// Stream implements [Streamer].
func (v readerValue) Stream(ctx context.Context, fn func([]byte) error) error {
	return Pieces(ctx, v, 0, v.size, fn)
}

// readFullAt fills p from off on; an early end is [io.ErrUnexpectedEOF].
func readFullAt(r io.ReaderAt, p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	n, err := r.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case err == nil || err == io.EOF:
		return fmt.Errorf("%d of %d bytes at %d: %w", n, len(p), off, io.ErrUnexpectedEOF)
	}
	return err
}
