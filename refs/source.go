package refs

import (
	"bytes"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
)

// windowSize is the number of bytes read at a time. Each is a request of a
// remote file, so it is large.
const windowSize = 4 << 20

// maxZstdWindow bounds the memory of a zstd stream: the default of "zstd
// --long".
const maxZstdWindow = 128 << 20

// decompressed undoes gzip and zstd, which it knows by their first bytes. done
// releases the decoder.
func decompressed(r io.Reader) (out io.Reader, done func(), err error) {
	head := make([]byte, 4)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, nil, err
	}
	head = head[:n]
	in := &counted{r: io.MultiReader(bytes.NewReader(head), r)}
	r = in
	switch {
	case isGzip(head):
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, nil, &streamError{"gzip", err}
		}
		return &streamReader{name: "gzip", r: z, in: in}, func() {}, nil
	case isZstd(head):
		// Decoding goes on in the background while the text is read.
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxWindow(maxZstdWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, nil, &streamError{"zstd", err}
		}
		return &streamReader{name: "zstd", r: z, in: in}, z.Close, nil
	}
	return r, func() {}, nil
}

func isGzip(head []byte) bool { return bytes.HasPrefix(head, []byte{0x1f, 0x8b}) }

// isZstd recognises frames and skippable frames.
func isZstd(head []byte) bool {
	return bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) ||
		len(head) == 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:], []byte{0x2a, 0x4d, 0x18})
}

// Bounds of the text of a compressed set: freeText bytes, or maxRatio times its
// compressed bytes if that is more. Compressed zeros have a ratio of 1,000 and
// more.
var freeText int64 = 1 << 30

const maxRatio = 200

// counted counts the bytes that are read.
type counted struct {
	r io.Reader
	n atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// streamReader marks errors of compressed bytes as invalid, and fails if they
// exceed maxRatio.
type streamReader struct {
	name string
	r    io.Reader
	in   *counted
	out  int64
}

func (r *streamReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && err != io.EOF {
		err = &streamError{r.name, err}
	}
	if r.out += int64(n); r.out > freeText && r.out/maxRatio > r.in.n.Load() {
		return 0, limit("more than %d times its %d bytes of %s", maxRatio, r.in.n.Load(), r.name)
	}
	return n, err
}

type streamError struct {
	name string
	err  error
}

func (e *streamError) Error() string { return fmt.Sprintf("refs: %s: %v", e.name, e.err) }
func (e *streamError) Unwrap() error { return e.err }
func (e *streamError) Is(target error) bool {
	return target == ErrInvalid || fault.Matches(kv.ErrCorrupt, target)
}
