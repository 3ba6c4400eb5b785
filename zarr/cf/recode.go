package cf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/zarrdb/zarrdb/zarr"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// ErrInexact means that an element has no exact counterpart in another array.
var ErrInexact = errors.New("cf: no exact value")

// InexactError is the ErrInexact of an element.
type InexactError struct {
	// Reason names the element and both types, and says why.
	Reason string
}

func (e *InexactError) Error() string { return ErrInexact.Error() + ": " + e.Reason }

func (e *InexactError) Unwrap() error { return ErrInexact }

// Recoder converts stored elements of one array into stored elements of another that
// mean the same: counts of times since another moment or in another unit, numbers and
// texts of another type, missing values that are spelled otherwise. It never rounds.
// Safe for concurrent use.
type Recoder struct {
	from, to *Decoder
	in, out  dtype.Type
	numbers  bool
	missing  []byte   // the element of the other array that means a missing value; nil without one
	offset   *big.Int // from the other array's moment to this one's, in nanoseconds
	mixed    bool     // one calendar is standard, one proleptic_gregorian
	// factor and shift convert whole counts, if factor is not 0.
	factor, shift int64
}

// NewRecoder compares the types, fill values and attributes of two arrays. It is nil if
// elements of from are elements of to already. The attributes scale_factor, add_offset and
// _Unsigned must be equal, and so must units and calendar if they are not [SameTimes].
// Errors: [ErrAttribute], and errors.ErrUnsupported for types that cannot be converted.
func NewRecoder(from, to *zarr.Meta) (*Recoder, error) {
	r := &Recoder{in: from.Type, out: to.Type}
	r.numbers = isNumber(r.in) && isNumber(r.out)
	sameType := r.in.WithOrder(dtype.None).Equal(r.out.WithOrder(dtype.None))
	if !r.numbers {
		text := r.in.Kind() == r.out.Kind() && (r.in.Kind() == dtype.FixedUTF32 || r.in.Kind() == dtype.FixedBytes)
		switch masks := from.Version != zarr.V3 && !bytes.Equal(bytes.TrimRight(from.Fill, "\x00"), bytes.TrimRight(to.Fill, "\x00")); {
		case !sameType && !text:
			return nil, fmt.Errorf("from %v to %v: %w", r.in, r.out, errors.ErrUnsupported)
		case masks || !text && from.Version != zarr.V3 && from.NullFill != to.NullFill:
			return nil, fmt.Errorf("fill values of %v: %w", r.in, errors.ErrUnsupported)
		case sameType && bytes.Equal(from.Fill, to.Fill) && from.NullFill == to.NullFill:
			return nil, nil
		}
		return r, nil
	}
	var err error
	if r.from, err = NewDecoder(from); err == nil {
		r.to, err = NewDecoder(to)
	}
	if err != nil {
		return nil, err
	}
	if elem, ok := MissingElement(to); ok {
		r.missing = elem
	} else if FillIsMissing(to) {
		r.missing = to.Fill
	}
	times := r.from.time != nil && r.to.time != nil
	if times {
		r.setTimes()
	}
	same := slices.Equal(r.from.missing, r.to.missing)
	if sameType && same && (!times || r.factor == 1 && r.shift == 0 && !r.mixed) && bytes.Equal(from.Fill, to.Fill) && from.NullFill == to.NullFill {
		return nil, nil
	}
	return r, nil
}

func isNumber(t dtype.Type) bool {
	switch t.Kind() {
	case dtype.Int, dtype.Uint:
		return t.Bits() == 8*t.Size()
	case dtype.Float:
		return t.Format() == ""
	}
	return false
}

// SameTimes reports whether two arrays count times of one calendar, which a [Recoder]
// converts, and whether a count means the same in both. The calendars standard and
// proleptic_gregorian are one from 1582-10-15 on.
func SameTimes(a, b *zarr.Meta) (times, equal bool) {
	u, ok := timesOf(a)
	v, also := timesOf(b)
	if !ok || !also || u.calendar != v.calendar && !oneCalendar(u, v) {
		return false, false
	}
	return true, u == v
}

// timesOf reads the units of an array; ok is false if its elements are not times.
func timesOf(m *zarr.Meta) (u timeUnits, ok bool) {
	a := attributes{m.Attributes, m.Version == zarr.V3}
	units, _ := a.text("units")
	calendar, _ := a.text("calendar")
	u, ok, err := parseUnits(units, calendar)
	return u, ok && err == nil
}

func oneCalendar(u, v timeUnits) bool {
	one := func(c *calendar) bool { return c == &gregorian || c == &mixed }
	return one(u.calendar) && one(v.calendar)
}

// setTimes compares the units of both arrays.
func (r *Recoder) setTimes() {
	u, v := r.from.time, r.to.time
	r.mixed = u.calendar != v.calendar
	r.offset = new(big.Int).Mul(big.NewInt(u.since.day-v.since.day), big.NewInt(day))
	r.offset.Add(r.offset, big.NewInt(u.since.nanos-v.since.nanos))
	shift, rest := new(big.Int).QuoRem(r.offset, big.NewInt(v.step), new(big.Int))
	if u.step%v.step == 0 && rest.Sign() == 0 && shift.IsInt64() {
		r.factor, r.shift = u.step/v.step, shift.Int64()
	}
}

// Whole reports whether whole counts of times always have whole counterparts.
func (r *Recoder) Whole() bool { return r.offset == nil || r.factor != 0 }

// Append converts packed elements of the array from and appends them to dst, as packed elements
// of the array to. src is not kept. An element without an exact counterpart is an [InexactError],
// and dst then has the elements before.
func (r *Recoder) Append(dst, src []byte) ([]byte, error) {
	if r == nil {
		return append(dst, src...), nil
	}
	size := r.out.Size()
	for n := r.in.Size(); len(src) >= n; src = src[n:] {
		elem := src[:n]
		if !r.numbers {
			text := elem
			if n > size {
				if text = elem[:size]; len(bytes.TrimRight(elem[size:], "\x00")) > 0 {
					return dst, r.inexact(elem, "it is longer")
				}
			}
			dst = append(dst, text...)
			dst = append(dst, make([]byte, size-len(text))...)
			continue
		}
		out, why := r.one(elem)
		if why != "" {
			return dst, r.inexact(elem, why)
		}
		dst = append(dst, out[:size]...)
	}
	return dst, nil
}

func (r *Recoder) inexact(elem []byte, why string) error {
	text, err := r.in.AppendJSON(nil, elem)
	if err != nil {
		text = fmt.Appendf(nil, "%x", elem)
	}
	return &InexactError{fmt.Sprintf("%s of %v as %v: %s", text, r.in, r.out, why)}
}

// one converts a number. If that is not possible, why is the reason.
func (r *Recoder) one(elem []byte) (out [8]byte, why string) {
	raw := r.from.raw(elem)
	float := r.in.Kind() == dtype.Float
	f := math.Float64frombits(raw)
	gone := r.from.isMissing(raw) || float && f != f || r.offset != nil && r.in.Kind() == dtype.Int && !r.from.unsigned && r.from.signed(raw) == NaT
	if gone {
		if !float {
			f = 0
		}
		return r.gone(f)
	}
	var exact *big.Rat
	n := r.from.signed(raw)
	switch {
	case float && math.IsInf(f, 0):
		if r.out.Kind() != dtype.Float || r.offset != nil {
			return out, "it is infinite"
		}
		if r.to.isMissing(raw) {
			return out, "it means a missing value there"
		}
		bits, _ := r.out.RoundFloat(f)
		binary.LittleEndian.PutUint64(out[:], bits)
		return out, ""
	case float:
		exact = new(big.Rat).SetFloat64(f)
	case r.from.unsigned:
		exact = new(big.Rat).SetInt(new(big.Int).SetUint64(raw))
	case r.factor != 0 && !r.mixed && !r.from.scaled && r.out.Kind() == dtype.Int && !r.to.unsigned:
		// The common case, without fractions.
		if abs(n) < 1<<62/r.factor && abs(r.shift) < 1<<62 {
			return r.whole(big.NewInt(n*r.factor + r.shift))
		}
		fallthrough
	default:
		exact = new(big.Rat).SetInt64(n)
	}
	if r.offset != nil {
		if r.from.scaled {
			return out, "times with scale_factor are not converted"
		}
		if exact, why = r.recount(exact, float); why != "" {
			return out, why
		}
	}
	if r.out.Kind() != dtype.Float {
		if !exact.IsInt() {
			return out, "it is not a whole number there"
		}
		return r.whole(exact.Num())
	}
	value, same := exact.Float64()
	bits, _ := r.out.RoundFloat(value)
	if back := r.out.FloatValue(bits); back != value || !same && !r.readsBack(value, exact) {
		return out, "the nearest number is another one"
	}
	if r.to.isMissing(math.Float64bits(value)) {
		return out, "it means a missing value there"
	}
	binary.LittleEndian.PutUint64(out[:], bits)
	return out, ""
}

// plainNaN is the NaN of numpy, which every format can name.
var plainNaN = math.Float64frombits(0x7ff8 << 48)

// gone returns the element for a missing value. f is the value in an array of floats, else 0.
func (r *Recoder) gone(f float64) (out [8]byte, why string) {
	switch {
	case r.out.Kind() == dtype.Float && (f != f || r.missing == nil):
		if f == f {
			f = plainNaN
		}
		bits, _ := r.out.RoundFloat(f)
		binary.LittleEndian.PutUint64(out[:], bits)
	case r.missing != nil:
		copy(out[:], r.missing)
	case r.offset != nil && r.out.Kind() == dtype.Int && r.out.Size() == 8 && !r.to.unsigned:
		binary.LittleEndian.PutUint64(out[:], 1<<63)
	default:
		return out, "no value means a missing one there"
	}
	return out, ""
}

// recount converts a count of times. A fraction means the time in whole microseconds whose
// nearest float64 it is, if there is such a time; otherwise it is rounded to nanoseconds.
func (r *Recoder) recount(count *big.Rat, float bool) (*big.Rat, string) {
	step := new(big.Rat).SetInt64(r.from.time.step)
	nanos := new(big.Rat).Mul(count, step)
	if float && !nanos.IsInt() {
		micros := roundTo(nanos, 1000)
		was, _ := count.Float64()
		if is, _ := new(big.Rat).Quo(micros, step).Float64(); is == was {
			nanos = micros
		} else {
			nanos = roundTo(nanos, 1)
		}
	}
	nanos.Add(nanos, new(big.Rat).SetInt(r.offset))
	if r.mixed {
		since := r.to.time.since
		first := new(big.Int).Mul(big.NewInt(reform-since.day), big.NewInt(day))
		if first.Sub(first, big.NewInt(since.nanos)); nanos.Cmp(new(big.Rat).SetInt(first)) < 0 {
			return nil, "the calendars standard and proleptic_gregorian differ before 1582-10-15"
		}
	}
	return nanos.Quo(nanos, new(big.Rat).SetInt64(r.to.time.step)), ""
}

// roundTo returns the multiple of a unit that is next to n.
func roundTo(n *big.Rat, unit int64) *big.Rat {
	half := new(big.Rat).Add(new(big.Rat).Quo(n, new(big.Rat).SetInt64(unit)), big.NewRat(1, 2))
	whole := new(big.Int).Div(half.Num(), half.Denom())
	return new(big.Rat).SetInt(whole.Mul(whole, big.NewInt(unit)))
}

// readsBack reports whether a rounded count of times is decoded to the exact time: whole
// seconds are, if their product with the unit is exact.
func (r *Recoder) readsBack(count float64, exact *big.Rat) bool {
	if r.offset == nil || r.to.time.step < 1e9 || r.out.Size() != 8 {
		return false
	}
	unit := r.to.time.step / 1e9
	seconds := new(big.Rat).Mul(exact, new(big.Rat).SetInt64(unit))
	want, same := seconds.Float64()
	return seconds.IsInt() && same && float64(count*float64(unit)) == want
}

// whole returns the element of a whole number.
func (r *Recoder) whole(exact *big.Int) (out [8]byte, why string) {
	width := 8 * r.out.Size()
	least, most := new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(width))
	if !r.to.unsigned {
		most.Rsh(most, 1)
		least.Neg(most)
	}
	if exact.Cmp(least) < 0 || exact.Cmp(most) >= 0 {
		return out, "it does not fit"
	}
	bits := exact.Uint64()
	if exact.IsInt64() {
		bits = uint64(exact.Int64())
	}
	bits &= math.MaxUint64 >> (64 - width)
	if r.to.isMissing(bits) || r.offset != nil && r.to.signed(bits) == NaT && !r.to.unsigned {
		return out, "it means a missing value there"
	}
	binary.LittleEndian.PutUint64(out[:], bits)
	return out, ""
}

// abs returns |n| for n >= 0 and |n| - 1 for n < 0, so that it never overflows.
func abs(n int64) int64 { return max(n, ^n) }

// CommonType returns a type that holds every element of two types: one of the two, or a wider
// number. A float64 holds integers of 64 bits only up to 2^53; [Recoder] refuses larger ones.
// ok is false if there is no such type.
func CommonType(a, b dtype.Type) (t dtype.Type, ok bool) {
	if isText := a.Kind() == dtype.FixedUTF32 || a.Kind() == dtype.FixedBytes; isText && a.Kind() == b.Kind() {
		if b.Size() > a.Size() {
			return b, true
		}
		return a, true
	}
	if !isNumber(a) || !isNumber(b) {
		return a, false
	}
	whole := func(t dtype.Type) int { // bits of whole numbers with a sign
		switch t.Kind() {
		case dtype.Int:
			return t.Bits()
		case dtype.Uint:
			return t.Bits() + 1
		}
		return map[int]int{16: 12, 32: 25, 64: 54}[t.Bits()]
	}
	order := max(a.Order(), b.Order())
	candidates := []dtype.Type{a, b}
	for _, n := range []int{16, 32, 64} {
		candidates = append(candidates, dtype.NewInt(n).WithOrder(order))
	}
	candidates = append(candidates, dtype.NewFloat(64).WithOrder(order))
	for _, t := range candidates {
		fits := func(o dtype.Type) bool {
			switch {
			case t.Kind() == dtype.Float && o.Kind() == dtype.Float:
				return t.Bits() >= o.Bits()
			case t.Kind() == dtype.Float:
				return whole(t) >= whole(o) || t.Bits() == 64 // long counts are compared one by one
			case t.Kind() == dtype.Uint:
				return o.Kind() == dtype.Uint && t.Bits() >= o.Bits()
			}
			return o.Kind() != dtype.Float && t.Bits() >= whole(o)
		}
		if fits(a) && fits(b) {
			return t, true
		}
	}
	return a, false
}
