package kernels

import (
	"encoding/binary"
	"math/bits"
)

// Swap reverses the bytes of every scalar of size 2, 4 or 8 bytes, or 1, which
// copies. dst[:len(src)] may be src itself. Bytes after the last whole scalar
// are copied. It panics for another size or if dst is shorter than src.
func Swap(dst, src []byte, size int) {
	dst = dst[:len(src)]
	done := 0
	switch size {
	case 1:
		copy(dst, src)
		return
	case 2, 4, 8:
		done = swapArch(dst, src, size)
	default:
		panic("kernels: byte swap of a size other than 1, 2, 4 and 8")
	}
	swapGeneric(dst[done:], src[done:], size)
}

func swapGeneric(dst, src []byte, size int) {
	i := 0
	switch size {
	case 2:
		for ; i+8 <= len(src); i += 8 {
			w := binary.LittleEndian.Uint64(src[i:])
			w = w>>8&0x00ff00ff00ff00ff | w&0x00ff00ff00ff00ff<<8
			binary.LittleEndian.PutUint64(dst[i:], w)
		}
		for ; i+2 <= len(src); i += 2 {
			dst[i], dst[i+1] = src[i+1], src[i]
		}
	case 4:
		for ; i+4 <= len(src); i += 4 {
			binary.LittleEndian.PutUint32(dst[i:], bits.ReverseBytes32(binary.LittleEndian.Uint32(src[i:])))
		}
	case 8:
		for ; i+8 <= len(src); i += 8 {
			binary.LittleEndian.PutUint64(dst[i:], bits.ReverseBytes64(binary.LittleEndian.Uint64(src[i:])))
		}
	}
	copy(dst[i:], src[i:])
}
