package codecs

import (
	"context"
	"sync"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// shardCall is the memory of one partial read of a shard. Pooled.
type shardCall struct {
	index Index
	parts parts
	list  []wanted
	mem   Bytes
}

var shardCalls = sync.Pool{New: func() any { return new(shardCall) }}

func (c *shardCall) put() {
	const large = 1 << 20
	if cap(c.index.entries) > large {
		c.index.entries = nil
	}
	if cap(c.list) > large/24 {
		c.list = nil
	}
	c.parts.s, c.parts.box, c.mem = nil, Box{}, nil
	shardCalls.Put(c)
}

// Decode appends the elements of a whole shard.
func (s *shardStage) Decode(dst, src []byte) ([]byte, error) {
	ctx := context.Background()
	box := wholeBox(s.whole.shape)
	if s.variable() {
		return s.appendVariable(ctx, dst, Bytes(src), box)
	}
	n := len(dst)
	size := s.whole.bytes()
	// A shard that has no room for its index fails before anything is allocated.
	if _, err := s.indexRange(int64(len(src))); err != nil {
		return dst, err
	}
	dst = scratch.Grow(dst, int64(size))[:n+size]
	c := shardCalls.Get().(*shardCall)
	defer c.put()
	c.mem = src
	if err := s.readIndex(ctx, &c.mem, &c.index); err != nil {
		return dst[:n], err
	}
	if err := s.decode(ctx, c, &c.mem, &c.index, box, Dst{Data: dst, Offset: n, Strides: s.whole.strides}); err != nil {
		return dst[:n], err
	}
	return dst, nil
}

// DecodeBox reads the index and the inner chunks that the box touches.
func (s *shardStage) DecodeBox(ctx context.Context, src Source, box Box, dst Dst) error {
	c := shardCalls.Get().(*shardCall)
	defer c.put()
	if err := s.readIndex(ctx, src, &c.index); err != nil {
		return err
	}
	return s.decode(ctx, c, src, &c.index, box, dst)
}

// decodeParts is DecodeBox with an index.
func (s *shardStage) decodeParts(ctx context.Context, src Source, x *Index, box Box, dst Dst) error {
	c := shardCalls.Get().(*shardCall)
	defer c.put()
	return s.decode(ctx, c, src, x, box, dst)
}

func (s *shardStage) decode(ctx context.Context, c *shardCall, src Source, x *Index, box Box, dst Dst) error {
	memory, inMemory := inMemory(src)
	c.list = c.list[:0]
	p := &c.parts
	for p.reset(s, box); p.next(); {
		off, n, ok, err := s.chunk(x, p.part.chunk)
		if err != nil {
			return err
		}
		switch {
		case !ok:
			FillStrided(p.part.in(dst), p.part.count, s.fill, s.whole.size)
		case inMemory:
			err := s.inner.DecodeInto(memory[off:off+n:off+n], p.part.box(), p.part.in(dst))
			if err != nil {
				return errShardPart(p.part.chunk, err)
			}
		default:
			c.list = append(c.list, wanted{off, n, p.part.chunk})
		}
	}
	if len(c.list) == 0 {
		return nil
	}
	inside := func(w wanted) (done bool, err error) { return s.decodeInside(ctx, p, src, w, dst) }
	return readRuns(ctx, src, c.list, inside, func(off int64, run []wanted, b []byte) error {
		own := shardCalls.Get().(*shardCall)
		defer own.put()
		own.parts.reset(s, box)
		return s.decodeRun(&own.parts, off, run, b, dst)
	})
}

// decodeInside reads only a part of a large inner chunk if little of it is
// wanted, as in nested shards; done is false if it must be read whole.
func (s *shardStage) decodeInside(ctx context.Context, p *parts, src Source, w wanted, dst Dst) (done bool, err error) {
	if p.seek(w.chunk); p.part.all || !s.inner.Partial() {
		return false, nil
	}
	sub := &section{src: src, off: w.off, n: w.n}
	if err := s.inner.DecodeBox(ctx, sub, p.part.box(), p.part.in(dst)); err != nil {
		return true, errShardPart(w.chunk, err)
	}
	return true, nil
}

// decodeRun decodes inner chunks that were read at once; b begins at off.
func (s *shardStage) decodeRun(p *parts, off int64, run []wanted, b []byte, dst Dst) error {
	for _, w := range run {
		p.seek(w.chunk)
		b := b[w.off-off:][:w.n:w.n]
		if err := s.inner.DecodeInto(b, p.part.box(), p.part.in(dst)); err != nil {
			return errShardPart(w.chunk, err)
		}
	}
	return nil
}

func errShardMax(n int64) error {
	return Corruptf("sharding_indexed", "more than the %d bytes that a chunk may have", n)
}

// section is a range of another Source.
type section struct {
	src    Source
	off, n int64
}

func (s *section) Size() int64 { return s.n }
func (s *section) Gap() int64  { return gapOf(s.src) }

func (s *section) ReadRange(ctx context.Context, off, n int64, fn func([]byte) error) error {
	return s.src.ReadRange(ctx, s.off+off, n, fn)
}

var _ RangesSource = (*section)(nil)

func (s *section) ReadsRanges() bool { return rangesSource(s.src) != nil }

func (s *section) ReadRanges(ctx context.Context, ranges []Extent, fn func(i int, b []byte) error) error {
	at := make([]Extent, len(ranges))
	for i, r := range ranges {
		at[i] = Extent{s.off + r.Off, r.N}
	}
	return rangesSource(s.src).ReadRanges(ctx, at, fn)
}

// appendVariable appends the elements of a box whose elements have variable
// length: the inner chunks are decoded first, and their elements then taken
// in the order of the box.
func (s *shardStage) appendVariable(ctx context.Context, dst []byte, src Source, box Box) ([]byte, error) {
	c := shardCalls.Get().(*shardCall)
	defer c.put()
	if err := s.readIndex(ctx, src, &c.index); err != nil {
		return dst, err
	}
	p := &c.parts
	// The elements of the box in each part, in C order, by number of the inner
	// chunk; a missing inner chunk has an empty view.
	views := make(map[int]dtype.Variable)
	c.list = c.list[:0]
	total := int64(0)
	for p.reset(s, box); p.next(); {
		off, n, ok, err := s.chunk(&c.index, p.part.chunk)
		if err != nil {
			return dst, err
		}
		if ok {
			c.list = append(c.list, wanted{off, n, p.part.chunk})
		}
	}
	var mu sync.Mutex
	decode := func(off int64, run []wanted, b []byte) error {
		mu.Lock()
		defer mu.Unlock()
		for _, w := range run {
			block, err := s.inner.Decode(nil, b[w.off-off:][:w.n:w.n])
			if err != nil {
				return errShardPart(w.chunk, err)
			}
			if total += int64(len(block)); total > s.inner.in.Max {
				return errShardMax(s.inner.in.Max)
			}
			if views[w.chunk], err = dtype.OpenVariable(block, s.inner.in.Count()); err != nil {
				return errShardPart(w.chunk, err)
			}
		}
		return nil
	}
	whole := func(wanted) (bool, error) { return false, nil }
	err := readRuns(ctx, src, c.list, whole, decode)
	if err != nil {
		return dst, err
	}
	count := elements(box.Count)
	out, err := dtype.NewBuilder(scratch.Grow(dst, total), count)
	if err != nil {
		return dst, err
	}
	var index [MaxRank]int
	rank := len(box.Count)
	for range count {
		chunk, at := 0, 0
		for d, n := range s.inner.in.Shape {
			pos := box.Start[d] + index[d]
			chunk += pos / n * s.grid.strides[d]
			at = at*n + pos%n
		}
		item := s.fill
		if v, ok := views[chunk]; ok {
			item = v.At(at)
		}
		if err := out.Append(item); err != nil {
			return dst, err
		}
		if int64(out.Size()) > s.inner.in.Max {
			return dst, errShardMax(s.inner.in.Max)
		}
		step(index[:rank], box.Count, zeros[:rank])
	}
	return out.Finish()
}
