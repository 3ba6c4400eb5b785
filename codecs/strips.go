package codecs

import (
	"context"
	"io"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
)

// streamStage is an optional interface of a bytes-to-bytes stage that can decode from the beginning on,
// in memory that does not grow with its input.
type streamStage interface {
	Stage
	OpenStream(src io.Reader) (io.ReadCloser, error)
}

// InStrips reports whether [Bound.DecodeStrips] takes less memory than a chunk.
func (b *Bound) InStrips() bool {
	_, raw := b.partial.(*bytesStage)
	return raw && len(b.in.Shape) > 0 && (b.Partial() || b.stream() != nil)
}

// stream is the only stage behind the array-to-bytes codec, if it can stream.
func (b *Bound) stream() streamStage {
	if len(b.tail) != 1 {
		return nil
	}
	s, _ := b.tail[0].Stage.(streamStage)
	return s
}

// DecodeStrips decodes a box of an encoded chunk in parts of at most so many bytes, if a row is not
// larger, and calls fn with each in turn: where it lies in the chunk, and its elements. Both are
// invalid when fn returns, and the error of fn is returned as it is. Only for chains of [Bound.InStrips].
func (b *Bound) DecodeStrips(ctx context.Context, src Source, box Box, bytes int, fn func(part Box, data Src) error) error {
	shape, steps := b.storedBox.shape, b.storedBox.strides
	rank := len(shape)
	c := getCall()
	defer c.put()
	part := c.storedBox(b.perm, box) // cut along axis, one index of the axes before it at a time
	start, count := append([]int{}, part.Start...), append([]int{}, part.Count...)
	axis := 0
	for axis < rank-1 && steps[axis] > bytes {
		axis++
	}
	rows := max(bytes/steps[axis], 1)
	buf := scratch.Get(int64(rows * steps[axis]))
	defer buf.Put()
	read, end, err := b.stripReader(ctx, src)
	if err != nil {
		return err
	}
	defer end()
	caller := func(stored []int) []int {
		out := append([]int{}, stored...)
		for i, d := range b.perm {
			out[d] = stored[i]
		}
		return out
	}
	for d := range axis {
		part.Count[d] = 1
	}
	for {
		for at := 0; at < count[axis]; at += rows {
			if err := ctx.Err(); err != nil {
				return err
			}
			part.Start[axis], part.Count[axis] = start[axis]+at, min(rows, count[axis]-at)
			data, err := read(part, axis, buf)
			if err == nil {
				err = fn(Box{Start: caller(part.Start), Count: caller(part.Count)}, Src{Data: data.Data, Offset: data.Offset, Strides: caller(data.Strides)})
			}
			if err != nil {
				return err
			}
		}
		d := axis - 1
		for ; d >= 0 && part.Start[d] == start[d]+count[d]-1; d-- {
			part.Start[d] = start[d]
		}
		if d < 0 {
			return nil
		}
		part.Start[d]++
	}
}

// stripReader returns a function that reads a part in stored order, which is cut along axis.
func (b *Bound) stripReader(ctx context.Context, src Source) (read func(part Box, axis int, buf *scratch.Buffer) (Src, error), end func(), err error) {
	if b.Partial() {
		return func(part Box, _ int, buf *scratch.Buffer) (Src, error) {
			strides := make([]int, len(part.Count))
			packedStrides(strides, part.Count, b.storedBox.size)
			n := elements(part.Count) * b.storedBox.size
			buf.B = scratch.Grow(buf.B[:0], int64(n))[:n]
			return Src{Data: buf.B, Strides: strides}, b.decodeBox(ctx, src, part, Dst{Data: buf.B, Strides: strides})
		}, func() {}, nil
	}
	name, raw, steps := b.tail[0].name, b.partial.(*bytesStage), b.storedBox.strides
	in, err := b.stream().OpenStream(&sourceReader{ctx: ctx, src: src})
	if err != nil {
		return nil, nil, Corruptf(name, "%w", err)
	}
	done := 0 // bytes that were read
	return func(part Box, axis int, buf *scratch.Buffer) (Src, error) {
		from, inside, n := 0, 0, part.Count[axis]*steps[axis]
		for d, at := range part.Start {
			if d > axis {
				inside += at * steps[d]
			} else {
				from += at * steps[d]
			}
		}
		if _, err := io.CopyN(io.Discard, in, int64(from-done)); err != nil {
			return Src{}, Corruptf(name, "%w", err)
		}
		buf.B = scratch.Grow(buf.B[:0], int64(n))[:n]
		if _, err := io.ReadFull(in, buf.B); err != nil {
			return Src{}, Corruptf(name, "%w", err)
		}
		if done = from + n; int64(done) == b.stored.Size { // the checksum comes behind
			if k, err := in.Read(make([]byte, 1)); k != 0 || err != io.EOF {
				return Src{}, Corruptf(name, "it goes on behind %d bytes: %v", done, err)
			}
		}
		if !b.identity {
			if err := raw.DecodeInPlace(buf.B); err != nil {
				return Src{}, err
			}
		}
		return Src{Data: buf.B, Offset: inside, Strides: steps}, nil
	}, func() { in.Close() }, nil
}

// sourceReader reads a source from the beginning on.
type sourceReader struct {
	ctx  context.Context
	src  Source
	off  int64
	buf  []byte
	rest []byte // of buf
}

func (r *sourceReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		n := min(max(1<<20, 2*gapOf(r.src)), r.src.Size()-r.off)
		if n == 0 {
			return 0, io.EOF
		}
		if err := r.src.ReadRange(r.ctx, r.off, n, func(b []byte) error {
			r.buf = append(r.buf[:0], b...)
			return nil
		}); err != nil {
			return 0, err
		}
		r.off, r.rest = r.off+n, r.buf
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
