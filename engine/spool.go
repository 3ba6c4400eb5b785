package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/zarrdb/zarrdb/kv"
)

// Bounds of what is put aside; tests make them small.
var (
	// spoolMemory is how much of a stream is kept in memory.
	spoolMemory int64 = 8 << 20
	// maxSpool is how long a stream may be. A few MiB can decompress to that
	// many zeros, so there must be an end.
	maxSpool int64 = 16 << 30
	// freeSpool is how long any stream may be, and maxRatio how many times its
	// compressed bytes a longer one may have: zeros have 1,000 times and more.
	freeSpool int64 = 1 << 30
)

const maxRatio = 200

// errSpool marks errors of putting a stream aside, rather than of the stream.
var errSpool = errors.New("engine: temporary file")

// spool puts a stream where any part of it can be read: in memory or, beyond a
// bound, in a temporary file that lives until the source is closed. compressed is
// how many bytes the stream is made of.
func (e *Env) spool(ctx context.Context, r io.Reader, compressed int64) (kv.Value, error) {
	var head bytes.Buffer
	n, err := io.Copy(&head, io.LimitReader(r, spoolMemory+1))
	if err != nil {
		return nil, err
	}
	if n <= spoolMemory {
		return kv.Bytes(head.Bytes()), nil
	}
	f, err := e.tempFile()
	if err != nil {
		return nil, err
	}
	size, err := fill(ctx, f, io.MultiReader(&head, r), min(maxSpool, max(freeSpool, compressed*maxRatio)))
	if err != nil {
		return nil, err
	}
	return kv.FromReaderAt(f, size, kv.ID{}), nil
}

// tempFile makes a file that is gone when the source is closed.
func (e *Env) tempFile() (*os.File, error) {
	f, err := os.CreateTemp("", "zarrdb-*.tmp")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSpool, err)
	}
	// Where an open file can be removed, a crash leaves nothing behind.
	removed := os.Remove(f.Name()) == nil
	e.onClose(func() error {
		err := f.Close()
		if !removed {
			err = errors.Join(err, os.Remove(f.Name()))
		}
		return err
	})
	return f, nil
}

// fill copies a stream of at most that many bytes to a file and returns its length.
func fill(ctx context.Context, f *os.File, r io.Reader, most int64) (size int64, err error) {
	buf := make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return size, err
		}
		n, err := r.Read(buf)
		if size += int64(n); size > most {
			return size, fmt.Errorf("%w: the stream has more than %d bytes", errSpool, most)
		}
		if _, werr := f.Write(buf[:n]); werr != nil {
			return size, fmt.Errorf("%w: %w", errSpool, werr)
		}
		if err == io.EOF {
			return size, nil
		}
		if err != nil {
			return size, err
		}
	}
}
