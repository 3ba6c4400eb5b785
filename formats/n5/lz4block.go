package n5

import (
	"encoding/binary"
	"math/bits"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/lz4"
)

// lz4Codec is the codec of N5's compression "lz4", the stream of lz4-java's
// LZ4BlockOutputStream. Numbers are little-endian:
//
//	"LZ4Block" │ method and level (1) │ compressed length (4) │ length (4) │ checksum (4) │ data │ … │ end
//
// The method is 0x10 for stored and 0x20 for LZ4; the level is the logarithm of the
// block size less 10. The checksum is the xxHash of the uncompressed data with its
// highest four bits cleared. A block of length 0 ends the stream; another one may
// follow.
const lz4Codec = "zarrdb.lz4block"

const (
	lz4Magic  = "LZ4Block"
	lz4Header = len(lz4Magic) + 13
	lz4Stored = 0x10
	lz4Packed = 0x20
	lz4Seed   = 0x9747b28c

	// Limits of the block size, in bytes.
	lz4MinBlock = 64
	lz4MaxBlock = 32 << 20
)

func parseLZ4Block(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	size := int(f.Int("block_size", 1<<16, lz4MinBlock, lz4MaxBlock))
	return codecs.NewCodec(codecs.Object("block_size", size), func(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
		out := in.Grown()
		return &lz4Stage{size, in}, out.Longer(in.Max/int64(size)*int64(lz4Header) + 2*int64(lz4Header)), nil
	}), f.Err()
}

type lz4Stage struct {
	size int
	in   codecs.Rep
}

func (s *lz4Stage) Encode(dst, src []byte) ([]byte, error) {
	level := byte(max(0, bits.Len(uint(s.size-1))-10))
	var e lz4.Encoder
	for len(src) > 0 {
		block := src[:min(len(src), s.size)]
		src = src[len(block):]
		start := len(dst)
		dst = append(dst, make([]byte, lz4Header+lz4.Bound(len(block)))...)
		data := dst[start+lz4Header:]
		n, method := e.Encode(data, block, 1), byte(lz4Packed)
		if n >= len(block) {
			n, method = copy(data, block), lz4Stored
		}
		putLZ4Header(dst[start:], method|level, n, len(block), xxh32(block, lz4Seed)&0x0fffffff)
		dst = dst[:start+lz4Header+n]
	}
	dst = append(dst, make([]byte, lz4Header)...)
	putLZ4Header(dst[len(dst)-lz4Header:], lz4Stored|level, 0, 0, 0)
	return dst, nil
}

func putLZ4Header(b []byte, token byte, packed, size int, sum uint32) {
	le := binary.LittleEndian
	copy(b, lz4Magic)
	b[8] = token
	le.PutUint32(b[9:], uint32(packed))
	le.PutUint32(b[13:], uint32(size))
	le.PutUint32(b[17:], sum)
}

func (s *lz4Stage) Decode(dst, src []byte) ([]byte, error) {
	le := binary.LittleEndian
	start, limit := len(dst), s.in.Limit(len(src))
	for len(src) > 0 {
		if len(src) < lz4Header || string(src[:len(lz4Magic)]) != lz4Magic {
			return dst[:start], codecs.Corruptf(lz4Codec, "no block where one should begin")
		}
		method, packed, size, sum := src[8]&0xf0, int64(le.Uint32(src[9:])), int64(le.Uint32(src[13:])), le.Uint32(src[17:])
		src = src[lz4Header:]
		switch {
		case method != lz4Stored && method != lz4Packed:
			return dst[:start], codecs.Corruptf(lz4Codec, "method %#x", method)
		case packed > int64(len(src)):
			return dst[:start], codecs.Corruptf(lz4Codec, "a block of %d bytes, of which %d are there", packed, len(src))
		case size > lz4MaxBlock || size > limit-int64(len(dst)-start):
			return dst[:start], codecs.Corruptf(lz4Codec, "more than the %d bytes that there may be", limit)
		case size > 255*packed: // a byte of a block stands for 255 at most
			return dst[:start], codecs.Corruptf(lz4Codec, "%d bytes cannot decode to %d", packed, size)
		case method == lz4Stored && size != packed:
			return dst[:start], codecs.Corruptf(lz4Codec, "%d stored bytes for %d", packed, size)
		}
		block := src[:packed]
		src = src[packed:]
		if size == 0 {
			continue
		}
		at := len(dst)
		if method == lz4Stored {
			dst = append(dst, block...)
		} else {
			dst = append(dst, make([]byte, size)...)
			if n, err := lz4.Decode(dst[at:], block); err != nil || int64(n) != size {
				return dst[:start], codecs.Corruptf(lz4Codec, "a damaged block")
			}
		}
		if xxh32(dst[at:], lz4Seed)&0x0fffffff != sum {
			return dst[:start], codecs.Corruptf(lz4Codec, "the checksum of a block is wrong")
		}
	}
	return dst, nil
}

// xxh32 is the 32-bit xxHash of b.
func xxh32(b []byte, seed uint32) uint32 {
	const p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
	le := binary.LittleEndian
	n := uint32(len(b))
	h := seed + p5
	if len(b) >= 16 {
		v := [4]uint32{seed, seed, seed, seed}
		v[0] += p1
		v[0] += p2
		v[1] += p2
		v[3] -= p1
		for ; len(b) >= 16; b = b[16:] {
			for i := range v {
				v[i] = bits.RotateLeft32(v[i]+le.Uint32(b[4*i:])*p2, 13) * p1
			}
		}
		h = bits.RotateLeft32(v[0], 1) + bits.RotateLeft32(v[1], 7) + bits.RotateLeft32(v[2], 12) + bits.RotateLeft32(v[3], 18)
	}
	h += n
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h+le.Uint32(b)*p3, 17) * p4
	}
	for _, x := range b {
		h = bits.RotateLeft32(h+uint32(x)*p5, 11) * p1
	}
	h = (h ^ h>>15) * p2
	h = (h ^ h>>13) * p3
	return h ^ h>>16
}
