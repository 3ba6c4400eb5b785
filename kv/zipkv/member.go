package zipkv

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
)

// data has the common fields of both kinds of members.
type data struct {
	r       *Reader
	m       *member
	archive kv.Value // may hold some bytes in memory
	at      int64    // where the bytes begin
}

// unknown marks an offset that is computed when it is needed.
const unknown = -1

// begin returns where the bytes begin.
func (d *data) begin(ctx context.Context) (int64, error) {
	if d.at != unknown {
		return d.at, ctx.Err()
	}
	return d.r.dataAt(ctx, d.archive, d.m)
}

func (d *data) Size() int64 { return d.m.size }
func (d *data) ID() kv.ID   { return d.r.id(d.m) }

func (d *data) Spacing() (gap, most int64) { return kv.Spacing(d.archive) }

// storedValue is a member without compression: a range of the archive.
type storedValue struct{ data }

func (v *storedValue) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	off, n, err := rng.Resolve(v.m.size)
	if err != nil {
		return err
	}
	at, err := v.begin(ctx)
	if err != nil {
		return err
	}
	return v.archive.View(ctx, kv.Span(at+off, n), func(b []byte) error {
		if n == v.m.size {
			if err := v.r.checkCRC(v.m, crc32.ChecksumIEEE(b)); err != nil {
				return err
			}
		}
		return fn(b)
	})
}

var _ kv.Streamer = (*storedValue)(nil)

func (v *storedValue) Stream(ctx context.Context, fn func([]byte) error) error {
	at, err := v.begin(ctx)
	if err != nil {
		return err
	}
	crc := uint32(0)
	err = kv.Pieces(ctx, v.archive, at, v.m.size, func(b []byte) error {
		crc = crc32.Update(crc, crc32.IEEETable, b)
		return fn(b)
	})
	if err != nil {
		return err
	}
	return v.r.checkCRC(v.m, crc)
}

var _ kv.Spreader = (*storedValue)(nil)

// Spread implements [kv.Spreader]: archives on a server do. It finds the beginning
// of the member first, once for all parts.
func (v *storedValue) Spread() kv.Spread {
	spread := kv.SpreadOf(v.archive)
	if spread == nil {
		return nil
	}
	return func(ctx context.Context, n int, size int64, fn func(ctx context.Context, i int) error) error {
		if _, err := v.begin(ctx); err != nil {
			return err
		}
		return spread(ctx, n, size, fn)
	}
}

func (r *Reader) checkCRC(m *member, got uint32) error {
	if got != m.crc {
		return corrupt("member %q has checksum %08x instead of %08x", r.name(m), got, m.crc)
	}
	return nil
}

// packedValue is a compressed member. The first View decompresses as much as it
// needs; a second one decompresses everything and keeps it with the value, so
// that reading a shard in pieces does not take quadratic time.
type packedValue struct {
	data

	mu     sync.Mutex
	viewed bool
	kept   []byte
}

// keepBytes is the largest member that a value keeps.
const keepBytes = 16 << 20

func (v *packedValue) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	b, err := v.read(ctx, rng)
	if err != nil {
		return err
	}
	return fn(b)
}

// read returns bytes that must not be changed.
func (v *packedValue) read(ctx context.Context, rng kv.Range) ([]byte, error) {
	off, n, err := rng.Resolve(v.m.size)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	kept, again := v.kept, v.viewed && v.m.size <= keepBytes
	v.viewed = true
	v.mu.Unlock()
	if kept == nil && again {
		if kept, err = v.get(ctx, kv.All()); err != nil {
			return nil, err
		}
		v.mu.Lock()
		v.kept = kept
		v.mu.Unlock()
	}
	if kept != nil {
		return kept[off : off+n : off+n], ctx.Err()
	}
	return v.get(ctx, rng)
}

// get decompresses a range into memory of its own.
func (v *packedValue) get(ctx context.Context, rng kv.Range) ([]byte, error) {
	off, n, err := rng.Resolve(v.m.size)
	if err != nil {
		return nil, err
	}
	if n > v.r.maxMember || int64(int(n)) != n {
		return nil, v.r.errTooLarge(v.m, n)
	}
	var out []byte
	err = v.decode(ctx, func(d io.Reader) error {
		out, err = v.unpack(ctx, d, off, n)
		return err
	})
	return out, err
}

// decode calls fn with the decompressed bytes. Errors of fn are reported as corruption, except the
// errors named here and errors of the archive or the context.
func (v *packedValue) decode(ctx context.Context, fn func(io.Reader) error) error {
	at, err := v.begin(ctx)
	if err != nil {
		return err
	}
	return v.withPacked(ctx, at, func(in *source) error {
		d, err := decoders[v.m.method](in, v.m)
		if err == nil {
			err = fn(d)
			d.release()
		}
		switch {
		case in.err != nil:
			return in.err // the archive could not be read
		case err == nil || ctx.Err() != nil || errors.Is(err, kv.ErrCorrupt) || errors.Is(err, errMethod):
			return err
		}
		return corrupt("member %q: %v", v.r.name(v.m), err)
	})
}

var _ kv.Streamer = (*packedValue)(nil)

// Stream implements [kv.Streamer]. It holds 1 MiB, however long the member is.
func (v *packedValue) Stream(ctx context.Context, fn func([]byte) error) error {
	var fromFn error
	err := v.decode(ctx, func(d io.Reader) error {
		buf := make([]byte, min(v.m.size, step))
		sum := crc32.NewIEEE()
		for at := int64(0); at < v.m.size; at += int64(len(buf)) {
			if err := ctx.Err(); err != nil {
				return err
			}
			buf = buf[:min(int64(len(buf)), v.m.size-at)]
			if n, err := io.ReadFull(d, buf); err != nil {
				return fmt.Errorf("%w after %d of %d bytes", noEOF(err), at+int64(n), v.m.size)
			}
			sum.Write(buf)
			if fromFn = fn(buf); fromFn != nil {
				return fromFn
			}
		}
		return v.end(d, sum.Sum32())
	})
	if fromFn != nil {
		return fromFn
	}
	return err
}

// end checks that nothing follows the last byte and that the checksum matches.
func (v *packedValue) end(d io.Reader, sum uint32) error {
	var more [1]byte
	switch n, err := io.ReadFull(d, more[:]); {
	case n > 0:
		return fmt.Errorf("more than the %d declared bytes", v.m.size)
	case err != io.EOF:
		return err
	}
	return v.r.checkCRC(v.m, sum)
}

// source is the compressed bytes. It keeps the first error of the archive, to
// distinguish it from errors of the decoder.
type source struct {
	// r is a *bytes.Reader or a *bufio.Reader: inflate is faster with them.
	r interface {
		io.Reader
		io.ByteReader
	}
	err error
}

// packedAtOnce is the size up to which compressed bytes are viewed in one
// piece.
const packedAtOnce = 4 << 20

// withPacked calls fn with the compressed bytes.
func (v *packedValue) withPacked(ctx context.Context, at int64, fn func(*source) error) error {
	if v.m.packed <= packedAtOnce {
		return v.archive.View(ctx, kv.Span(at, v.m.packed), func(b []byte) error {
			return fn(&source{r: bytes.NewReader(b)})
		})
	}
	s := &source{}
	section := io.NewSectionReader(kv.ReaderAt(ctx, v.archive), at, v.m.packed)
	s.r = bufio.NewReaderSize(errorReader{section, &s.err}, 1<<20)
	return fn(s)
}

type errorReader struct {
	r   io.Reader
	err *error
}

func (e errorReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err != nil && err != io.EOF {
		*e.err = err
	}
	return n, err
}

// unpack reads n bytes from off on. Bytes before off are decompressed and
// dropped. If the range reaches the end, the stream must end there and the
// checksum must match.
func (v *packedValue) unpack(ctx context.Context, d io.Reader, off, n int64) ([]byte, error) {
	sum := crc32.NewIEEE()
	if off > 0 {
		if err := skip(ctx, io.TeeReader(d, sum), off); err != nil {
			return nil, fmt.Errorf("%w after less than %d bytes", noEOF(err), off)
		}
	}
	out, err := readGrowing(ctx, d, n)
	if err != nil {
		return nil, fmt.Errorf("%w after %d of %d bytes", noEOF(err), off+int64(len(out)), v.m.size)
	}
	if off+n < v.m.size {
		return out, nil
	}
	sum.Write(out)
	return out, v.end(d, sum.Sum32())
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// step is the number of bytes decompressed between two checks of the context.
const step = 1 << 20

func skip(ctx context.Context, d io.Reader, n int64) error {
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		k, err := io.CopyN(io.Discard, d, min(n, step))
		if n -= k; err != nil {
			return err
		}
	}
	return nil
}

// readGrowing reads n bytes. It reserves up to 1 MiB for the declared size;
// beyond that memory grows with the bytes read.
func readGrowing(ctx context.Context, d io.Reader, n int64) ([]byte, error) {
	out := make([]byte, 0, min(n, step))
	for int64(len(out)) < n {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if len(out) == cap(out) {
			bigger := make([]byte, len(out), min(n, int64(cap(out))*2))
			copy(bigger, out)
			out = bigger
		}
		k, err := io.ReadFull(d, out[len(out):min(cap(out), len(out)+step)])
		out = out[:len(out)+k]
		if err != nil {
			return out, noEOF(err)
		}
	}
	return out, nil
}
