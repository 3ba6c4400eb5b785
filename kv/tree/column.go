package tree

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// The building blocks of a page: a checking decoder, bit-packed columns and
// run-length columns. Each has one encoding per content, and the decoder
// accepts no other, so that decoding and encoding a page gives its bytes back.

// decoder reads a page front to back and remembers the first thing wrong with
// it; after that every read gives zeros.
type decoder struct {
	b   []byte
	pos int
	err string
	s   *scratch
}

func (d *decoder) fail(what string) {
	if d.err == "" {
		d.err = what
		d.pos = len(d.b)
	}
}

func (d *decoder) byte() byte {
	if d.pos >= len(d.b) {
		d.fail("ends too early")
		return 0
	}
	d.pos++
	return d.b[d.pos-1]
}

// bytes returns the next n bytes, nil after an error.
func (d *decoder) bytes(n int) []byte {
	if n < 0 || n > len(d.b)-d.pos {
		d.fail("ends too early")
		return nil
	}
	d.pos += n
	return d.b[d.pos-n : d.pos : d.pos]
}

// skip goes past n bytes and returns where they are.
func (d *decoder) skip(n int) int32 {
	d.bytes(n)
	return int32(d.pos - n)
}

func (d *decoder) uvarint() uint64 {
	if d.pos < len(d.b) && d.b[d.pos] < 0x80 {
		d.pos++
		return uint64(d.b[d.pos-1])
	}
	v, n := binary.Uvarint(d.b[d.pos:])
	if n <= 0 || d.b[d.pos+n-1] == 0 {
		d.fail("bad varint")
		return 0
	}
	d.pos += n
	return v
}

// size reads a varint that may be at most limit.
func (d *decoder) size(limit int) int {
	v := d.uvarint()
	if v > uint64(limit) {
		d.fail("size over its limit")
		return 0
	}
	return int(v)
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// packed is a column of integers in as many bits each as the largest distance
// from the smallest needs:
//
//	smallest (uvarint) · bits per value (1 byte) · values, low bits first
//
// A value is read without touching the others.
type packed struct {
	base  uint64
	pos   int32 // of the first value
	width uint8
}

func appendPacked(dst []byte, vals []uint64) []byte {
	lo, width := bounds(vals)
	dst = binary.AppendUvarint(dst, lo)
	dst = append(dst, width)
	return appendBits(dst, vals, lo, width)
}

// bounds returns the smallest value and the bits that the largest distance from
// it takes.
func bounds(vals []uint64) (lo uint64, width uint8) {
	lo, hi := vals[0], vals[0]
	for _, v := range vals {
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, uint8(bits.Len64(hi - lo))
}

func appendBits(dst []byte, vals []uint64, lo uint64, width uint8) []byte {
	size := (len(vals)*int(width) + 7) / 8
	if size == 0 {
		return dst
	}
	at := len(dst)
	dst = slices.Grow(dst, size+8) // the last word may reach past the end
	out := dst[at : at+size+8]
	var acc uint64 // bits that do not fill a word yet
	var have uint8
	if width <= 32 {
		for ; len(vals) >= 2; vals = vals[2:] {
			v := (vals[0] - lo) | (vals[1]-lo)<<width
			acc |= v << have
			have += 2 * width
			if have >= 64 {
				binary.LittleEndian.PutUint64(out, acc)
				out = out[8:]
				have -= 64
				acc = v >> (2*width - have) // 0 if nothing is left of v
			}
		}
	}
	for _, v := range vals {
		v -= lo
		acc |= v << have
		have += width
		if have >= 64 {
			binary.LittleEndian.PutUint64(out, acc)
			out = out[8:]
			have -= 64
			acc = v >> (width - have) // 0 if nothing is left of v
		}
	}
	binary.LittleEndian.PutUint64(out, acc)
	return dst[:at+size]
}

// get returns value i, which must exist, of a column in b.
func (p *packed) get(b []byte, i int) uint64 {
	if p.width == 0 {
		return p.base
	}
	bit := uint(i) * uint(p.width)
	off, shift := int(p.pos)+int(bit>>3), bit&7
	var v uint64
	if off+8 < len(b) {
		v = binary.LittleEndian.Uint64(b[off:])>>shift | uint64(b[off+8])<<(64-shift)
	} else {
		v = lastBits(b[off:], shift)
	}
	return p.base + v&(1<<p.width-1)
}

// lastBits reads at the end of a page.
func lastBits(b []byte, shift uint) uint64 {
	var buf [9]byte
	copy(buf[:], b)
	return binary.LittleEndian.Uint64(buf[:])>>shift | uint64(buf[8])<<(64-shift)
}

// packed reads a column of n > 0 values, none above limit.
func (d *decoder) packed(n int, limit uint64) packed {
	p, _ := d.packedSum(n, limit, nil)
	return p
}

// packedSum also returns the sum of the values, and puts them into out unless
// that is empty.
func (d *decoder) packedSum(n int, limit uint64, out []uint64) (_ packed, sum uint64) {
	p := packed{base: d.uvarint(), width: d.byte(), pos: int32(d.pos)}
	if p.width > 64 || p.base > limit {
		d.fail("column out of bounds")
		return packed{}, 0
	}
	total := uint64(n) * uint64(p.width)
	if d.bytes(int((total + 7) / 8)); d.err != "" {
		return packed{}, 0
	}
	if spare := total & 7; spare != 0 && d.b[d.pos-1]>>spare != 0 {
		d.fail("column with bits set past its end")
		return packed{}, 0
	}
	if p.width == 0 {
		p.values(out, d.b)
		return p, uint64(n) * p.base
	}
	var s span
	if len(out) > 0 {
		s = p.values(out, d.b)
	} else {
		s = p.span(d.b, n)
	}
	switch {
	case p.base+s.hi < s.hi || p.base+s.hi > limit:
		d.fail("column out of bounds")
	case s.lo != 0 || uint8(bits.Len64(s.hi)) != p.width:
		d.fail("column is not packed tightly")
	default:
		return p, s.sum + uint64(n)*p.base
	}
	return packed{}, 0
}

// words is how many of n values in b can each be read as part of one word.
func (p *packed) words(b []byte, n int) int {
	if p.width > 57 || len(b) < int(p.pos)+8 {
		return 0
	}
	return min(n, ((len(b)-int(p.pos)-8)*8+7)/int(p.width)+1)
}

// span is the smallest and largest distance from the base of a column, and the
// sum of the distances.
type span struct{ lo, hi, sum uint64 }

func (s *span) add(v uint64) {
	s.lo, s.hi = min(s.lo, v), max(s.hi, v)
	s.sum += v
}

// span returns the span of a column of n values that takes some bits.
func (p *packed) span(b []byte, n int) span {
	lo, hi, sum := uint64(1<<64-1), uint64(0), uint64(0)
	mask, src := uint64(1)<<p.width-1, b[p.pos:]
	fast, bit := p.words(b, n), uint(0)
	for range fast {
		v := binary.LittleEndian.Uint64(src[bit>>3:]) >> (bit & 7) & mask
		lo, hi = min(lo, v), max(hi, v)
		sum += v
		bit += uint(p.width)
	}
	s := span{lo, hi, sum}
	for i := fast; i < n; i++ {
		s.add(p.get(b, i) - p.base)
	}
	return s
}

// values fills dst from a column, and returns its span if it takes some bits.
func (p *packed) values(dst []uint64, b []byte) span {
	if p.width == 0 {
		for i := range dst {
			dst[i] = p.base
		}
		return span{}
	}
	lo, hi, sum := uint64(1<<64-1), uint64(0), uint64(0)
	mask, src := uint64(1)<<p.width-1, b[p.pos:]
	fast, bit := p.words(b, len(dst)), uint(0)
	base, width := p.base, uint(p.width)
	for i := range dst[:fast] {
		v := binary.LittleEndian.Uint64(src[bit>>3:]) >> (bit & 7) & mask
		lo, hi = min(lo, v), max(hi, v)
		sum += v
		dst[i] = base + v
		bit += width
	}
	s := span{lo, hi, sum}
	for i := fast; i < len(dst); i++ {
		dst[i] = p.get(b, i)
		s.add(dst[i] - p.base)
	}
	return s
}

// A run-length column is a list of signed integers:
//
//	uvarint zigzag(v)<<1     the value v
//	uvarint (n-1)<<1 | 1     the value before n more times; zero at the start
//
// Values are at most 2^62 away from zero.
type runEncoder struct {
	buf  []byte
	last int64
	runs uint64
}

func (e *runEncoder) reset() { *e = runEncoder{buf: e.buf[:0]} }

func (e *runEncoder) add(v int64) {
	if v == e.last {
		e.runs++
		return
	}
	e.flush()
	e.last = v
	e.buf = binary.AppendUvarint(e.buf, zigzag(v)<<1)
}

// addRun adds a value n > 0 times.
func (e *runEncoder) addRun(v int64, n uint64) {
	e.add(v)
	e.runs += n - 1
}

// flush ends the column.
func (e *runEncoder) flush() {
	if e.runs > 0 {
		e.buf = binary.AppendUvarint(e.buf, (e.runs-1)<<1|1)
		e.runs = 0
	}
}

// runReader reads a run-length column, which is where the decoder is.
type runReader struct {
	last   int64
	repeat bool // the token before was a run
}

// runs reads the next value of a column with remaining values left, and how
// often it repeats.
func (d *decoder) runs(r *runReader, remaining int) (v int64, times int) {
	t := d.uvarint()
	if t&1 != 0 {
		if r.repeat || t>>1 >= uint64(remaining) {
			d.fail("bad run")
			return r.last, 1
		}
		r.repeat = true
		return r.last, int(t>>1) + 1
	}
	r.repeat = false
	v = unzigzag(t >> 1)
	if v == r.last {
		d.fail("run is not coded as one")
	}
	r.last = v
	return v, 1
}
