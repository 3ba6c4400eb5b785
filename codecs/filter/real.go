package filter

import (
	"encoding/json"
	"math"
	"math/bits"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// realType is a type of real numbers for the codecs of v3 that change values
// only as configured: whole numbers and floats of any width.
type realType struct {
	typ    dtype.Type
	size   int
	whole  bool
	signed bool // whole numbers
	bits   int
	info   dtype.FloatInfo // floats
}

// real is a number: a float64, which represents every float, or a magnitude and
// a sign.
type real struct {
	f        float64 // of floats
	mag      uint64  // of whole numbers
	negative bool
}

func realOf(t dtype.Type) (realType, error) {
	r := realType{typ: t, size: t.Size(), bits: t.Bits()}
	switch t.Kind() {
	case dtype.Int:
		r.whole, r.signed = true, true
	case dtype.Uint:
		r.whole = true
	case dtype.Float:
		r.info = t.FloatInfo()
	default:
		return r, codecs.BadField("", "does not compute with the data type %v", t)
	}
	return r, nil
}

// load reads an element.
func (r *realType) load(p []byte) real {
	v := loadWord(p, r.size)
	if !r.whole {
		return real{f: r.typ.FloatValue(v)}
	}
	if s := int64(v<<(64-8*r.size)) >> (64 - 8*r.size); r.signed && s < 0 {
		return real{mag: uint64(-s), negative: true}
	}
	return real{mag: v}
}

// store writes an element whose value the type represents.
func (r *realType) store(p []byte, v real) {
	switch {
	case !r.whole:
		storeWord(p, r.size, r.typ.FloatBits(v.f))
	case v.negative:
		storeWord(p, r.size, -v.mag)
	default:
		storeWord(p, r.size, v.mag)
	}
}

// roundings are the rules for rounding between two numbers, by name.
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
	unit := max(e-1, r.info.MinExponent) - r.info.Mantissa
	w := math.Ldexp(rule(math.Ldexp(v, -unit)), unit)
	return math.Copysign(w, v)
}

// inRange reports whether v, rounded, is not beyond the least and the largest
// finite number.
func (r *realType) inRange(v float64) bool { return v >= r.info.Min && v <= r.info.Max }

// roundWhole is round for a whole number, which may have more digits than a
// float64. The rule gets 2 bits of the fraction, which show on which side of the
// middle it is.
func (r *realType) roundWhole(v real, rule func(float64) float64) float64 {
	f := func(mag uint64, exp int) float64 {
		x := math.Ldexp(float64(mag), exp)
		if v.negative {
			x = -x
		}
		return x
	}
	drop := bits.Len64(v.mag) - (r.info.Mantissa + 1)
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
	// The rule depends only on parity and sign.
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

// fits reports whether the type represents a whole number.
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
