package codecs

import "github.com/zarrdb/zarrdb/codecs/inflate"

// parseImageDeflate parses imagecodecs' "imagecodecs_deflate": zlib, or a deflate stream alone.
func parseImageDeflate(c Config) (Codec, error) {
	f := c.Fields()
	level, raw := int(f.Int("level", 6, 0, 12)), f.Bool("raw", false)
	return NewCodec(Object("level", level, "raw", raw), func(in Rep) (Stage, Rep, error) {
		s := deflateStage{in: in, level: min(level, 9)} // more is known to libdeflate alone
		if raw {
			return &rawDeflateStage{s}, in.Grown(), nil
		}
		return &zlibStage{s}, in.Grown(), nil
	}), f.Err()
}

// rawDeflateStage is a deflate stream.
type rawDeflateStage struct{ deflateStage }

func (s *rawDeflateStage) Encode(dst, src []byte) ([]byte, error) { return s.compress(dst, src) }

func (s *rawDeflateStage) Decode(dst, src []byte) ([]byte, error) {
	out, n, err := inflate.Inflate(dst, src, s.in.Limit(len(src)))
	return wrapped("deflate", dst, out, src[n:], err)
}
