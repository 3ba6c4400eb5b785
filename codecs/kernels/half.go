package kernels

import "math"

// HalfValue returns the value of the IEEE 754 binary16 number h, also a NaN with
// its payload.
func HalfValue(h uint16) float64 {
	sign := uint64(h>>15) << 63
	exp, man := uint64(h>>10&31), uint64(h&0x3ff)
	switch exp {
	case 0:
		v := float64(man) / (1 << 24)
		return math.Float64frombits(math.Float64bits(v) | sign)
	case 31:
		return math.Float64frombits(sign | 0x7ff<<52 | man<<42)
	}
	return math.Float64frombits(sign | (exp+1023-15)<<52 | man<<42)
}

// HalfOf rounds v to the nearest binary16 number, ties to even. Of a NaN it keeps
// the sign and the upper part of the payload.
func HalfOf(v float64) uint16 {
	b := math.Float64bits(v)
	sign := uint16(b >> 48 & 0x8000)
	exp, man := int(b>>52&0x7ff)-1023, b&(1<<52-1)
	switch {
	case exp == 1024 && man != 0:
		return sign | 0x7e00 | uint16(man>>42)
	case exp > 15:
		return sign | 0x7c00
	case exp < -25:
		return sign
	}
	drop := 42
	if exp < -14 {
		// Subnormal: the leading one is written out, and the exponent is fixed.
		man |= 1 << 52
		drop += -14 - exp
		exp = -15
	}
	h := uint16(exp+15)<<10 + uint16(man>>drop)
	rest, half := man&(1<<drop-1), uint64(1)<<(drop-1)
	if rest > half || rest == half && h&1 != 0 {
		h++ // a carry into the exponent is right, up to infinity
	}
	return sign | h
}
