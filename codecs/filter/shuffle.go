package filter

import (
	"math"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/codecs/kernels"
)

func parseShuffle(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	size := int(f.Int("elementsize", 4, math.MinInt32, math.MaxInt32))
	return codecs.NewCodec(codecs.Object("elementsize", size), func(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
		if size <= 1 {
			return nil, in, nil
		}
		out := in
		out.ItemSize = 1
		return &shuffleStage{size}, out, nil
	}), f.Err()
}

// shuffleStage is numcodecs' "shuffle": the first bytes of all elements, then
// the second ones, and so on. Bytes after the last element stay behind, as in HDF5: a
// checksum may come before.
type shuffleStage struct{ size int }

func (s *shuffleStage) Encode(dst, src []byte) ([]byte, error) {
	return s.run(dst, src, kernels.Shuffle)
}

func (s *shuffleStage) Decode(dst, src []byte) ([]byte, error) {
	return s.run(dst, src, kernels.Unshuffle)
}

func (s *shuffleStage) run(dst, src []byte, kernel func(dst, src []byte, size int)) ([]byte, error) {
	start, whole := len(dst), len(src)-len(src)%s.size
	dst = scratch.Grow(dst, int64(len(src)))[:start+len(src)]
	kernel(dst[start:start+whole], src[:whole], s.size)
	copy(dst[start+whole:], src[whole:])
	return dst, nil
}
