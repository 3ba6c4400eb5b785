package kernels

import "encoding/binary"

func bitsToBytesGeneric(dst, src []byte, planes, stride, lo, n int) {
	for j := range planes {
		s, d := src[8*j*stride:], dst[8*j*n:]
		i := lo
		for ; i+8 <= n; i += 8 {
			w0, w1, w2, w3, w4, w5, w6, w7 := columns(s[i:], stride)
			w0, w1, w2, w3, w4, w5, w6, w7 = transposeBytes8(w0, w1, w2, w3, w4, w5, w6, w7)
			putColumns(d[8*i:], 8, transposeBits8(w0), transposeBits8(w1), transposeBits8(w2), transposeBits8(w3),
				transposeBits8(w4), transposeBits8(w5), transposeBits8(w6), transposeBits8(w7))
		}
		for ; i < n; i++ {
			binary.LittleEndian.PutUint64(d[8*i:], transposeBits8(column(s[i:], stride)))
		}
	}
}

func bytesToBitsGeneric(dst, src []byte, planes, stride, lo, n int) {
	for j := range planes {
		d, s := dst[8*j*stride:], src[8*j*n:]
		i := lo
		for ; i+8 <= n; i += 8 {
			w0, w1, w2, w3, w4, w5, w6, w7 := columns(s[8*i:], 8)
			w0, w1, w2, w3, w4, w5, w6, w7 = transposeBytes8(transposeBits8(w0), transposeBits8(w1), transposeBits8(w2), transposeBits8(w3),
				transposeBits8(w4), transposeBits8(w5), transposeBits8(w6), transposeBits8(w7))
			putColumns(d[i:], stride, w0, w1, w2, w3, w4, w5, w6, w7)
		}
		for ; i < n; i++ {
			w := transposeBits8(word(s[8*i:]))
			for k := range 8 {
				d[k*stride+i] = byte(w >> (8 * k))
			}
		}
	}
}

// transposeBits8 transposes the 8×8 matrix of bits whose rows are the bytes
// of w: bit j of byte i becomes bit i of byte j. Each step swaps the two
// off-diagonal quarters of every square, of 2, 4 and 8 bits.
func transposeBits8(w uint64) uint64 {
	t := (w ^ w>>7) & 0x00aa00aa00aa00aa
	w ^= t ^ t<<7
	t = (w ^ w>>14) & 0x0000cccc0000cccc
	w ^= t ^ t<<14
	t = (w ^ w>>28) & 0x00000000f0f0f0f0
	return w ^ t ^ t<<28
}
