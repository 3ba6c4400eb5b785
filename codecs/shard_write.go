package codecs

import (
	"context"
	"math"
	"slices"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
)

// Encode appends a whole shard. Inner chunks are written in C order of the grid,
// so that equal elements give equal bytes; inner chunks with only the fill
// value are left out.
func (s *shardStage) Encode(dst, src []byte) ([]byte, error) {
	return s.encodeFrom(dst, src, Src{Data: src, Strides: s.whole.strides})
}

// encodeFrom is Encode of elements of variable length in block, or of a fixed
// size in src.
func (s *shardStage) encodeFrom(dst, block []byte, src Src) ([]byte, error) {
	w := s.writer(dst)
	defer w.put()
	p := &w.call.parts
	for p.reset(s, wholeBox(s.whole.shape)); p.next(); {
		if err := w.encode(block, src, &p.part); err != nil {
			return dst, errShardPart(p.part.chunk, err)
		}
	}
	return w.finish(true)
}

// shardWriter appends a shard to dst, one inner chunk after another in C
// order.
type shardWriter struct {
	s     *shardStage
	call  *shardCall
	dst   []byte
	start int // of the shard in dst
	next  int // inner chunk to be written
	some  bool
}

func (s *shardStage) writer(dst []byte) *shardWriter {
	w := &shardWriter{s: s, call: shardCalls.Get().(*shardCall), dst: dst, start: len(dst)}
	x := &w.call.index
	x.entries = scratch.Grow(x.entries[:0], 16*int64(s.n))[:16*s.n]
	if s.atStart {
		w.dst = append(w.dst, make([]byte, s.indexSize)...)
	}
	return w
}

func (w *shardWriter) put() { w.call.put() }

// missing writes the entry of an inner chunk that is left out.
func (w *shardWriter) missing() {
	w.call.index.set(w.next, math.MaxUint64, math.MaxUint64)
	w.next++
}

// done writes the entry of the inner chunk whose bytes were appended from off
// in dst on.
func (w *shardWriter) done(off int) { w.entry(off, int64(len(w.dst)-off)) }

// entry writes the entry of an inner chunk of n bytes from off in dst on.
func (w *shardWriter) entry(off int, n int64) {
	w.call.index.set(w.next, uint64(off-w.start), uint64(n))
	w.next++
	w.some = true
}

// encode writes a whole inner chunk: the given part of a shard. block holds
// elements of variable length, src elements of a fixed size.
func (w *shardWriter) encode(block []byte, src Src, p *part) error {
	s := w.s
	var elems []byte
	var tmp *scratch.Buffer
	if s.variable() {
		tmp = scratch.Get(int64(len(block) / s.n))
		var err error
		if tmp.B, err = gatherVariable(tmp.B, block, &s.whole, Box{Start: p.inBox, Count: p.count}); err != nil {
			return err
		}
		elems = tmp.B
	} else {
		elems, tmp = s.inner.gather(p.in(src))
	}
	defer tmp.Put()
	if s.inner.IsFill(elems) {
		w.missing()
		return nil
	}
	w.reserve(len(elems))
	off := len(w.dst)
	var err error
	if w.dst, err = s.inner.stages.encode(w.dst, elems); err != nil {
		return err
	}
	w.done(off)
	return nil
}

// reserve makes room for an inner chunk of n bytes before it is encoded. The sizes of the
// encoded chunks give an estimate for the rest: a shard of many inner chunks that grew by append
// alone would be copied several times.
func (w *shardWriter) reserve(n int) {
	n += n/8 + 512
	if cap(w.dst)-len(w.dst) >= n || w.next == 0 {
		return
	}
	each := float64(len(w.dst)-w.start) / float64(w.next)
	w.dst = slices.Grow(w.dst, n+int(min(1.02*each*float64(w.s.n-w.next), maxReserve)))
}

// maxReserve bounds the bytes that are reserved by extrapolation.
const maxReserve = 256 << 20

// finish writes the index and returns dst. A shard without any inner chunk is
// empty unless always is set.
func (w *shardWriter) finish(always bool) ([]byte, error) {
	if !w.some && !always {
		return w.dst[:w.start], nil
	}
	s := w.s
	if s.atStart {
		room := w.dst[w.start : w.start : w.start+int(s.indexSize)]
		index, err := s.index.Encode(room, w.call.index.entries)
		// Encoded where it belongs, unless a codec took other memory.
		copy(room[:s.indexSize], index)
		return w.dst, err
	}
	return s.index.Encode(w.dst, w.call.index.entries)
}

// update appends the shard old with the elements of a box replaced by the elements of src. It
// copies the encoded inner chunks outside the box. old is nil for a missing shard. It appends
// nothing if all elements have the fill value.
func (s *shardStage) update(ctx context.Context, dst []byte, old Source, box Box, src Src) ([]byte, error) {
	before := shardCalls.Get().(*shardCall)
	defer before.put()
	if old != nil {
		if err := s.readIndex(ctx, old, &before.index); err != nil {
			return dst, err
		}
	}
	w := s.writer(dst)
	defer w.put()
	touched := &before.parts
	touched.reset(s, box)
	more := touched.next()
	for w.next < s.n {
		var err error
		chunk := w.next
		switch {
		case !more:
			err = w.keep(ctx, old, &before.index, s.n)
		case chunk < touched.part.chunk:
			err = w.keep(ctx, old, &before.index, touched.part.chunk)
		case touched.part.all:
			err = w.encode(nil, src, &touched.part)
			more = touched.next()
		default:
			err = w.merge(ctx, old, &before.index, &touched.part, src)
			more = touched.next()
		}
		if err != nil {
			return dst, errShardPart(chunk, err)
		}
	}
	return w.finish(false)
}

// keep copies encoded inner chunks of old, from the next one up to end: a run
// that is contiguous in old too, or one missing chunk.
func (w *shardWriter) keep(ctx context.Context, old Source, x *Index, end int) error {
	if old == nil {
		for w.next < end {
			w.missing()
		}
		return nil
	}
	off, n, there, err := w.s.chunk(x, w.next)
	if err != nil {
		return err
	}
	if !there {
		w.missing()
		return nil
	}
	at, to := len(w.dst), off+n
	w.entry(at, n)
	for w.next < end && to-off < maxRead {
		next, n, there, err := w.s.chunk(x, w.next)
		if err != nil {
			return err
		}
		if !there || next != to {
			break
		}
		w.entry(at+int(to-off), n)
		to += n
	}
	return old.ReadRange(ctx, off, to-off, func(b []byte) error {
		w.dst = append(w.dst, b...)
		return nil
	})
}

// merge writes an inner chunk that is old with a part replaced.
func (w *shardWriter) merge(ctx context.Context, old Source, x *Index, p *part, src Src) error {
	var inner Source
	if old != nil {
		off, n, there, err := w.s.chunk(x, p.chunk)
		if err != nil {
			return err
		}
		if there {
			inner = &section{src: old, off: off, n: n}
		}
	}
	off := len(w.dst)
	var err error
	w.dst, err = w.s.inner.merge(ctx, w.dst, inner, p.box(), p.in(src), false)
	if err != nil {
		return err
	}
	if len(w.dst) == off {
		w.missing()
		return nil
	}
	w.done(off)
	return nil
}
