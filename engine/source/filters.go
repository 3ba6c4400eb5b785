package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/zarrdb/zarrdb/engine/zurl"
	"github.com/zarrdb/zarrdb/kv"
)

// Adapters that make a file of a file (ZEP 8, "byte-range", "gzip", "zstd").

// aFile is the place of a value that lies in no store but is made of a file.
func aFile(v kv.Value, from Place) Place {
	const name = "file"
	origin := from.origin
	if origin == nil {
		origin = &from
	}
	return Place{View: oneFile{name, v}, Path: name, Kind: File, origin: origin}
}

// oneFile is a view of a single value.
type oneFile struct {
	name string
	v    kv.Value
}

var _ kv.Locator = oneFile{}

func (f oneFile) Locate(ctx context.Context, key string) (kv.Value, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if key != f.name {
		return nil, kv.ErrNotFound
	}
	return f.v, nil
}

func (f oneFile) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	v, err := f.Locate(ctx, key)
	if err != nil {
		return nil, err
	}
	return kv.ReadValue(ctx, v, rng)
}

// openByteRange opens byte-range:START-END: START is the first byte, END the
// first after the range.
func openByteRange(ctx context.Context, _ *Env, from Place, part zurl.Part) (Place, error) {
	v, err := from.File(ctx)
	if err != nil {
		return from, err
	}
	start, end, ok := part.ByteRange()
	if !ok {
		return from, fmt.Errorf("byte-range:%s: %w: START-END is due", part.Path, zurl.ErrURL)
	}
	if end > v.Size() {
		return from, fmt.Errorf("byte-range:%s: %w of %d bytes", part.Path, kv.ErrRange, v.Size())
	}
	return aFile(section{v, start, end - start}, from), nil
}

// section is a range of a value as a value.
type section struct {
	v      kv.Value
	off, n int64
}

func (s section) Size() int64 { return s.n }

// ID implements [kv.Value]. It is zero: the identity covers the whole value, not a section.
func (s section) ID() kv.ID { return kv.ID{} }

func (s section) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	off, n, err := rng.Resolve(s.n)
	if err != nil {
		return err
	}
	return s.v.View(ctx, kv.Span(s.off+off, n), fn)
}

var _ kv.Spreader = section{}

func (s section) Spread() kv.Spread { return kv.SpreadOf(s.v) }

func isGzip(e Evidence) bool { return bytes.HasPrefix(e.Head, []byte{0x1f, 0x8b, 8}) }
func isZstd(e Evidence) bool { return bytes.HasPrefix(e.Head, []byte{0x28, 0xb5, 0x2f, 0xfd}) }

func openGzip(ctx context.Context, e *Env, from Place, part zurl.Part) (Place, error) {
	return e.decompress(ctx, from, part, func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) })
}

// maxZstdWindow bounds the window of a zstd frame, which is held in memory. The
// format recommends it for every decoder, and the default of zstd's command line
// is smaller.
const maxZstdWindow = 128 << 20

func openZstd(ctx context.Context, e *Env, from Place, part zurl.Part) (Place, error) {
	var d *zstd.Decoder
	at, err := e.decompress(ctx, from, part, func(r io.Reader) (_ io.Reader, err error) {
		d, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
		return d, err
	})
	if d != nil {
		d.Close()
	}
	return at, err
}

// decompress opens the contents of a compressed file.
func (e *Env) decompress(ctx context.Context, from Place, part zurl.Part, open func(io.Reader) (io.Reader, error)) (Place, error) {
	v, err := from.File(ctx)
	if err != nil {
		return from, err
	}
	if v.Size() == 0 {
		return from, fmt.Errorf("%w: %s: the file is empty", kv.ErrCorrupt, part.Scheme)
	}
	in := &noted{r: io.NewSectionReader(kv.ReaderAt(ctx, v), 0, v.Size())}
	out, err := open(bufio.NewReaderSize(in, 1<<20))
	if err == nil {
		v, err = e.spool(ctx, out, min(v.Size(), maxSpool))
	}
	switch {
	case err == nil:
		return aFile(v, from), nil
	case in.err != nil:
		return from, fmt.Errorf("%s: %w", part.Scheme, in.err)
	case errors.Is(err, errSpool) || ctx.Err() != nil:
		return from, fmt.Errorf("%s: %w", part.Scheme, err)
	}
	return from, fmt.Errorf("%w: %s: %w", kv.ErrCorrupt, part.Scheme, err)
}

// noted keeps the error of a reader, to distinguish an unreadable file from one
// that cannot be decompressed.
type noted struct {
	r   io.Reader
	err error
}

func (n *noted) Read(p []byte) (int, error) {
	k, err := n.r.Read(p)
	if err != nil && err != io.EOF {
		n.err = err
	}
	return k, err
}
