package filter

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// fixedScaleOffset is numcodecs' "fixedscaleoffset": (x - offset) · scale,
// rounded to a whole number and stored as astype. Computed is as numpy does it,
// which depends on whether the numbers are written as whole ones.
type fixedScaleOffset struct {
	offset, scale operand
	dtype, astype dtype.Type
	from, to      number
}

// operand is a number of the configuration.
type operand struct {
	raw   json.RawMessage
	whole bool // written as a whole number
	i     int64
	f     float64
}

func readOperand(f *codecs.Fields, name string) operand {
	f.Require(name)
	o := operand{raw: f.Raw(name), f: f.Float(name, 0)}
	if !strings.ContainsAny(string(o.raw), ".eE") {
		o.whole = json.Unmarshal(o.raw, &o.i) == nil
	}
	return o
}

func parseFixedScaleOffset(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	f.Require("dtype")
	s := &fixedScaleOffset{offset: readOperand(f, "offset"), scale: readOperand(f, "scale")}
	s.dtype, s.from = numpyType(f, "dtype", dtype.Type{})
	s.astype, s.to = numpyType(f, "astype", s.dtype)
	if s.scale.f == 0 {
		f.Fail("scale", "0 cannot be undone")
	}
	return s, f.Err()
}

func (s *fixedScaleOffset) Config() json.RawMessage {
	return codecs.Object("scale", s.scale.raw, "offset", s.offset.raw, "dtype", printNumpy(s.dtype), "astype", printNumpy(s.astype))
}

func (s *fixedScaleOffset) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	return bindElements("fixedscaleoffset", in, s.dtype, s.astype, s)
}

func (s *fixedScaleOffset) encode(dst, src []byte) error {
	k := s.from
	offset, scale := k.round(s.offset.f), k.round(s.scale.f)
	switch {
	case !k.isFloat() && s.offset.whole && s.scale.whole:
		eachInts(dst, src, s.to, k, func(block []int64) {
			for i, v := range block {
				block[i] = k.wrap((v - s.offset.i) * s.scale.i)
			}
		})
	case !k.isFloat() && s.offset.whole:
		var ints intBlock
		var floats floatBlock
		for len(src) > 0 {
			n := min(len(src)/k.size(), numberBlock)
			k.loadInts(ints[:n], src)
			for i, v := range ints[:n] {
				floats[i] = math.RoundToEven(float64(k.wrap(v-s.offset.i)) * scale)
			}
			s.to.storeFloats(dst, floats[:n])
			dst, src = dst[n*s.to.size():], src[n*k.size():]
		}
	default:
		eachFloats(dst, src, s.to, k, func(block []float64) {
			for i, v := range block {
				block[i] = math.RoundToEven(k.round(k.round(v-offset) * scale))
			}
		})
	}
	return nil
}

func (s *fixedScaleOffset) decode(dst, src []byte) error {
	k := s.to
	offset, scale := k.round(s.offset.f), k.round(s.scale.f)
	eachFloats(dst, src, s.from, k, func(block []float64) {
		for i, v := range block {
			block[i] = k.round(k.round(v/scale) + offset)
		}
	})
	return nil
}
