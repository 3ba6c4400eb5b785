package dtype

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// floatFormat describes a binary floating-point format: sign, exponent and
// mantissa bits from the top, all three in that order.
type floatFormat struct {
	name           string // as registered; "" is IEEE 754 of that width
	bits           int    // of the whole
	exp, man, bias int
	special        special
}

// special selects the encodings of a format that are not finite numbers.
type special uint8

const (
	ieee    special = iota // top exponent: infinities and NaNs
	finite                 // none
	oneNaN                 // all ones below the sign is NaN; no infinity
	fnuz                   // the sign alone is NaN; no infinity, no negative zero
	scaling                // no sign, no zero, no subnormals; all ones is NaN
)

// floats lists the formats. The registry of Zarr v3 extensions and ml_dtypes
// define the names.
var floats = []floatFormat{
	{"", 16, 5, 10, 15, ieee},
	{"bfloat16", 16, 8, 7, 127, ieee},
	{"float8_e3m4", 8, 3, 4, 3, ieee},
	{"float8_e4m3", 8, 4, 3, 7, ieee},
	{"float8_e4m3fn", 8, 4, 3, 7, oneNaN},
	{"float8_e4m3b11fnuz", 8, 4, 3, 11, fnuz},
	{"float8_e4m3fnuz", 8, 4, 3, 8, fnuz},
	{"float8_e5m2", 8, 5, 2, 15, ieee},
	{"float8_e5m2fnuz", 8, 5, 2, 16, fnuz},
	{"float8_e8m0fnu", 8, 8, 0, 127, scaling},
	{"float6_e2m3fn", 6, 2, 3, 1, finite},
	{"float6_e3m2fn", 6, 3, 2, 3, finite},
	{"float4_e2m1fn", 4, 2, 1, 1, finite},
	{"", 32, 8, 23, 127, ieee},
	{"", 64, 11, 52, 1023, ieee},
}

// NewNarrowFloat returns a float by its registered name, such as "bfloat16" or
// "float8_e5m2".
func NewNarrowFloat(format string) (Type, error) {
	for _, f := range floats {
		if f.name == format && format != "" {
			t := scalar(Float, f.bits, (f.bits+7)/8)
			t.format = format
			return t, nil
		}
	}
	return Type{}, badType("unknown float format %q", clip(format))
}

// NewNarrowComplex returns the complex number whose parts have the named
// format.
func NewNarrowComplex(format string) (Type, error) {
	part, err := NewNarrowFloat(format)
	if err != nil {
		return Type{}, err
	}
	t := scalar(Complex, 2*part.Bits(), 2*part.size)
	t.format = format
	return t, nil
}

// part returns the type of the real and imaginary part of a Complex.
func (t Type) part() Type {
	p := scalar(Float, t.Bits()/2, t.size/2)
	p.format = t.format
	return p
}

// floatFormat returns the format of a Float.
func (t Type) floatFormat() *floatFormat {
	for i := range floats {
		if f := &floats[i]; f.name == t.format && f.bits == t.Bits() {
			return f
		}
	}
	panic("dtype: no such float: " + t.String())
}

// FloatInfo describes the numbers of a Float.
type FloatInfo struct {
	// Mantissa are the stored bits of the mantissa. MinExponent is the e of the
	// least normal number, written as m × 2^e with 1 ≤ m < 2.
	Mantissa, MinExponent int
	// Max is the largest finite number.
	Max float64
	// Min is the least number: -Max, or the least positive number of a format
	// without sign and zero.
	Min           float64
	NaN, Infinity bool
}

// FloatInfo describes the numbers of t, which must be a Float.
func (t Type) FloatInfo() FloatInfo {
	f := t.floatFormat()
	i := FloatInfo{Mantissa: f.man, MinExponent: 1 - f.bias, Max: f.decode(f.largest())}
	i.Min = -i.Max
	_, i.NaN = f.nan()
	_, i.Infinity = f.inf(1)
	if f.special == scaling {
		i.MinExponent, i.Min = -f.bias, f.decode(0)
	}
	return i
}

// FloatValue returns the number that is encoded in the low bits of b; bits above
// the width of t, which must be a Float, are ignored. NaNs keep their sign and
// payload where the format has any.
func (t Type) FloatValue(b uint64) float64 {
	switch t.bits {
	case 64:
		return math.Float64frombits(b)
	case 32:
		return float64(math.Float32frombits(uint32(b)))
	}
	f := t.floatFormat()
	v := f.decode(b)
	if math.IsNaN(v) && f.special == ieee {
		return math.Float64frombits(b>>(f.bits-1)<<63 | 0x7ff<<52 | b&(1<<f.man-1)<<(52-f.man))
	}
	return v
}

// FloatBits returns the encoding of v in the low bits. t must be a Float that
// represents v exactly. A NaN keeps its sign and the bits of its payload that
// fit.
func (t Type) FloatBits(v float64) uint64 {
	switch t.bits {
	case 64:
		return math.Float64bits(v)
	case 32:
		return uint64(math.Float32bits(float32(v)))
	}
	f := t.floatFormat()
	b, ok := uint64(0), true
	switch {
	case math.IsNaN(v):
		if b, ok = f.nan(); f.special == ieee {
			w := math.Float64bits(v)
			b |= w>>63<<(f.bits-1) | w&(1<<52-1)>>(52-f.man)
		}
	case math.IsInf(v, 0):
		b, ok = f.inf(int(math.Copysign(1, v)))
	default:
		var err error
		b, err = f.encode(v)
		ok = err == nil
	}
	if !ok {
		panic(fmt.Sprintf("dtype: %v has no %v", t, v))
	}
	return b
}

// RoundFloat returns the encoding of the number of t nearest to v, ties to even,
// in the low bits: t must be a Float. ok is false for numbers beyond its largest
// one, and for infinities, NaN, zero and negative numbers in formats without
// them. NaNs are as in FloatBits.
func (t Type) RoundFloat(v float64) (b uint64, ok bool) {
	switch {
	case t.bits == 64:
		return math.Float64bits(v), true
	case t.bits == 32:
		f := float32(v)
		return uint64(math.Float32bits(f)), !math.IsInf(float64(f), 0) || math.IsInf(v, 0)
	}
	f := t.floatFormat()
	switch {
	case math.IsNaN(v):
		if _, ok := f.nan(); !ok {
			return 0, false
		}
		return t.FloatBits(v), true
	case math.IsInf(v, 0):
		return f.inf(int(math.Copysign(1, v)))
	}
	b, err := f.encode(v)
	return b, err == nil
}

// largest returns the encoding of the largest finite number.
func (f *floatFormat) largest() uint64 {
	switch f.special {
	case ieee:
		return (1<<f.exp-1)<<f.man - 1
	case oneNaN:
		return f.maxMagnitude() - 1
	case scaling:
		return 0xfe
	}
	return f.maxMagnitude()
}

// decode returns the value of the encoded number.
func (f *floatFormat) decode(b uint64) float64 {
	if f.special == scaling {
		if b == 0xff {
			return math.NaN()
		}
		return math.Ldexp(1, int(b)-f.bias)
	}
	sign := b>>(f.bits-1)&1 != 0
	mag := b & f.maxMagnitude()
	exp, man := int(mag>>f.man), mag&(1<<f.man-1)
	switch {
	case f.special == fnuz && sign && mag == 0,
		f.special == oneNaN && mag == f.maxMagnitude():
		return math.NaN()
	case f.special == ieee && exp == 1<<f.exp-1 && man != 0:
		return math.NaN()
	}
	var v float64
	switch {
	case f.special == ieee && exp == 1<<f.exp-1:
		v = math.Inf(1)
	case exp == 0:
		v = math.Ldexp(float64(man), 1-f.bias-f.man)
	default:
		v = math.Ldexp(float64(man|1<<f.man), exp-f.bias-f.man)
	}
	if sign {
		v = -v
	}
	return v
}

func (f *floatFormat) maxMagnitude() uint64 { return 1<<(f.bits-1) - 1 }

var errRange = errors.New("out of range")

// encode rounds v, which is finite, to the nearest number of the format, ties
// to even. v must have been rounded to odd if it is not exact itself, see
// parseOdd: then the result is as if rounded once.
func (f *floatFormat) encode(v float64) (uint64, error) {
	neg := math.Signbit(v)
	v = math.Abs(v)
	if v == 0 && f.special != scaling {
		return f.signed(0, neg), nil
	}
	_, e := math.Frexp(v)
	e-- // so that v = m × 2^e with 1 ≤ m < 2
	if f.special == scaling {
		q := math.RoundToEven(math.Ldexp(v, -e)) // 1 or 2
		b := int64(e+f.bias) + int64(q) - 1
		if v == 0 || neg || b < 0 || b >= 0xff {
			return 0, errRange
		}
		return uint64(b), nil
	}
	lowest := 1 - f.bias // exponent of the subnormals and of the smallest normals
	exp := max(e, lowest)
	q := uint64(math.RoundToEven(math.Ldexp(v, f.man-exp)))
	// A normal q has its top bit at f.man, where it counts one in the exponent
	// field; a subnormal one has not. Carries go where they belong.
	b := uint64(exp-lowest)<<f.man + q
	if b > f.largest() {
		return 0, errRange
	}
	return f.signed(b, neg), nil
}

// signed puts the sign before a magnitude, where a zero may have one.
func (f *floatFormat) signed(b uint64, neg bool) uint64 {
	if neg && (b != 0 || f.special != fnuz) {
		b |= 1 << (f.bits - 1)
	}
	return b
}

// inf returns the encoding of an infinity.
func (f *floatFormat) inf(sign int) (uint64, bool) {
	if f.special != ieee {
		return 0, false
	}
	b := uint64(1<<f.exp-1) << f.man
	if sign < 0 {
		b |= 1 << (f.bits - 1)
	}
	return b, true
}

// nan returns the encoding of "NaN": positive and quiet.
func (f *floatFormat) nan() (uint64, bool) {
	switch f.special {
	case ieee:
		return uint64(1<<f.exp-1)<<f.man | 1<<(f.man-1), true
	case oneNaN:
		return f.maxMagnitude(), true
	case fnuz:
		return 1 << (f.bits - 1), true
	case scaling:
		return 0xff, true
	}
	return 0, false
}

// maxLiteral bounds the text of a number that has to be compared exactly.
const maxLiteral = 1100

// parseOdd parses a decimal number to a float64 rounded to odd: a number that
// lies between two float64 becomes the one whose last bit is set. Rounding that
// again to at most 51 bits is the same as rounding the decimal number once,
// where rounding to nearest twice is not.
func parseOdd(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, errRange
	}
	if v == 0 {
		return v, nil // or a number far below every narrow format
	}
	if len(s) > maxLiteral {
		return 0, errors.New("number of too many digits")
	}
	// v is finite and not zero, so the exponent of s is at most about its
	// length plus 400, and the exact value is small enough to build.
	exact, ok := new(big.Rat).SetString(s)
	if !ok {
		return 0, errors.New("not a number")
	}
	switch c := exact.Cmp(new(big.Rat).SetFloat64(v)); {
	case c == 0 || math.Float64bits(v)&1 == 1:
		return v, nil
	case (c > 0) == (v > 0):
		return math.Float64frombits(math.Float64bits(v) + 1), nil
	default:
		return math.Float64frombits(math.Float64bits(v) - 1), nil
	}
}
