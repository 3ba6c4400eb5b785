package codecs

import (
	"context"
	"math"
)

// Encode appends a whole shard. Inner chunks are written in C order of the
// grid, so that equal elements give equal bytes; those that hold nothing but
// the fill value are left out.
func (s *shardStage) Encode(dst, src []byte) ([]byte, error) {
	w := s.writer(dst)
	defer w.put()
	p := &w.call.parts
	for p.reset(s, wholeBox(s.whole.shape)); p.next(); {
		if err := w.encode(src, Src{Data: src, Strides: s.whole.strides}, &p.part); err != nil {
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
	x.entries = grow(x.entries[:0], 16*int64(s.n))[:16*s.n]
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
func (w *shardWriter) done(off int) {
	w.call.index.set(w.next, uint64(off-w.start), uint64(len(w.dst)-off))
	w.next++
	w.some = true
}

// encode writes a whole inner chunk: the given part of a shard. block holds the
// elements of variable length, src those of a fixed size.
func (w *shardWriter) encode(block []byte, src Src, p *part) error {
	s := w.s
	var elems []byte
	if s.variable() {
		tmp := getScratch(int64(len(block) / s.n))
		defer tmp.put()
		var err error
		if tmp.b, err = gatherVariable(tmp.b, block, &s.whole, Box{Start: p.inBox, Count: p.count}); err != nil {
			return err
		}
		elems = tmp.b
	} else {
		// Elements are gathered in the order that the inner chain stores.
		src = p.in(src)
		if s.inner.callerBox.packed(p.count, src) {
			elems = src.Data[src.Offset:][:s.inner.in.Size]
		} else {
			tmp := getScratch(s.inner.in.Size)
			defer tmp.put()
			elems = tmp.b[:s.inner.in.Size]
			CopyStrided(Dst{Data: elems, Strides: s.inner.callerBox.strides}, src, p.count, s.whole.size)
		}
	}
	return w.add(elems)
}

// add writes an inner chunk from its elements in memory layout.
func (w *shardWriter) add(elems []byte) error {
	if w.s.inner.IsFill(elems) {
		w.missing()
		return nil
	}
	off := len(w.dst)
	var err error
	if w.dst, err = w.s.inner.Encode(w.dst, elems); err != nil {
		return err
	}
	w.done(off)
	return nil
}

// finish writes the index and returns dst. A shard without any inner chunk is
// nothing at all unless always is set.
func (w *shardWriter) finish(always bool) ([]byte, error) {
	if !w.some && !always {
		return w.dst[:w.start], nil
	}
	s := w.s
	if s.atStart {
		head, err := s.index.Encode(w.dst[w.start:w.start:w.start+int(s.indexSize)], w.call.index.entries)
		if err == nil && int64(len(head)) != s.indexSize {
			err = errSize(len(head), s.indexSize)
		}
		return w.dst, err
	}
	return s.index.Encode(w.dst, w.call.index.entries)
}

// update appends a shard that is old with the elements of a box replaced by
// those of src. Inner chunks that the box does not touch are copied as they
// are. old is nil for a shard that is not there. Nothing is appended if every
// inner chunk holds the fill value.
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
	for chunk := range s.n {
		var off, n int64
		var there bool
		if old != nil {
			var err error
			if off, n, there, err = before.index.Chunk(chunk); err != nil {
				return dst, err
			}
		}
		var err error
		switch {
		case more && touched.part.chunk == chunk:
			if touched.part.all {
				err = w.encode(nil, src, &touched.part)
			} else {
				var inner Source
				if there {
					inner = &section{src: old, off: off, n: n}
				}
				err = w.merge(ctx, inner, &touched.part, src)
			}
			more = touched.next()
		case !there:
			w.missing()
		default:
			at := len(w.dst)
			err = old.ReadRange(ctx, off, n, func(b []byte) error {
				w.dst = append(w.dst, b...)
				return nil
			})
			w.done(at)
		}
		if err != nil {
			return dst, errShardPart(chunk, err)
		}
	}
	return w.finish(false)
}

// merge writes an inner chunk that is old with a part replaced.
func (w *shardWriter) merge(ctx context.Context, old Source, p *part, src Src) error {
	off := len(w.dst)
	var err error
	w.dst, err = w.s.inner.merge(ctx, w.dst, old, p.box(), p.in(src), false)
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
