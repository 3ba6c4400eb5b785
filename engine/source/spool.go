package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/zarrdb/zarrdb/kv"
)

// Bounds of spooled streams; tests make them small.
var (
	// spoolMemory bounds the bytes of a stream in memory.
	spoolMemory int64 = 8 << 20
	// maxSpool bounds the length of a stream, because a few MiB can decompress
	// to as many zeros.
	maxSpool int64 = 16 << 30
	// Every stream may have freeSpool bytes, and a longer one maxRatio times its
	// compressed bytes: zeros have a ratio of 1,000 and more.
	freeSpool int64 = 1 << 30
)

const maxRatio = 200

// errSpool marks errors of putting a stream aside, rather than of the stream.
var errSpool = errors.New("engine: temporary file")

// spool stores a stream for random access: in memory or, beyond a bound, in a
// temporary file that lives until the source is closed. compressed is the
// compressed length of the stream.
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
	e.OnClose(func() error {
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
