package codecs

import "bytes"

func parseImagePackbits(c Config) (Codec, error) {
	f := c.Fields()
	f.Raw("axis") // where the encoder of imagecodecs ends its runs
	return NewCodec(nil, func(in Rep) (Stage, Rep, error) { return &imagePackbitsStage{in}, in.Grown(), nil }), f.Err()
}

// imagePackbitsStage is imagecodecs' "imagecodecs_packbits", the run lengths of TIFF 6.0.
type imagePackbitsStage struct{ in Rep }

func (s *imagePackbitsStage) Decode(dst, src []byte) ([]byte, error) {
	start, limit := len(dst), s.in.Limit(len(src))
	for len(src) > 0 {
		n := int(int8(src[0]))
		src = src[1:]
		switch {
		case n == -128: // nothing
		case n < 0 && len(src) > 0:
			dst = append(dst, bytes.Repeat(src[:1], 1-n)...)
			src = src[1:]
		case n >= 0 && len(src) > n:
			dst = append(dst, src[:n+1]...)
			src = src[n+1:]
		default:
			return dst[:start], Corruptf("imagecodecs_packbits", "a run is cut off")
		}
		if int64(len(dst)-start) > limit {
			return dst[:start], Corruptf("imagecodecs_packbits", "more than the %d bytes that there may be", limit)
		}
	}
	return dst, nil
}

func (s *imagePackbitsStage) Encode(dst, src []byte) ([]byte, error) {
	const most = 128
	repeats := func(b []byte) int {
		n := 1
		for n < len(b) && n < most && b[n] == b[0] {
			n++
		}
		return n
	}
	for len(src) > 0 {
		if n := repeats(src); n > 2 {
			dst = append(dst, byte(1-n), src[0])
			src = src[n:]
			continue
		}
		n := 1
		for n < len(src) && n < most && repeats(src[n:]) <= 2 {
			n++
		}
		dst = append(append(dst, byte(n-1)), src[:n]...)
		src = src[n:]
	}
	return dst, nil
}
