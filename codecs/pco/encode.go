package pco

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync"
)

// Auto lets Encode choose the order of differences.
const Auto = -1

// Params say how to encode.
type Params struct {
	// Level is from 0 to 12: up to 2^Level bins, or 2^10, are tried.
	Level int
	// Delta is the order of differences, 0 to 7, or Auto.
	Delta int
	// Classic disables splitting floats into a multiple of a power of ten and a
	// rest, which is used if it is shorter.
	Classic bool
	// PageSize is the most numbers that are encoded together; 0 is 2^18.
	PageSize int
}

// MaxSize returns the largest length of a file of size bytes of numbers.
func MaxSize(size int64, t Type, p Params) int64 {
	n := size / int64(t.Size())
	pages := n/int64(p.pageSize()) + 1
	// The chosen bins are no larger than a single bin with the raw latents; but
	// weights are rounded, so that the number of a bin may take up to maxLog
	// bits.
	return size + 2*n + 16 + 128*pages
}

func (p Params) pageSize() int {
	if p.PageSize <= 0 {
		return 1 << 18
	}
	return min(p.PageSize, chunkMax)
}

// encoder is the reusable memory of encoding.
type encoder struct {
	typ                Type
	latents            []uint64 // of the numbers of a page
	seconds            []uint64
	sample, split      []uint64
	primary, secondary part
}

var encoderPool = sync.Pool{New: func() any { return new(encoder) }}

// Encode appends a file with the numbers in src, which are little-endian and of
// type t, to dst. It is safe for concurrent use.
func Encode(dst, src []byte, t Type, p Params) ([]byte, error) {
	if len(src)%t.Size() != 0 {
		return dst, fmt.Errorf("pco: %d bytes are not numbers of %v", len(src), t)
	}
	if p.Level < 0 || p.Level > 12 || p.Delta < Auto || p.Delta > 7 {
		return dst, fmt.Errorf("pco: parameters %+v are out of range", p)
	}
	e := encoderPool.Get().(*encoder)
	defer e.release()
	n := len(src) / t.Size()
	w := writer{dst: append(dst, magic...)}
	w.header(n, t)
	e.typ, e.primary.width, e.secondary.width = t, t.bits(), t.bits()
	// Pages of about the same size.
	pages := (n + p.pageSize() - 1) / p.pageSize()
	for i := range pages {
		from, to := span(i, pages, n)
		e.latents = load(resize(e.latents, to-from), src[from*t.Size():to*t.Size()], t)
		e.writeChunk(&w, p)
	}
	w.dst = append(w.dst, 0)
	return w.dst, nil
}

// release puts e back into the pool, unless it is large.
func (e *encoder) release() {
	if cap(e.latents) <= 1<<19 {
		encoderPool.Put(e)
	}
}

// span returns where the i-th of pages begins and ends.
func span(i, pages, n int) (from, to int) {
	small, more := n/pages, n%pages
	from = i*small + min(i, more)
	if i < more {
		small++
	}
	return from, from + small
}

// header writes all up to the first chunk, in the oldest version that has all
// that is used. Types of one byte came with 4.1.
func (w *writer) header(n int, t Type) {
	if t.Size() == 1 {
		w.dst = append(w.dst, 3, byte(t))
	} else {
		w.dst = append(w.dst, 2)
	}
	size := uint(max(bits.Len(uint(n)), 1))
	w.put(uint64(size-1), 6)
	w.put(uint64(n), size)
	w.align()
	if t.Size() == 1 {
		w.dst = append(w.dst, 4, 1)
	} else {
		w.dst = append(w.dst, 3)
	}
}

// load returns the latents of numbers.
func load(latents []uint64, src []byte, t Type) []uint64 {
	le := binary.LittleEndian
	switch t.Size() {
	case 1:
		for i := range latents {
			latents[i] = uint64(src[i])
		}
	case 2:
		for i := range latents {
			latents[i] = uint64(le.Uint16(src[2*i:]))
		}
	case 4:
		for i := range latents {
			latents[i] = uint64(le.Uint32(src[4*i:]))
		}
	case 8:
		for i := range latents {
			latents[i] = le.Uint64(src[8*i:])
		}
	}
	// The xor that store does. The highest bit of a float differs from the
	// highest bit of its latent; in other types it does not matter.
	ifSet, ifClear := t.flips()
	width, mask := t.bits(), low(t.bits())
	for i, b := range latents {
		set := -(b >> (width - 1))
		latents[i] = (b ^ ifClear ^ set&(ifClear^ifSet)) & mask
	}
	return latents
}

// writeChunk writes e.latents as a chunk, and overwrites them.
func (e *encoder) writeChunk(w *writer, p Params) {
	width, n := e.typ.bits(), len(e.latents)
	f, order := e.choose(p)
	parts := []*part{&e.primary}
	if f.mode == floatMult {
		e.seconds = resize(e.seconds, n)
		f.split(e.latents, e.seconds)
		parts = append(parts, &e.secondary)
	}
	e.primary.latents, e.primary.order = e.latents, order
	e.secondary.latents, e.secondary.order = e.seconds, 0

	w.put(uint64(e.typ), 8)
	w.put(uint64(n-1), 24)
	w.put(uint64(f.mode), 4)
	if f.mode == floatMult {
		w.put(f.base, width)
	}
	if order == 0 {
		w.put(uint64(noDelta), 4)
	} else {
		w.put(uint64(consecutive), 4)
		w.put(uint64(order), 3)
		w.put(0, 1)
	}
	for _, v := range parts {
		v.prepare(p.Level)
		v.writeBins(w)
	}
	w.align()
	for _, v := range parts {
		for _, m := range v.moments[:v.order] {
			w.put(m, width)
		}
		for _, s := range v.coder.state {
			w.put(uint64(s), v.log)
		}
	}
	w.align()
	for from := 0; from < n; from += batchSize {
		for _, v := range parts {
			v.writeBatch(w, from)
		}
	}
	w.align()
}
