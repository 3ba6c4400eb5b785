package kernels

import "encoding/binary"

// shuffleGeneric does the elements from lo to hi.
func shuffleGeneric(dst, src []byte, size, stride, lo, hi int) {
	if lo >= hi {
		return
	}
	// Eight planes at a time: 8 elements × 8 bytes are eight words, transposed
	// in registers, so that every load and store moves 8 bytes.
	j := 0
	for ; j+8 <= size; j += 8 {
		shuffle8(dst[j*stride:], src[j:], size, stride, lo, hi)
	}
	if j+4 <= size {
		shuffle4(dst[j*stride:], src[j:], size, stride, lo, hi)
		j += 4
	}
	for ; j < size; j++ {
		plane := dst[j*stride+lo : j*stride+hi]
		s := src[lo*size+j:]
		for i := range plane {
			plane[i] = s[i*size]
		}
	}
}

// shuffle8 writes eight planes: byte k of the element i, which begins at
// src[i·size], goes to dst[k·stride+i].
func shuffle8(dst, src []byte, size, stride, lo, hi int) {
	i := lo
	for ; i+8 <= hi; i += 8 {
		s := src[i*size:]
		w0, w1, w2, w3, w4, w5, w6, w7 := transposeBytes8(
			word(s), word(s[size:]), word(s[2*size:]), word(s[3*size:]),
			word(s[4*size:]), word(s[5*size:]), word(s[6*size:]), word(s[7*size:]))
		putColumns(dst[i:], stride, w0, w1, w2, w3, w4, w5, w6, w7)
	}
	for ; i < hi; i++ {
		w := word(src[i*size:])
		for k := range 8 {
			dst[k*stride+i] = byte(w >> (8 * k))
		}
	}
}

func word(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// putColumns stores a word every stride bytes.
func putColumns(d []byte, stride int, w0, w1, w2, w3, w4, w5, w6, w7 uint64) {
	binary.LittleEndian.PutUint64(d, w0)
	binary.LittleEndian.PutUint64(d[stride:], w1)
	binary.LittleEndian.PutUint64(d[2*stride:], w2)
	binary.LittleEndian.PutUint64(d[3*stride:], w3)
	binary.LittleEndian.PutUint64(d[4*stride:], w4)
	binary.LittleEndian.PutUint64(d[5*stride:], w5)
	binary.LittleEndian.PutUint64(d[6*stride:], w6)
	binary.LittleEndian.PutUint64(d[7*stride:], w7)
}

// shuffle4 is shuffle8 for four planes.
func shuffle4(dst, src []byte, size, stride, lo, hi int) {
	p0, p1, p2, p3 := dst[:hi], dst[stride:stride+hi], dst[2*stride:2*stride+hi], dst[3*stride:3*stride+hi]
	for i := lo; i < hi; i++ {
		w := binary.LittleEndian.Uint32(src[i*size:])
		p0[i], p1[i], p2[i], p3[i] = byte(w), byte(w>>8), byte(w>>16), byte(w>>24)
	}
}

// transposeBytes8 transposes the 8×8 matrix of bytes whose rows are the words,
// first byte lowest: squares of 4, 2 and 1 bytes change places in turn. All
// sixteen words stay in registers.
func transposeBytes8(a, b, c, d, e, f, g, h uint64) (_, _, _, _, _, _, _, _ uint64) {
	const (
		m4 = 0x00000000ffffffff
		m2 = 0x0000ffff0000ffff
		m1 = 0x00ff00ff00ff00ff
	)
	a, e = a&m4|e<<32, a>>32|e&^m4
	b, f = b&m4|f<<32, b>>32|f&^m4
	c, g = c&m4|g<<32, c>>32|g&^m4
	d, h = d&m4|h<<32, d>>32|h&^m4

	a, c = a&m2|c&m2<<16, a>>16&m2|c&^m2
	b, d = b&m2|d&m2<<16, b>>16&m2|d&^m2
	e, g = e&m2|g&m2<<16, e>>16&m2|g&^m2
	f, h = f&m2|h&m2<<16, f>>16&m2|h&^m2

	a, b = a&m1|b&m1<<8, a>>8&m1|b&^m1
	c, d = c&m1|d&m1<<8, c>>8&m1|d&^m1
	e, f = e&m1|f&m1<<8, e>>8&m1|f&^m1
	g, h = g&m1|h&m1<<8, g>>8&m1|h&^m1
	return a, b, c, d, e, f, g, h
}

// unshuffleGeneric does the elements from lo to hi.
func unshuffleGeneric(dst, src []byte, size, stride, lo, hi int) {
	if lo >= hi {
		return
	}
	if size == 2 {
		unshuffle2(dst, src, stride, lo, hi)
		return
	}
	// One store for as many planes as fit in a word: the loads are cheap, the
	// stores are what costs.
	j := 0
	for ; j+8 <= size; j += 8 {
		unshuffle8(dst[j:], src[j*stride:], size, stride, lo, hi)
	}
	if j+4 <= size {
		unshuffle4(dst[j:], src[j*stride:], size, stride, lo, hi)
		j += 4
	}
	for ; j < size; j++ {
		plane := src[j*stride+lo : j*stride+hi]
		d := dst[lo*size+j:]
		for i, b := range plane {
			d[i*size] = b
		}
	}
}

func unshuffle2(dst, src []byte, stride, lo, hi int) {
	p0, p1 := src[:hi], src[stride:stride+hi]
	for i := lo; i < hi; i++ {
		binary.LittleEndian.PutUint16(dst[i*2:], uint16(p0[i])|uint16(p1[i])<<8)
	}
}

func unshuffle4(dst, src []byte, size, stride, lo, hi int) {
	p0, p1, p2, p3 := src[:hi], src[stride:stride+hi], src[2*stride:2*stride+hi], src[3*stride:3*stride+hi]
	for i := lo; i < hi; i++ {
		w := uint32(p0[i]) | uint32(p1[i])<<8 | uint32(p2[i])<<16 | uint32(p3[i])<<24
		binary.LittleEndian.PutUint32(dst[i*size:], w)
	}
}

func unshuffle8(dst, src []byte, size, stride, lo, hi int) {
	i := lo
	for ; i+8 <= hi; i += 8 {
		w0, w1, w2, w3, w4, w5, w6, w7 := columns(src[i:], stride)
		w0, w1, w2, w3, w4, w5, w6, w7 = transposeBytes8(w0, w1, w2, w3, w4, w5, w6, w7)
		putColumns(dst[i*size:], size, w0, w1, w2, w3, w4, w5, w6, w7)
	}
	for ; i < hi; i++ {
		binary.LittleEndian.PutUint64(dst[i*size:], column(src[i:], stride))
	}
}

// columns loads a word every stride bytes.
func columns(s []byte, stride int) (_, _, _, _, _, _, _, _ uint64) {
	return word(s), word(s[stride:]), word(s[2*stride:]), word(s[3*stride:]),
		word(s[4*stride:]), word(s[5*stride:]), word(s[6*stride:]), word(s[7*stride:])
}

// column makes a word of eight bytes that are stride apart.
func column(s []byte, stride int) uint64 {
	return uint64(s[0]) | uint64(s[stride])<<8 | uint64(s[2*stride])<<16 | uint64(s[3*stride])<<24 |
		uint64(s[4*stride])<<32 | uint64(s[5*stride])<<40 | uint64(s[6*stride])<<48 | uint64(s[7*stride])<<56
}
