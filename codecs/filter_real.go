package codecs

import (
	"encoding/json"
	"math"
	"math/bits"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// realType is a type of real numbers for the codecs of v3 that may not lose a
// value without being told so: whole numbers of any width, and floats that are
// built like IEEE 754.
type realType struct {
	typ    dtype.Type
	size   int
	whole  bool
	signed bool // whole numbers
	bits   int
	// Floats: bits of the mantissa, and the exponents of the least and the
	// largest normal number.
	man, least, most int
}

// real is a number: a float64, which can say every float, or a magnitude and a
// sign.
type real struct {
	f        float64 // of floats
	mag      uint64  // of whole numbers
	negative bool
}

func realOf(t dtype.Type) (realType, error) {
	r := realType{typ: t, size: t.Size(), bits: t.Bits()}
	float := func(exponent, mantissa int) {
		bias := 1<<(exponent-1) - 1
		r.man, r.least, r.most = mantissa, 1-bias, bias
	}
	switch name := t.Format(); {
	case t.Kind() == dtype.Int:
		r.whole, r.signed = true, true
		return r, nil
	case t.Kind() == dtype.Uint:
		r.whole = true
		return r, nil
	case t.Kind() != dtype.Float:
	case name == "bfloat16":
		float(8, 7)
		return r, nil
	case name == "float8_e5m2":
		float(5, 2)
		return r, nil
	case name == "float8_e4m3":
		float(4, 3)
		return r, nil
	case name == "float8_e3m4":
		float(3, 4)
		return r, nil
	case name == "" && t.Bits() == 16:
		float(5, 10)
		return r, nil
	case name == "" && t.Bits() == 32:
		float(8, 23)
		return r, nil
	case name == "" && t.Bits() == 64:
		float(11, 52)
		return r, nil
	}
	return r, BadField("", "does not compute with the data type %v", t)
}

// load reads an element.
func (r *realType) load(p []byte) real {
	v := loadWord(p, r.size)
	if !r.whole {
		return real{f: r.value(v)}
	}
	if s := int64(v<<(64-8*r.size)) >> (64 - 8*r.size); r.signed && s < 0 {
		return real{mag: uint64(-s), negative: true}
	}
	return real{mag: v}
}

// store writes an element whose value the type can say.
func (r *realType) store(p []byte, v real) {
	switch {
	case !r.whole:
		storeWord(p, r.size, r.code(v.f))
	case v.negative:
		storeWord(p, r.size, -v.mag)
	default:
		storeWord(p, r.size, v.mag)
	}
}

// value returns the float that is encoded as b.
func (r *realType) value(b uint64) float64 {
	switch r.bits {
	case 32:
		return float64(math.Float32frombits(uint32(b)))
	case 64:
		return math.Float64frombits(b)
	}
	exp, man := int(b>>r.man&(1<<(r.bits-1-r.man)-1)), b&(1<<r.man-1)
	var v float64
	switch {
	case exp == r.most-r.least+2 && man != 0:
		return math.Float64frombits(b>>(r.bits-1)<<63 | 0x7ff<<52 | man<<(52-r.man))
	case exp == r.most-r.least+2:
		v = math.Inf(1)
	case exp == 0:
		v = math.Ldexp(float64(man), r.least-r.man)
	default:
		v = math.Ldexp(float64(man|1<<r.man), exp-1+r.least-r.man)
	}
	if b>>(r.bits-1)&1 != 0 {
		v = -v
	}
	return v
}

// code returns the encoding of a float that the type can say.
func (r *realType) code(v float64) uint64 {
	switch r.bits {
	case 32:
		return uint64(math.Float32bits(float32(v)))
	case 64:
		return math.Float64bits(v)
	}
	b := math.Float64bits(v)
	sign := b >> 63 << (r.bits - 1)
	top := uint64(r.most-r.least+2) << r.man
	switch v = math.Abs(v); {
	case math.IsNaN(v):
		return sign | top | 1<<(r.man-1) | b&(1<<52-1)>>(52-r.man)
	case math.IsInf(v, 0):
		return sign | top
	case v == 0:
		return sign
	}
	_, e := math.Frexp(v)
	exp := max(e-1, r.least)
	// A normal mantissa has its leading one at r.man, where it adds one to the
	// exponent field.
	return sign | uint64(exp-r.least)<<r.man + uint64(math.Ldexp(v, r.man-exp))
}

// roundings are the rules for what lies between two numbers, by name.
var roundings = map[string]func(float64) float64{
	"nearest-even":     math.RoundToEven,
	"nearest-away":     math.Round,
	"towards-zero":     math.Trunc,
	"towards-positive": math.Ceil,
	"towards-negative": math.Floor,
}

// round returns v rounded to the precision of the type, as if it had no largest
// number.
func (r *realType) round(v float64, rule func(float64) float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) || r.bits == 64 {
		return v
	}
	_, e := math.Frexp(v)
	unit := max(e-1, r.least) - r.man
	w := math.Ldexp(rule(math.Ldexp(v, -unit)), unit)
	return math.Copysign(w, v)
}

// finite reports whether v, rounded, is not beyond the largest number.
func (r *realType) finite(v float64) bool {
	_, e := math.Frexp(v)
	return e-1 <= r.most && !math.IsInf(v, 0)
}

// roundWhole is round for a whole number, which may have more digits than a
// float64. The rule is asked about 2 bits, so that it sees on which side of the
// middle the rest is.
func (r *realType) roundWhole(v real, rule func(float64) float64) float64 {
	f := func(mag uint64, exp int) float64 {
		x := math.Ldexp(float64(mag), exp)
		if v.negative {
			x = -x
		}
		return x
	}
	drop := bits.Len64(v.mag) - (r.man + 1)
	if drop <= 0 {
		return f(v.mag, 0)
	}
	// The last digit that stays, the next one, and whether more follow.
	kept := v.mag >> drop
	rest := v.mag & (1<<drop - 1)
	half := uint64(1) << (drop - 1)
	quarter := 0.0
	switch {
	case rest > half:
		quarter = 0.75
	case rest == half:
		quarter = 0.5
	case rest > 0:
		quarter = 0.25
	}
	// Even or odd, and the sign, are all that the rule needs to know.
	x := float64(kept&1) + 2 + quarter
	if v.negative {
		x = -x
	}
	up := uint64(math.Abs(rule(x))) - (kept&1 + 2)
	return f(kept+up, drop)
}

// limits returns the least and the largest whole number as magnitudes.
func (r *realType) limits() (least, most uint64) {
	if r.signed {
		return 1 << (r.bits - 1), 1<<(r.bits-1) - 1
	}
	return 0, ^uint64(0) >> (64 - r.bits)
}

// fits reports whether the type can say a whole number.
func (r *realType) fits(v real) bool {
	least, most := r.limits()
	if v.negative {
		return v.mag <= least
	}
	return v.mag <= most
}

// wrap returns the number of the type that is equal modulo 2^bits.
func (r *realType) wrap(v real) real {
	u := v.mag
	if v.negative {
		u = -u
	}
	if s := int64(u<<(64-r.bits)) >> (64 - r.bits); r.signed && s < 0 {
		return real{mag: uint64(-s), negative: true}
	}
	if r.signed {
		return real{mag: u << (64 - r.bits) >> (64 - r.bits)}
	}
	return real{mag: u & (^uint64(0) >> (64 - r.bits))}
}

// parse reads a number of the configuration, in the form of a fill value.
func (r *realType) parse(raw json.RawMessage) (real, error) {
	if string(raw) == `"+Infinity"` {
		raw = json.RawMessage(`"Infinity"`)
	}
	b, err := r.typ.ParseFillV3(raw)
	if err != nil {
		return real{}, err
	}
	return r.load(b), nil
}

// same reports whether two numbers of the type are equal, NaN to itself too.
func (r *realType) same(a, b real) bool {
	if r.whole {
		return a == b || a.mag == 0 && b.mag == 0
	}
	return a.f == b.f || math.IsNaN(a.f) && math.IsNaN(b.f)
}
