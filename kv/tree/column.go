package tree

import (
	"encoding/binary"
	"math/bits"
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
	mask  uint64
	width uint
	data  []byte // from the first value to the end of the page
}

func appendPacked(dst []byte, vals []uint64) []byte {
	lo, hi := vals[0], vals[0]
	for _, v := range vals {
		lo, hi = min(lo, v), max(hi, v)
	}
	width := uint(bits.Len64(hi - lo))
	dst = binary.AppendUvarint(dst, lo)
	dst = append(dst, byte(width))
	if width == 0 {
		return dst
	}
	var acc uint64 // bits that do not fill a byte group yet
	var have uint
	for _, v := range vals {
		v -= lo
		acc |= v << have
		if have+width < 64 {
			have += width
			continue
		}
		dst = binary.LittleEndian.AppendUint64(dst, acc)
		used := 64 - have
		acc = v >> used // 0 if used is 64
		have = width - used
	}
	for ; have > 0; have -= min(have, 8) {
		dst = append(dst, byte(acc))
		acc >>= 8
	}
	return dst
}

// get returns value i, which must exist.
func (p *packed) get(i int) uint64 {
	if p.width == 0 {
		return p.base
	}
	bit := uint(i) * p.width
	off, shift := int(bit>>3), bit&7
	if off+8 > len(p.data) {
		return p.tail(off, shift)
	}
	v := binary.LittleEndian.Uint64(p.data[off:]) >> shift
	if shift+p.width > 64 {
		v |= uint64(p.data[off+8]) << (64 - shift)
	}
	return p.base + v&p.mask
}

// tail is get within 8 bytes of the end of the page.
func (p *packed) tail(off int, shift uint) uint64 {
	var b [8]byte
	copy(b[:], p.data[off:])
	return p.base + binary.LittleEndian.Uint64(b[:])>>shift&p.mask
}

// packed reads a column of n > 0 values, none above limit.
func (d *decoder) packed(n int, limit uint64) packed {
	p := packed{base: d.uvarint(), width: uint(d.byte())}
	if p.width > 64 || p.base > limit {
		d.fail("column out of bounds")
		return packed{}
	}
	p.mask = 1<<p.width - 1 // all ones for a width of 64
	total := uint64(n) * uint64(p.width)
	if (total+7)/8 > uint64(len(d.b)-d.pos) {
		d.fail("ends too early")
		return packed{}
	}
	p.data = d.b[d.pos:]
	d.pos += int((total + 7) / 8)
	if p.width == 0 {
		return p
	}
	if spare := total & 7; spare != 0 && d.b[d.pos-1]>>spare != 0 {
		d.fail("column with bits set past its end")
		return packed{}
	}
	lo, hi := p.get(0), p.get(0)
	for i := range n {
		v := p.get(i)
		if v < p.base || v > limit {
			d.fail("column out of bounds")
			return packed{}
		}
		lo, hi = min(lo, v), max(hi, v)
	}
	if lo != p.base || uint(bits.Len64(hi-lo)) != p.width {
		d.fail("column is not packed tightly")
		return packed{}
	}
	return p
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

// flush ends the column.
func (e *runEncoder) flush() {
	if e.runs > 0 {
		e.buf = binary.AppendUvarint(e.buf, (e.runs-1)<<1|1)
		e.runs = 0
	}
}

// runReader reads a run-length column. Its state is small, so that columns can
// be entered in the middle.
type runReader struct {
	pos    int32 // in the page
	left   int32 // times that last comes again
	last   int64
	repeat bool // the token before pos was a run; only the decoder cares
}

// next reads from a page that was validated.
func (r *runReader) next(page []byte) int64 {
	if r.left > 0 {
		r.left--
		return r.last
	}
	t := uint64(page[r.pos])
	r.pos++
	if t >= 0x80 {
		v, n := binary.Uvarint(page[r.pos-1:])
		t = v
		r.pos += int32(n) - 1
	}
	if t&1 != 0 {
		r.left = int32(t >> 1)
		return r.last
	}
	r.last = unzigzag(t >> 1)
	return r.last
}

// run reads the next value of a run-length column of which remaining are left.
// The column is where d is.
func (d *decoder) run(r *runReader, remaining int) int64 {
	if r.left > 0 {
		r.left--
		return r.last
	}
	t := d.uvarint()
	r.pos = int32(d.pos)
	if t&1 != 0 {
		if r.repeat || t>>1 >= uint64(remaining) {
			d.fail("bad run")
			return r.last
		}
		r.repeat = true
		r.left = int32(t >> 1)
		return r.last
	}
	r.repeat = false
	v := unzigzag(t >> 1)
	if v == r.last {
		d.fail("run is not coded as one")
	}
	r.last = v
	return v
}
