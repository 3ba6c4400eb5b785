package filter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// castValue is the registered v3 codec "cast_value": the same numbers in another
// data type. A number that the type cannot represent is rounded, clamped,
// wrapped or mapped, depending on the configuration, or else an error.
type castValue struct {
	typ        dtype.Type
	rounding   string
	outOfRange string
	encode     [][2]json.RawMessage
	decode     [][2]json.RawMessage
}

func parseCastValue(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	f.Require("data_type")
	x := &castValue{}
	if raw := f.Raw("data_type"); raw != nil {
		var err error
		if x.typ, err = dtype.ParseV3(raw); err != nil {
			f.Fail("data_type", "%w", err)
		} else if _, err := realOf(x.typ); err != nil {
			f.Fail("data_type", "%v is not a type of numbers that is supported", x.typ)
		}
	}
	names := []string{"nearest-even", "nearest-away", "towards-zero", "towards-positive", "towards-negative"}
	x.rounding = f.Enum("rounding", names[0], names...)
	x.outOfRange = f.Enum("out_of_range", "", "clamp", "wrap")
	var scalars struct {
		Encode [][2]json.RawMessage `json:"encode"`
		Decode [][2]json.RawMessage `json:"decode"`
	}
	if raw := f.Raw("scalar_map"); raw != nil {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if raw[0] != '{' || d.Decode(&scalars) != nil {
			f.Fail("scalar_map", "not an object of pairs in encode and decode")
		}
	}
	x.encode, x.decode = scalars.Encode, scalars.Decode
	return codecs.NewCodec(bytes.Clone(c.Raw), x.bind), f.Err()
}

func (c *castValue) bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	from, err := realOf(in.Type)
	if err != nil {
		return nil, codecs.Rep{}, err
	}
	to, err := realOf(c.typ)
	if err != nil {
		return nil, codecs.Rep{}, err
	}
	op := &castOp{forth: caster{from: from, to: to}, back: caster{from: to, to: from}}
	for _, k := range []struct {
		*caster
		pairs [][2]json.RawMessage
	}{{&op.forth, c.encode}, {&op.back, c.decode}} {
		k.rule, k.rounding, k.outOfRange = roundings[c.rounding], c.rounding, c.outOfRange
		if k.outOfRange == "wrap" && !k.to.whole {
			if k.caster == &op.forth {
				return nil, codecs.Rep{}, codecs.BadField("out_of_range", "floats do not wrap")
			}
			k.outOfRange = ""
		}
		if err := k.setPairs(k.pairs); err != nil {
			return nil, codecs.Rep{}, err
		}
		k.blocks = newBlockCast(k.caster)
	}
	st, out, err := bindElements("cast_value", in, in.Type, c.typ, op)
	if err != nil {
		return nil, codecs.Rep{}, err
	}
	// A fill value that does not come back is refused.
	fill := append(bytes.Clone(in.Fill), make([]byte, from.size-len(in.Fill))...)
	back := make([]byte, from.size)
	if err := op.decode(back, out.Fill); err != nil || !from.same(from.load(fill), from.load(back)) {
		return nil, codecs.Rep{}, codecs.BadField("", "the fill value does not come back (%v)", err)
	}
	return st, out, nil
}

// castOp casts in both directions.
type castOp struct{ forth, back caster }

func (o *castOp) encode(dst, src []byte) error {
	if err := o.forth.cast(dst, src); err != nil {
		return codecs.BadField("", "%w", err)
	}
	return nil
}

func (o *castOp) decode(dst, src []byte) error {
	if err := o.back.cast(dst, src); err != nil {
		return codecs.Corruptf("cast_value", "%w", err)
	}
	return nil
}

// caster casts in one direction.
type caster struct {
	from, to   realType
	rounding   string // the name of rule
	rule       func(float64) float64
	outOfRange string
	blocks     *blockCast    // or nil
	scalars    map[real]real // NaN has the key nan
	nan        *real
}

func (c *caster) setPairs(pairs [][2]json.RawMessage) error {
	c.scalars = make(map[real]real)
	for i, p := range pairs {
		key, err := c.from.parse(p[0])
		if err != nil {
			return codecs.BadField("scalar_map", "pair %d: %w", i, err)
		}
		value, err := c.to.parse(p[1])
		if err != nil {
			return codecs.BadField("scalar_map", "pair %d: %w", i, err)
		}
		if math.IsNaN(key.f) {
			if c.nan == nil {
				c.nan = &value
			}
		} else if _, ok := c.scalars[key]; !ok {
			c.scalars[key] = value
		}
	}
	return nil
}

func (c *caster) cast(dst, src []byte) error {
	for i := 0; len(src) > 0; {
		n := min(len(src)/c.from.size, numberBlock)
		if c.blocks == nil || !c.blocks.cast(dst, src, n) {
			for j := range n {
				v, err := c.one(c.from.load(src[j*c.from.size:]))
				if err != nil {
					return fmt.Errorf("element %d: %w", i+j, err)
				}
				c.to.store(dst[j*c.to.size:], v)
			}
		}
		i, dst, src = i+n, dst[n*c.to.size:], src[n*c.from.size:]
	}
	return nil
}

// one casts a number: mapped if it is in the map, exactly if that is possible,
// else rounded and then brought into range.
func (c *caster) one(v real) (real, error) {
	if math.IsNaN(v.f) {
		switch {
		case c.nan != nil:
			return *c.nan, nil
		case c.to.whole || !c.to.info.NaN:
			return real{}, fmt.Errorf("NaN is no %v", c.to.typ)
		}
		return v, nil
	}
	if len(c.scalars) > 0 {
		if w, ok := c.scalars[v]; ok {
			return w, nil
		}
	}
	if c.to.whole {
		return c.toWhole(v)
	}
	return c.toFloat(v)
}

func (c *caster) toWhole(v real) (real, error) {
	if !c.from.whole {
		if math.IsInf(v.f, 0) {
			return real{}, fmt.Errorf("%v is no %v", v.f, c.to.typ)
		}
		f := c.rule(v.f)
		if math.Abs(f) >= 1<<64 {
			if c.outOfRange == "wrap" {
				// Multiples of a power of two; the remainder is exact.
				return c.to.wrap(real{mag: uint64(math.Abs(math.Mod(f, 1<<64))), negative: f < 0}), nil
			}
			return c.beyond(real{mag: math.MaxUint64, negative: f < 0}, v)
		}
		w := real{mag: uint64(math.Abs(f)), negative: f < 0}
		if c.to.fits(w) {
			return w, nil
		}
		return c.beyond(w, v)
	}
	if c.to.fits(v) {
		return v, nil
	}
	return c.beyond(v, v)
}

// beyond brings w, made of v, into the range of whole numbers.
func (c *caster) beyond(w, v real) (real, error) {
	switch c.outOfRange {
	case "wrap":
		return c.to.wrap(w), nil
	case "clamp":
		least, most := c.to.limits()
		if w.negative {
			return real{mag: least, negative: least != 0}, nil
		}
		return real{mag: most}, nil
	}
	return real{}, c.rangeError(v)
}

func (c *caster) rangeError(v real) error {
	switch {
	case !c.from.whole:
		return fmt.Errorf("%v is out of the range of %v", v.f, c.to.typ)
	case v.negative:
		return fmt.Errorf("-%d is out of the range of %v", v.mag, c.to.typ)
	}
	return fmt.Errorf("%d is out of the range of %v", v.mag, c.to.typ)
}

func (c *caster) toFloat(v real) (real, error) {
	var f float64
	switch {
	case c.from.whole:
		f = c.to.roundWhole(v, c.rule)
	case !math.IsInf(v.f, 0):
		f = c.to.round(v.f, c.rule)
	case c.to.info.Infinity:
		return v, nil
	default:
		// Clamping applies to numbers; only the map can convert infinity.
		return real{}, fmt.Errorf("%v is no %v", v.f, c.to.typ)
	}
	switch info := &c.to.info; {
	case c.to.inRange(f):
		return real{f: f}, nil
	case c.outOfRange != "clamp":
		return real{}, c.rangeError(v)
	case info.Infinity:
		return real{f: math.Inf(int(math.Copysign(1, f)))}, nil
	case f > info.Max:
		return real{f: info.Max}, nil
	default:
		return real{f: info.Min}, nil
	}
}
