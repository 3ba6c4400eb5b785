package codecs

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/codecs/lz4"
)

func parseLZ4(c Config) (Codec, error) {
	f := c.Fields()
	acceleration := int(f.Int("acceleration", 1, math.MinInt32, math.MaxInt32))
	return NewCodec(Object("acceleration", acceleration), func(in Rep) (Stage, Rep, error) {
		if in.Size > lz4.MaxBytes {
			return nil, Rep{}, BadField("", "%d bytes are more than the %d of a block", in.Size, lz4.MaxBytes)
		}
		return &lz4Stage{in: in, acceleration: max(1, acceleration)}, in.Grown(), nil
	}), f.Err()
}

// lz4Stage is numcodecs' "lz4": the length as four bytes, little-endian, and
// one LZ4 block.
type lz4Stage struct {
	in           Rep
	acceleration int
}

// Encoders have tables of 32 KiB.
var lz4Pool = sync.Pool{New: func() any { return new(lz4.Encoder) }}

func (s *lz4Stage) Encode(dst, src []byte) ([]byte, error) {
	if len(src) > lz4.MaxBytes {
		return dst, BadField("", "%d bytes are more than the %d of a block", len(src), lz4.MaxBytes)
	}
	dst = scratch.Grow(dst, int64(4+lz4.Bound(len(src))))
	return appendLZ4(binary.LittleEndian.AppendUint32(dst, uint32(len(src))), src, s.acceleration), nil
}

// OpenStream implements streamStage.
func (s *lz4Stage) OpenStream(src io.Reader) (io.ReadCloser, error) {
	var head [4]byte
	if _, err := io.ReadFull(src, head[:]); err != nil {
		return nil, err
	}
	if n := int64(binary.LittleEndian.Uint32(head[:])); n != s.in.Size {
		return nil, fmt.Errorf("the length is %d, not %d", n, s.in.Size)
	}
	return io.NopCloser(lz4.NewReader(src)), nil
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
	// A byte of a block decodes to at most 255.
	if n > 255*int64(len(src)) {
		return dst, Corruptf("lz4", "%d bytes cannot decode to %d", len(src), n)
	}
	start := len(dst)
	dst = scratch.Grow(dst, n)[:start+int(n)]
	if err := decodeLZ4("lz4", dst[start:], src); err != nil {
		return dst[:start], err
	}
	return dst, nil
}

// appendLZ4 appends a block as LZ4.
func appendLZ4(dst, src []byte, acceleration int) []byte {
	start, bound := len(dst), lz4.Bound(len(src))
	dst = scratch.Grow(dst, int64(bound))[:start+bound]
	e := lz4Pool.Get().(*lz4.Encoder)
	n := e.Encode(dst[start:], src, acceleration)
	lz4Pool.Put(e)
	return dst[:start+n]
}

// decodeLZ4 fills dst with an LZ4 block.
func decodeLZ4(codec string, dst, src []byte) error {
	n, err := lz4.Decode(dst, src)
	switch {
	case err != nil:
		return Corruptf(codec, "%w", err)
	case n != len(dst):
		return Corruptf(codec, "%d bytes, but the length is %d", n, len(dst))
	}
	return nil
}
