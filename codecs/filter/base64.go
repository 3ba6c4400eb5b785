package filter

import (
	"encoding/base64"
	"math"

	"github.com/zarrdb/zarrdb/codecs"
)

func parseBase64(c codecs.Config) (codecs.Codec, error) {
	return codecs.NewCodec(nil, bindBase64), c.Fields().Err()
}

func bindBase64(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	long := func(n int64) int64 {
		if n < 0 || n > math.MaxInt64/2 {
			return n
		}
		return (n + 2) / 3 * 4
	}
	out := in
	out.Size, out.Max, out.ItemSize = long(in.Size), long(in.Max), 1
	return base64Stage{in}, out, nil
}

// base64Stage is numcodecs' "base64" (RFC 4648 section 4).
type base64Stage struct{ in codecs.Rep }

func (s base64Stage) Encode(dst, src []byte) ([]byte, error) {
	return base64.StdEncoding.AppendEncode(dst, src), nil
}

func (s base64Stage) Decode(dst, src []byte) ([]byte, error) {
	if n, limit := int64(base64.StdEncoding.DecodedLen(len(src))), s.in.Limit(len(src)); n-2 > limit {
		return dst, codecs.Corruptf("base64", "%d characters are more than %d bytes", len(src), limit)
	}
	out, err := base64.StdEncoding.AppendDecode(dst, src)
	if err != nil {
		return dst, codecs.Corruptf("base64", "%w", err)
	}
	return out, nil
}
