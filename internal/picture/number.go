package picture

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Number prints a number with at most so many significant digits, without zeros behind the
// last one that counts. With 0 it prints all digits that it takes to tell the number from
// its neighbours, in a floating-point type of so many bits. Numbers of common size have no
// exponent.
func Number(v float64, digits, bits int) string {
	switch {
	case math.IsNaN(v):
		return "missing"
	case math.IsInf(v, 1):
		return "∞"
	case math.IsInf(v, -1):
		return "-∞"
	}
	if digits > 0 {
		text := strconv.FormatFloat(v, 'e', min(digits, 17)-1, 64)
		if rounded, err := strconv.ParseFloat(text, 64); err == nil { // else it is beyond the greatest float64
			v, bits = rounded, 64
		}
	}
	if size := math.Abs(v); v != 0 && (size < 1e-6 || size >= 1e21) { // as JavaScript prints numbers
		return strings.Replace(strconv.FormatFloat(v, 'e', -1, max(bits, 32)), "e-0", "e-", 1)
	}
	return strconv.FormatFloat(v+0, 'f', -1, max(bits, 32))
}

// digits is how many digits it takes to tell numbers of a size apart that differ by spread.
// 0 is all: there is no spread.
func digits(size, spread float64) int {
	if !(spread > 0) || math.IsInf(size, 0) {
		return 0
	}
	return max(0, int(math.Ceil(math.Log10(size)-math.Log10(spread))))
}

// Number prints a value of a type with the digits that tell a thousand values between the
// limits apart, or with all of its own if there are not so many.
func (l Limits) Number(v float64, t dtype.Type) string {
	n := digits(max(math.Abs(l.Lo), math.Abs(l.Hi)), l.Hi-l.Lo)
	if n += 4; l.Lo == l.Hi || t.Kind() == dtype.Float && t.Bits() <= 32 && n > 8 {
		return Number(v, 0, t.Bits())
	}
	return Number(v, n, 64)
}

// rounds are at most so many multiples of 1, 2 or 5 times a power of ten, and of least if it
// is not 0, from lo to hi. There are none where fewer than so many numbers lie between both.
func rounds(lo, hi, least float64, most int) []float64 {
	span := hi - lo
	if !(span > 0) || math.IsInf(span, 0) || most < 1 {
		return nil
	}
	power := math.Pow(10, math.Floor(math.Log10(span/float64(most))))
	for _, m := range []float64{1, 2, 5, 10, 20} {
		step := m * power
		first, last := math.Ceil(lo/step-1e-9), math.Floor(hi/step+1e-9)
		if !(step > 0) || step < least || !(last-first < float64(most)) {
			continue
		}
		var out []float64
		for i := range int(last-first) + 1 { // above 2^53, i + 1 may be i for a float64
			out = append(out, (first+float64(i))*step+0) // no negative 0
		}
		return slices.Compact(out)
	}
	return nil
}

// multiples are at most so many multiples of the first step of which there are not more.
func multiples(lo, hi float64, most int, steps ...float64) (out []float64) {
	for _, step := range steps {
		out = nil
		for v := math.Ceil(lo / step); v*step <= hi && len(out) <= most; v++ {
			out = append(out, v*step+0)
		}
		if len(out) <= most {
			break
		}
	}
	return out
}

// rounds are at most so many round values between the limits: on a scale of ratios 1, 2 and 5 times
// powers of ten, or these powers, or some of them. Others are multiples of least, if that is not 0.
func (l Limits) rounds(most int, least float64) (out []float64) {
	if !l.Log || l.Hi < 2*l.Lo {
		return rounds(l.Lo, l.Hi, least, most)
	}
	for _, step := range []struct {
		of    []float64
		every int
	}{{[]float64{1, 2, 5}, 1}, {[]float64{1, 3}, 1}, {[]float64{1}, 1}, {[]float64{1}, 2}, {[]float64{1}, 3}, {[]float64{1}, 5}, {[]float64{1}, 10}, {[]float64{1}, 20}, {[]float64{1}, 50}, {[]float64{1}, 100}} {
		if out = nil; len(step.of) > 1 && l.Hi >= 999*l.Lo { // powers are enough
			continue
		}
		last := int(min(math.Ceil(math.Log10(l.Hi)), 309)) // powers of a float64 are from -324 to 308
		for power := int(max(math.Floor(math.Log10(l.Lo)), -324)); power <= last; power++ {
			for _, m := range step.of {
				v, _ := strconv.ParseFloat(strconv.FormatFloat(m, 'f', 0, 64)+"e"+strconv.Itoa(power), 64)
				if power%step.every == 0 && v >= l.Lo*(1-1e-12) && v <= l.Hi*(1+1e-12) {
					out = append(out, v)
				}
			}
		}
		if len(out) <= most {
			break
		}
	}
	return out
}

// tickTexts are texts of numbers at equal distances, all different.
func tickTexts(values []float64) (out []string) {
	if len(values) == 0 {
		return nil
	}
	first, last := values[0], values[len(values)-1]
	if first == last {
		return []string{Number(first, 0, 64)}
	}
	n := digits(max(math.Abs(first), math.Abs(last)), math.Abs(last-first)/float64(max(len(values)-1, 1)))
	for _, v := range values {
		out = append(out, Number(v, min(n+2, 17), 64))
	}
	return out
}
