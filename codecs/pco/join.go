package pco

import (
	"encoding/binary"
	"math"

	"github.com/zarrdb/zarrdb/codecs/kernels"
)

// join turns the primary latents of a batch into the latents of the numbers.
func (d *decoder) join(n int) error {
	p, s := d.primary.latents[:n], d.secondary.latents[:n]
	switch d.mode {
	case intMult:
		for i := range p {
			p[i] = p[i]*d.base + s[i]
		}
	case floatMult:
		d.joinFloatMult(p, s)
	case floatQuant:
		mask, ones := low(d.primary.bits), low(d.k)
		zero := uint64(1) << (d.primary.bits - 1) >> d.k
		for i := range p {
			upper, lower := p[i]&mask, s[i]&ones
			if upper < zero {
				lower ^= ones // counted away from zero
			}
			p[i] = upper<<d.k | lower
		}
	case dictionary:
		for i := range p {
			at := p[i] & low(32)
			if at >= uint64(len(d.dict)) {
				return corrupt("number %d of a dictionary of %d", at, len(d.dict))
			}
			p[i] = d.dict[at]
		}
	}
	return nil
}

// joinFloatMult multiplies the whole numbers p by the base, in the type of the
// numbers, and goes s-center steps from there.
//
// Floats that are whole number themselves the latents p: from center on the numbers that are not
// negative, and below, downwards, the negative numbers from -0 on. Where the type has not all whole
// numbers, the next latent is the next float.
func (d *decoder) joinFloatMult(p, s []uint64) {
	explicit := d.typ.explicitBits()
	center, first := uint64(1)<<(d.typ.bits()-1), uint64(1)<<(explicit+1)
	switch d.typ {
	case Float16:
		base := kernels.HalfValue(uint16(fromOrdered(d.base, Float16)))
		jump := uint16(kernels.HalfOf(float64(first))) - uint16(first)
		for i, l := range p {
			abs, sign := uint16(l)^0x8000, uint16(0)
			if abs >= 0x8000 {
				abs, sign = ^abs, 0x8000
			}
			b := abs + jump
			if abs < uint16(first) {
				b = kernels.HalfOf(float64(abs))
			}
			b = kernels.HalfOf(kernels.HalfValue(b|sign) * base)
			p[i] = toOrdered(uint64(b), Float16) + s[i] ^ center
		}
	case Float32:
		base := math.Float32frombits(uint32(fromOrdered(d.base, Float32)))
		jump := math.Float32bits(float32(first)) - uint32(first)
		for i, l := range p {
			abs, sign := uint32(l)^1<<31, uint32(0)
			if abs >= 1<<31 {
				abs, sign = ^abs, 1<<31
			}
			b := abs + jump
			if abs < uint32(first) {
				b = math.Float32bits(float32(int32(abs)))
			}
			b = math.Float32bits(math.Float32frombits(b|sign) * base)
			flip := uint32(int32(b)>>31) | 1<<31
			p[i] = uint64(b^flip) + s[i] ^ center
		}
	case Float64:
		base := math.Float64frombits(fromOrdered(d.base, Float64))
		jump := math.Float64bits(float64(first)) - first
		for i, l := range p {
			abs, sign := l^1<<63, uint64(0)
			if abs >= 1<<63 {
				abs, sign = ^abs, 1<<63
			}
			b := abs + jump
			if abs < first {
				b = math.Float64bits(float64(int64(abs)))
			}
			b = math.Float64bits(math.Float64frombits(b|sign) * base)
			flip := uint64(int64(b)>>63) | 1<<63
			p[i] = b ^ flip + s[i] ^ center
		}
	}
}

// toOrdered turns the bits of a number into the latent that has the place of the
// number in the order of all numbers; fromOrdered turns it back. Negative floats
// are ordered by their bits, backwards, below the positive ones.
func toOrdered(b uint64, t Type) uint64 {
	center := uint64(1) << (t.bits() - 1)
	switch {
	case t.float() && b&center != 0:
		return ^b & low(t.bits())
	case t.float() || t.signed():
		return b ^ center
	}
	return b
}

func fromOrdered(l uint64, t Type) uint64 {
	if t.float() && l>>(t.bits()-1)&1 == 0 {
		return ^l & low(t.bits())
	}
	if t.float() || t.signed() {
		l ^= 1 << (t.bits() - 1)
	}
	return l
}

// value returns the float with the bits b.
func (t Type) value(b uint64) float64 {
	switch t {
	case Float16:
		return kernels.HalfValue(uint16(b))
	case Float32:
		return float64(math.Float32frombits(uint32(b)))
	}
	return math.Float64frombits(b)
}

// flips returns the masks that are xored to the bits of a latent to make the
// number: below the center, and from it on.
func (t Type) flips() (below, above uint64) {
	center := uint64(1) << (t.bits() - 1)
	switch {
	case t.float():
		return math.MaxUint64, center
	case t.signed():
		return center, center
	}
	return 0, 0
}

// store puts the numbers of latents into dst.
func store(dst []byte, latents []uint64, t Type) {
	le := binary.LittleEndian
	below, above := t.flips()
	// below where the highest bit is 0, without a jump.
	diff := below ^ above
	switch t.Size() {
	case 1:
		dst = dst[:len(latents)]
		for i, l := range latents {
			dst[i] = byte(l ^ above)
		}
	case 2:
		for i, l := range latents {
			f := uint16(above) ^ ^uint16(int16(l)>>15)&uint16(diff)
			le.PutUint16(dst[2*i:], uint16(l)^f)
		}
	case 4:
		for i, l := range latents {
			f := uint32(above) ^ ^uint32(int32(l)>>31)&uint32(diff)
			le.PutUint32(dst[4*i:], uint32(l)^f)
		}
	case 8:
		for i, l := range latents {
			f := above ^ ^uint64(int64(l)>>63)&diff
			le.PutUint64(dst[8*i:], l^f)
		}
	}
}
