package lzma

import "encoding/binary"

// rangeDecoder takes bits out of a stream, given how likely they are.
type rangeDecoder struct {
	src       []byte
	pos       int
	rng, code uint32
	over      bool // more was taken than src has
}

// init reads the first five bytes, of which the first is always 0.
func (r *rangeDecoder) init(src []byte) bool {
	if len(src) < 5 || src[0] != 0 {
		return false
	}
	*r = rangeDecoder{src: src, pos: 5, rng: 0xffffffff, code: binary.BigEndian.Uint32(src[1:])}
	return true
}

func (r *rangeDecoder) refill() {
	r.rng <<= 8
	r.code <<= 8
	if r.pos < len(r.src) {
		r.code |= uint32(r.src[r.pos])
		r.pos++
	} else {
		r.over = true
	}
}

// normalize does the refill that the next bit would do.
func (r *rangeDecoder) normalize() {
	if r.rng < 1<<24 {
		r.refill()
	}
}

// bit takes a bit and adapts its model.
func (r *rangeDecoder) bit(p *uint16) uint32 {
	if r.rng < 1<<24 {
		r.refill()
	}
	bound := r.rng >> modelBits * uint32(*p)
	if r.code < bound {
		r.rng = bound
		*p += (1<<modelBits - *p) >> moveBits
		return 0
	}
	r.rng -= bound
	r.code -= bound
	*p -= *p >> moveBits
	return 1
}

// direct takes n bits that are as likely 0 as 1.
func (r *rangeDecoder) direct(n int) uint32 {
	v := uint32(0)
	for range n {
		if r.rng < 1<<24 {
			r.refill()
		}
		r.rng >>= 1
		b := uint32(0)
		if r.code >= r.rng {
			r.code -= r.rng
			b = 1
		}
		v = v<<1 | b
	}
	return v
}

// tree takes a number of n bits, the highest first, by models for every
// prefix.
func (r *rangeDecoder) tree(models []uint16, n int) uint32 {
	v := uint32(1)
	for range n {
		v = v<<1 | r.bit(&models[v])
	}
	return v - 1<<n
}

// reverse is tree for a number whose lowest bit comes first.
func (r *rangeDecoder) reverse(models []uint16, n int) uint32 {
	v, at := uint32(0), uint32(1)
	for i := range n {
		b := r.bit(&models[at])
		at = at<<1 | b
		v |= b << i
	}
	return v
}
