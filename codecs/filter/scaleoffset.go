package filter

import (
	"encoding/json"
	"errors"
	"math"
	"math/bits"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/internal/value"
)

// scaleOffset is the registered v3 codec "scale_offset": (x - offset) · scale,
// computed in the data type of the array. A result that the type cannot
// represent is an error.
type scaleOffset struct {
	config        json.RawMessage
	offset, scale json.RawMessage // nil: 0 and 1
}

func parseScaleOffset(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	s := &scaleOffset{offset: f.Raw("offset"), scale: f.Raw("scale")}
	var members []any
	if s.offset != nil {
		members = append(members, "offset", s.offset)
	}
	if s.scale != nil {
		members = append(members, "scale", s.scale)
	}
	if members != nil {
		s.config = codecs.Object(members...)
	}
	return s, f.Err()
}

func (s *scaleOffset) Config() json.RawMessage { return s.config }

func (s *scaleOffset) Bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	t, err := realOf(in.Type)
	if err != nil {
		return nil, codecs.Rep{}, err
	}
	if s.config == nil {
		return nil, in, nil
	}
	op := &scaleOp{t: t, scale: real{f: 1, mag: 1}}
	if s.offset != nil {
		if op.offset, err = t.parse(s.offset); err != nil {
			return nil, codecs.Rep{}, codecs.BadField("offset", "%w", err)
		}
	}
	if s.scale != nil {
		if op.scale, err = t.parse(s.scale); err != nil {
			return nil, codecs.Rep{}, codecs.BadField("scale", "%w", err)
		}
	}
	odd := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	if odd(op.scale.f) || t.whole && op.scale.mag == 0 || !t.whole && op.scale.f == 0 {
		return nil, codecs.Rep{}, codecs.BadField("scale", "%s cannot be undone", value.Clip(s.scale))
	}
	if odd(op.offset.f) {
		return nil, codecs.Rep{}, codecs.BadField("offset", "%s cannot be undone", value.Clip(s.offset))
	}
	op.blocks = newBlockScale(op)
	return bindElements("scale_offset", in, in.Type, in.Type, op)
}

// scaleOp computes with numbers of type t.
type scaleOp struct {
	t             realType
	offset, scale real
	blocks        *blockScale // or nil
}

func (o *scaleOp) encode(dst, src []byte) error {
	err := o.each(dst, src, false, func(v real) (real, bool) {
		v, ok := o.add(v, negate(o.offset))
		if !ok {
			return v, false
		}
		return o.multiply(v, o.scale)
	})
	if err != nil {
		return codecs.BadField("", "%w", err)
	}
	return nil
}

func (o *scaleOp) decode(dst, src []byte) error {
	err := o.each(dst, src, true, func(v real) (real, bool) {
		v, ok := o.divide(v, o.scale)
		if !ok {
			return v, false
		}
		return o.add(v, o.offset)
	})
	if err != nil {
		return codecs.Corruptf("scale_offset", "%w", err)
	}
	return nil
}

func (o *scaleOp) each(dst, src []byte, decode bool, fn func(real) (real, bool)) error {
	size := o.t.size
	for len(src) > 0 {
		n := min(len(src)/size, numberBlock)
		if o.blocks == nil || !o.blocks.run(dst, src, n, decode) {
			for i := 0; i < n*size; i += size {
				v, ok := fn(o.t.load(src[i:]))
				if !ok {
					return errors.New("a result that the data type cannot represent")
				}
				o.t.store(dst[i:], v)
			}
		}
		dst, src = dst[n*size:], src[n*size:]
	}
	return nil
}

func negate(v real) real { return real{f: -v.f, mag: v.mag, negative: !v.negative} }

// float rounds a result, and reports whether it overflowed: x and y are the
// operands.
func (o *scaleOp) float(v, x, y float64) (real, bool) {
	v = o.t.round(v, math.RoundToEven)
	if math.IsInf(x, 0) || math.IsInf(y, 0) || math.IsNaN(v) {
		return real{f: v}, true
	}
	return real{f: v}, o.t.inRange(v)
}

func (o *scaleOp) add(x, y real) (real, bool) {
	if !o.t.whole {
		return o.float(x.f+y.f, x.f, y.f)
	}
	if x.negative == y.negative {
		sum, carry := bits.Add64(x.mag, y.mag, 0)
		v := real{mag: sum, negative: x.negative && sum != 0}
		return v, carry == 0 && o.t.fits(v)
	}
	if x.mag < y.mag {
		x, y = y, x
	}
	v := real{mag: x.mag - y.mag, negative: x.negative && x.mag != y.mag}
	return v, o.t.fits(v)
}

func (o *scaleOp) multiply(x, y real) (real, bool) {
	if !o.t.whole {
		return o.float(x.f*y.f, x.f, y.f)
	}
	hi, lo := bits.Mul64(x.mag, y.mag)
	v := real{mag: lo, negative: x.negative != y.negative && lo != 0}
	return v, hi == 0 && o.t.fits(v)
}

// divide divides; whole numbers only without a rest.
func (o *scaleOp) divide(x, y real) (real, bool) {
	if !o.t.whole {
		return o.float(x.f/y.f, x.f, y.f)
	}
	v := real{mag: x.mag / y.mag, negative: x.negative != y.negative && x.mag != 0}
	return v, x.mag%y.mag == 0 && o.t.fits(v)
}
