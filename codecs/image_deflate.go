package codecs

import (
	"encoding/json"

	"github.com/zarrdb/zarrdb/codecs/inflate"
)

// imageDeflate is imagecodecs' "imagecodecs_deflate": zlib, or a deflate stream alone.
type imageDeflate struct {
	level int
	raw   bool
}

func parseImageDeflate(c Config) (Codec, error) {
	f := c.Fields()
	return &imageDeflate{int(f.Int("level", 6, 0, 12)), f.Bool("raw", false)}, f.Err()
}

func (d *imageDeflate) Config() json.RawMessage { return Object("level", d.level, "raw", d.raw) }

func (d *imageDeflate) Bind(in Rep) (Stage, Rep, error) {
	s := deflateStage{in: in, level: min(d.level, 9)} // more is known to libdeflate alone
	if d.raw {
		return &rawDeflateStage{s}, in.Grown(), nil
	}
	return &zlibStage{s}, in.Grown(), nil
}

// rawDeflateStage is a deflate stream.
type rawDeflateStage struct{ deflateStage }

func (s *rawDeflateStage) Encode(dst, src []byte) ([]byte, error) { return s.compress(dst, src) }

func (s *rawDeflateStage) Decode(dst, src []byte) ([]byte, error) {
	out, n, err := inflate.Inflate(dst, src, s.in.Limit(len(src)))
	return wrapped("deflate", dst, out, src[n:], err)
}
