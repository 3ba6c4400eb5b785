package codecs

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"sync"

	"github.com/pierrec/lz4/v4"
)

// lz4Codec is numcodecs' "lz4": the length as four bytes, little-endian, and
// one LZ4 block.
type lz4Codec struct{ acceleration int }

// maxLZ4 is the largest input of an LZ4 block.
const maxLZ4 = 0x7e000000

func parseLZ4(c Config) (Codec, error) {
	f := c.Fields()
	return &lz4Codec{int(f.Int("acceleration", 1, math.MinInt32, math.MaxInt32))}, f.Err()
}

func (c *lz4Codec) Config() json.RawMessage { return Object("acceleration", c.acceleration) }

func (c *lz4Codec) Bind(in Rep) (Stage, Rep, error) {
	if in.Size > maxLZ4 {
		return nil, Rep{}, BadField("", "%d bytes are more than the %d of a block", in.Size, maxLZ4)
	}
	return &lz4Stage{in: in, acceleration: max(1, c.acceleration)}, in.Grown(), nil
}

type lz4Stage struct {
	in           Rep
	acceleration int
}

// Compressors have tables of 64 KiB.
var lz4Pool = sync.Pool{New: func() any { return new(lz4.CompressorCCompat) }}

func (s *lz4Stage) Encode(dst, src []byte) ([]byte, error) {
	if len(src) > maxLZ4 {
		return dst, BadField("", "%d bytes are more than the %d of a block", len(src), maxLZ4)
	}
	start := len(dst)
	bound := lz4.CompressBlockBound(len(src))
	dst = grow(dst, int64(4+bound))[:start+4+bound]
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(src)))
	if len(src) == 0 {
		dst[start+4] = 0 // a run of no literals
		return dst[:start+5], nil
	}
	c := lz4Pool.Get().(*lz4.CompressorCCompat)
	c.Acceleration = s.acceleration
	n, err := c.CompressBlock(src, dst[start+4:])
	lz4Pool.Put(c)
	return dst[:start+4+n], err
}

func (s *lz4Stage) Decode(dst, src []byte) ([]byte, error) {
	if len(src) < 4 {
		return dst, Corruptf("lz4", "%d bytes have no room for the length", len(src))
	}
	n := int64(binary.LittleEndian.Uint32(src))
	src = src[4:]
	if limit := s.in.Limit(len(src)); n > limit {
		return dst, Corruptf("lz4", "the length is %d, more than %d", n, limit)
	}
	// A byte of a block stands for 255 at most.
	if n > 255*int64(len(src)) {
		return dst, Corruptf("lz4", "%d bytes cannot decode to %d", len(src), n)
	}
	start := len(dst)
	dst = grow(dst, n)[:start+int(n)]
	m, err := lz4.UncompressBlock(src, dst[start:])
	switch {
	case err != nil:
		return dst[:start], Corruptf("lz4", "%w", err)
	case int64(m) != n:
		return dst[:start], Corruptf("lz4", "%d bytes, but the length is %d", m, n)
	}
	return dst, nil
}
