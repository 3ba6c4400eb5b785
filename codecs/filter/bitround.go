package filter

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/bits"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// bitround rounds floats to a number of bits of the mantissa, so that the rest
// compresses, and whole numbers to a number of bits from the highest that is
// set. Decoding does nothing.
type bitround struct {
	keep      int
	numcodecs bool
}

func parseBitround(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	f.Require("keepbits")
	b := &bitround{numcodecs: c.V2 || c.Name == "numcodecs.bitround"}
	least := int64(1)
	if b.numcodecs {
		least = 0
	}
	b.keep = int(f.Int("keepbits", 1, least, math.MaxInt32))
	return b, f.Err()
}

func (b *bitround) Config() json.RawMessage { return codecs.Object("keepbits", b.keep) }

func (b *bitround) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	if !in.Array {
		return nil, codecs.Rep{}, codecs.BadField("", "the input bytes have no known type")
	}
	s := &bitroundStage{keep: b.keep, word: in.Type.Size()}
	switch in.Type.Kind() {
	case dtype.Float:
		s.mantissa = mantissa(in.Type, in.Type.Bits())
	case dtype.Complex:
		s.mantissa = mantissa(in.Type, in.Type.Bits()/2)
		s.word /= 2
	case dtype.Int, dtype.Datetime, dtype.Timedelta:
		s.signed = true
	case dtype.Uint:
	default:
		return nil, codecs.Rep{}, codecs.BadField("", "does not round the data type %v", in.Type)
	}
	isFloat := in.Type.Kind() == dtype.Float || in.Type.Kind() == dtype.Complex
	switch {
	case isFloat && s.mantissa == 0:
		return nil, codecs.Rep{}, codecs.BadField("", "does not round the data type %v", in.Type)
	case b.numcodecs && (!isFloat || in.Type.Kind() == dtype.Complex):
		return nil, codecs.Rep{}, codecs.BadField("", "rounds only floats, not %v", in.Type)
	case isFloat && b.keep > s.mantissa:
		if b.numcodecs {
			return nil, codecs.Rep{}, codecs.BadField("keepbits", "%d of the %d bits that there are", b.keep, s.mantissa)
		}
		return nil, in, nil
	}
	out := in
	if len(in.Fill) > 0 {
		out.Fill = append([]byte(nil), in.Fill...)
		s.round(out.Fill)
	}
	return s, out, nil
}

// mantissa returns the bits of the mantissa of a float, 0 for unknown types.
func mantissa(t dtype.Type, n int) int {
	switch {
	case t.Format() == "bfloat16":
		return 7
	case t.Format() != "":
		return 0
	}
	return map[int]int{16: 10, 32: 23, 64: 52}[n]
}

// bitroundStage rounds numbers of word bytes; mantissa is 0 for whole ones.
type bitroundStage struct {
	keep, word, mantissa int
	signed               bool
}

var (
	_ codecs.ViewStage    = (*bitroundStage)(nil)
	_ codecs.InPlaceStage = (*bitroundStage)(nil)
)

// round rounds every number of b.
func (s *bitroundStage) round(b []byte) {
	w := 8 * s.word
	le := binary.LittleEndian
	switch {
	case s.mantissa > 0 && s.word == 4:
		for ; len(b) >= 4; b = b[4:] {
			le.PutUint32(b, uint32(s.roundFloat(uint64(le.Uint32(b)), 32)))
		}
	case s.mantissa > 0 && s.word == 8:
		for ; len(b) >= 8; b = b[8:] {
			le.PutUint64(b, s.roundFloat(le.Uint64(b), 64))
		}
	}
	for ; len(b) >= s.word; b = b[s.word:] {
		var v uint64
		for i := range s.word {
			v |= uint64(b[i]) << (8 * i)
		}
		if s.mantissa > 0 {
			v = s.roundFloat(v, w)
		} else {
			v = s.roundInt(v, w)
		}
		for i := range s.word {
			b[i] = byte(v >> (8 * i))
		}
	}
}

// roundFloat rounds a float of w bits to the nearest, ties to even. Infinities
// and NaNs stay.
func (s *bitroundStage) roundFloat(v uint64, w int) uint64 {
	exponent := uint64(1)<<(w-1-s.mantissa) - 1
	drop := s.mantissa - s.keep
	if drop == 0 || v>>s.mantissa&exponent == exponent {
		return v
	}
	v += v>>drop&1 + 1<<(drop-1) - 1
	return v >> drop << drop
}

// roundInt rounds the magnitude of a whole number of w bits, towards zero where
// the next number would be out of range.
func (s *bitroundStage) roundInt(v uint64, w int) uint64 {
	limit := uint64(1)<<w - 1
	if w == 64 {
		limit = math.MaxUint64
	}
	negative := s.signed && v>>(w-1) != 0
	if s.signed {
		limit >>= 1
	}
	if negative {
		v = -v & (limit<<1 | 1)
		limit++
	}
	if drop := bits.Len64(v) - s.keep; drop > 0 {
		up, carry := bits.Add64(v, v>>drop&1+1<<(drop-1)-1, 0)
		up = up >> drop << drop
		if carry != 0 || up > limit {
			up = v >> drop << drop
		}
		v = up
	}
	if negative {
		v = -v
	}
	return v
}

func (s *bitroundStage) Encode(dst, src []byte) ([]byte, error) {
	n := len(dst)
	dst = append(dst, src...)
	s.round(dst[n:])
	return dst, nil
}

func (s *bitroundStage) Decode(dst, src []byte) ([]byte, error) { return append(dst, src...), nil }

func (s *bitroundStage) DecodeView(src []byte) ([]byte, error) { return src, nil }

func (s *bitroundStage) EncodeInPlace(b []byte) error {
	s.round(b)
	return nil
}

func (s *bitroundStage) DecodeInPlace([]byte) error { return nil }
