package codecs

import (
	"encoding/binary"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
)

func parseLZF(c Config) (Codec, error) {
	f := c.Fields()
	header := f.Bool("header", true)
	return NewCodec(Object("header", header), func(in Rep) (Stage, Rep, error) {
		return &lzfStage{in, header}, in.Grown(), nil
	}), f.Err()
}

// lzfStage is imagecodecs' "imagecodecs_lzf", the format of liblzf and of the filter 32000 of
// HDF5, which has no header.
//
//	(decoded length of the rest, 4 bytes, little-endian)
//	000nnnnn                      n + 1 bytes follow
//	nnnooooo           oooooooo   n + 2 bytes from o + 1 bytes before, n from 1 to 6
//	111ooooo nnnnnnnn  oooooooo   n + 9 bytes from there
type lzfStage struct {
	in     Rep
	header bool
}

const (
	lzfLiterals = 32
	lzfFar      = 1 << 13
	lzfLongest  = 2 + 7 + 255
)

func (s *lzfStage) Decode(dst, src []byte) ([]byte, error) {
	const name = "imagecodecs_lzf"
	start, limit := len(dst), s.in.Limit(len(src))
	if s.header {
		if len(src) < 4 {
			return dst, Corruptf(name, "%d bytes have no room for the length", len(src))
		}
		n := int64(binary.LittleEndian.Uint32(src))
		if n > limit {
			return dst, Corruptf(name, "the length is %d, more than %d", n, limit)
		}
		limit, src = n, src[4:]
	}
	dst = scratch.Room(dst, min(limit, 88*int64(len(src))), len(src)) // three bytes are at most 264
	for len(src) > 0 {
		c := int(src[0])
		src = src[1:]
		if c < lzfLiterals {
			if c++; len(src) < c {
				return dst[:start], Corruptf(name, "%d bytes are cut off", c)
			}
			dst, src = append(dst, src[:c]...), src[c:]
		} else {
			n, far := c>>5+2, c&31<<8
			if n == 9 && len(src) > 0 {
				n, src = n+int(src[0]), src[1:]
			}
			if len(src) == 0 {
				return dst[:start], Corruptf(name, "an offset is cut off")
			}
			far, src = far+int(src[0])+1, src[1:]
			if far > len(dst)-start {
				return dst[:start], Corruptf(name, "%d bytes back, where there are %d", far, len(dst)-start)
			}
			for n > 0 { // source and destination may overlap
				k := min(n, far)
				dst = append(dst, dst[len(dst)-far:][:k]...)
				n -= k
			}
		}
		if int64(len(dst)-start) > limit {
			return dst[:start], Corruptf(name, "more than the %d bytes that there may be", limit)
		}
	}
	if s.header && int64(len(dst)-start) != limit {
		return dst[:start], Corruptf(name, "%d bytes, but the length is %d", len(dst)-start, limit)
	}
	return dst, nil
}

func (s *lzfStage) Encode(dst, src []byte) ([]byte, error) {
	if s.header {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(src)))
	}
	var last [1 << 13]int32 // where three bytes stood, plus 1, by their hash
	begin := 0              // of the bytes that are no copy
	literals := func(end int) {
		for begin < end {
			n := min(lzfLiterals, end-begin)
			dst = append(append(dst, byte(n-1)), src[begin:begin+n]...)
			begin += n
		}
	}
	for at := 0; at+3 <= len(src); {
		word := uint32(src[at])<<16 | uint32(src[at+1])<<8 | uint32(src[at+2])
		slot := &last[word*2654435761>>19]
		from := int(*slot) - 1
		*slot = int32(at + 1)
		far := at - from - 1
		if from < 0 || far >= lzfFar || src[from] != src[at] || src[from+1] != src[at+1] || src[from+2] != src[at+2] {
			at++
			continue
		}
		n := 3
		for n < lzfLongest && at+n < len(src) && src[from+n] == src[at+n] {
			n++
		}
		literals(at)
		if n < 9 {
			dst = append(dst, byte((n-2)<<5|far>>8))
		} else {
			dst = append(dst, byte(7<<5|far>>8), byte(n-9))
		}
		dst = append(dst, byte(far))
		at += n
		begin = at
	}
	literals(len(src))
	return dst, nil
}
