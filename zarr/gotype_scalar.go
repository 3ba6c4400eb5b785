package zarr

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// loadLE and storeLE read and write a scalar of up to eight bytes.
func loadLE(elem []byte) uint64 {
	var v uint64
	for i, b := range elem {
		v |= uint64(b) << (8 * i)
	}
	return v
}

func appendLE(dst []byte, v uint64, size int) []byte {
	for range size {
		dst, v = append(dst, byte(v)), v>>8
	}
	return dst
}

// numberConv is for numbers that have the same kind and, floats aside, width.
func numberConv(g reflect.Type, t dtype.Type) (conv, error) {
	size, k := t.Size(), t.Kind()
	switch {
	case g.Kind() == reflect.Bool && k == dtype.Bool:
		return conv{
			get: func(p unsafe.Pointer, elem []byte) error { *(*bool)(p) = elem[0] != 0; return nil },
			put: func(dst []byte, p unsafe.Pointer) ([]byte, error) { return append(dst, *(*byte)(p)), nil },
		}, nil
	case g.Kind() >= reflect.Int8 && g.Kind() <= reflect.Int64 && int(g.Size()) == size && (k == dtype.Int || k == dtype.Datetime || k == dtype.Timedelta),
		g.Kind() >= reflect.Uint8 && g.Kind() <= reflect.Uint64 && int(g.Size()) == size && k == dtype.Uint:
		return integerConv(g, t), nil
	case (g.Kind() == reflect.Float32 || g.Kind() == reflect.Float64) && k == dtype.Float && t.Bits() <= g.Bits():
		return floatConv(g.Bits(), t), nil
	case (g.Kind() == reflect.Complex64 || g.Kind() == reflect.Complex128) && k == dtype.Complex && t.Bits() <= g.Bits():
		part, err := dtype.NewNarrowFloat(t.Format())
		if t.Format() == "" {
			part, err = dtype.NewFloat(t.Bits()/2), nil
		}
		if err != nil {
			return conv{}, err
		}
		one, step := floatConv(g.Bits()/2, part), g.Size()/2
		return conv{
			get: func(p unsafe.Pointer, elem []byte) error { return getRow(one, p, step, elem, part.Size()) },
			put: func(dst []byte, p unsafe.Pointer) ([]byte, error) { return putRow(one, dst, p, step, 2) },
		}, nil
	}
	if widens(g, t) {
		return wideConv(g, t), nil
	}
	return conv{}, noConv(g, t)
}

// widens reports whether a Go number holds every integer of a type.
func widens(g reflect.Type, t dtype.Type) bool {
	signed := t.Kind() == dtype.Int
	if !signed && t.Kind() != dtype.Uint {
		return false
	}
	switch k := g.Kind(); {
	case k >= reflect.Int8 && k <= reflect.Int64:
		return t.Bits() < g.Bits() || signed && t.Bits() == g.Bits()
	case k >= reflect.Uint8 && k <= reflect.Uint64:
		return !signed && t.Bits() <= g.Bits()
	case k == reflect.Float32:
		return t.Bits() <= 24
	case k == reflect.Float64:
		return t.Bits() <= 53
	}
	return false
}

// wideConv reads integers as a number that holds them. It has no put: most values of
// a wider Go type would not fit.
func wideConv(g reflect.Type, t dtype.Type) conv {
	kind, unused := g.Kind(), 64-8*t.Size()
	signed := t.Kind() == dtype.Int
	return conv{get: func(p unsafe.Pointer, elem []byte) error {
		v := loadLE(elem)
		if signed {
			v = uint64(int64(v<<unused) >> unused)
		}
		switch kind {
		case reflect.Int8, reflect.Uint8:
			*(*uint8)(p) = uint8(v)
		case reflect.Int16, reflect.Uint16:
			*(*uint16)(p) = uint16(v)
		case reflect.Int32, reflect.Uint32:
			*(*uint32)(p) = uint32(v)
		case reflect.Float32:
			*(*float32)(p) = float32(int64(v)) // of at most 24 bits
		case reflect.Float64:
			*(*float64)(p) = float64(int64(v)) // of at most 53 bits
		default:
			*(*uint64)(p) = v
		}
		return nil
	}}
}

// integerConv is for integers of the width of the Go type, or of fewer bits in
// the same number of bytes.
func integerConv(g reflect.Type, t dtype.Type) conv {
	size, narrow := t.Size(), t.Kind() != dtype.Datetime && t.Kind() != dtype.Timedelta && t.Bits() < 8
	load := func(p unsafe.Pointer) uint64 {
		switch size {
		case 1:
			return uint64(*(*uint8)(p))
		case 2:
			return uint64(*(*uint16)(p))
		case 4:
			return uint64(*(*uint32)(p))
		}
		return *(*uint64)(p)
	}
	return conv{
		get: wideConv(g, t).get,
		put: func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			v := load(p)
			if narrow {
				if s := 8 - t.Bits(); t.Kind() == dtype.Int && int8(v<<s)>>s != int8(v) || t.Kind() == dtype.Uint && v>>t.Bits() != 0 {
					return dst, fmt.Errorf("%w: beyond the range of %v", ErrValue, t)
				}
			}
			return appendLE(dst, v, size), nil
		},
	}
}

// floatConv is for a Go float of width bits and a float of as many or fewer.
func floatConv(width int, t dtype.Type) conv {
	return conv{
		get: func(p unsafe.Pointer, elem []byte) error {
			switch v := loadLE(elem); {
			case width == 32 && t.Bits() == 32:
				*(*uint32)(p) = uint32(v) // a signalling NaN stays one
			case width == 32:
				*(*float32)(p) = float32(t.FloatValue(v))
			default:
				*(*float64)(p) = t.FloatValue(v)
			}
			return nil
		},
		put: func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			if width == t.Bits() {
				if width == 32 {
					return appendLE(dst, uint64(*(*uint32)(p)), 4), nil
				}
				return appendLE(dst, *(*uint64)(p), 8), nil
			}
			v := 0.0
			if width == 32 {
				v = float64(*(*float32)(p))
			} else {
				v = *(*float64)(p)
			}
			b, ok := t.RoundFloat(v)
			if !ok {
				return dst, fmt.Errorf("%w: %v is no %v", ErrValue, v, t)
			}
			return appendLE(dst, b, t.Size()), nil
		},
	}
}

// textConv is for strings.
func textConv(t dtype.Type) (conv, error) {
	get := func(p unsafe.Pointer, elem []byte) error { *(*string)(p) = string(elem); return nil }
	put := func(dst []byte, p unsafe.Pointer) ([]byte, error) { return append(dst, *(*string)(p)...), nil }
	switch t.Kind() {
	case dtype.String, dtype.JSON:
	case dtype.FixedBytes:
		get = func(p unsafe.Pointer, elem []byte) error {
			*(*string)(p) = strings.TrimRight(string(elem), "\x00")
			return nil
		}
		put = func(dst []byte, p unsafe.Pointer) ([]byte, error) { return padded(dst, *(*string)(p), t) }
	case dtype.FixedUTF32:
		get = func(p unsafe.Pointer, elem []byte) error {
			var b strings.Builder
			zeros := 0
			for ; len(elem) > 0; elem = elem[4:] {
				r := binary.LittleEndian.Uint32(elem)
				if r == 0 {
					zeros++
					continue
				}
				if r > utf8.MaxRune || !utf8.ValidRune(rune(r)) {
					return fmt.Errorf("%w: %#x is no code point", codecs.ErrCorrupt, r)
				}
				b.WriteString(strings.Repeat("\x00", zeros))
				b.WriteRune(rune(r))
				zeros = 0
			}
			*(*string)(p) = b.String()
			return nil
		}
		put = func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			s, end := *(*string)(p), len(dst)+t.Size()
			if !utf8.ValidString(s) || utf8.RuneCountInString(s) > t.Size()/4 {
				return dst, fmt.Errorf("%w: %.40q is no text of at most %d code points", ErrValue, s, t.Size()/4)
			}
			for _, r := range s {
				dst = binary.LittleEndian.AppendUint32(dst, uint32(r))
			}
			return append(dst, make([]byte, end-len(dst))...), nil
		}
	default:
		return conv{}, noConv(reflect.TypeFor[string](), t)
	}
	return conv{get, put}, nil
}

// bytesConv is for byte strings, of a fixed length too.
func bytesConv(t dtype.Type) conv {
	return conv{
		get: func(p unsafe.Pointer, elem []byte) error {
			if t.Kind() == dtype.FixedBytes {
				for len(elem) > 0 && elem[len(elem)-1] == 0 {
					elem = elem[:len(elem)-1]
				}
			}
			*(*[]byte)(p) = append([]byte{}, elem...)
			return nil
		},
		put: func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			b := *(*[]byte)(p)
			if t.Kind() == dtype.Raw && len(b) != t.Size() {
				return dst, fmt.Errorf("%w: %d bytes, not %d", ErrValue, len(b), t.Size())
			}
			if t.Variable() {
				return append(dst, b...), nil
			}
			return padded(dst, string(b), t)
		},
	}
}

// padded appends s and zeros up to the size of an element.
func padded(dst []byte, s string, t dtype.Type) ([]byte, error) {
	if len(s) > t.Size() {
		return dst, fmt.Errorf("%w: %d bytes are more than %d", ErrValue, len(s), t.Size())
	}
	return append(append(dst, s...), make([]byte, t.Size()-len(s))...), nil
}

// nat is the count of NaT.
const nat = math.MinInt64

// unitSeconds are the units of whole seconds, and unitFraction the fractions of
// a second per unit.
var (
	unitSeconds  = map[string]int64{"W": 604800, "D": 86400, "h": 3600, "m": 60, "s": 1}
	unitFraction = map[string]int64{"ms": 1e3, "us": 1e6, "ns": 1e9, "ps": 1e12, "fs": 1e15, "as": 1e18}
)

// timeConv is for datetimes, in UTC and to the nanosecond below.
func timeConv(t dtype.Type) (conv, error) {
	unit, scale := t.Unit()
	if t.Kind() != dtype.Datetime || unit == "generic" {
		return conv{}, noConv(timeType, t)
	}
	return conv{
		get: func(p unsafe.Pointer, elem []byte) error {
			count := int64(loadLE(elem))
			if count == nat {
				*(*time.Time)(p) = time.Time{}
				return nil
			}
			when, ok := timeAt(count, unit, scale)
			if !ok {
				return fmt.Errorf("%w: %d × %d %s is beyond what a time.Time can say", ErrValue, count, scale, unit)
			}
			*(*time.Time)(p) = when
			return nil
		},
		put: func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			when, count, ok := (*time.Time)(p).UTC(), int64(nat), true
			if !when.IsZero() {
				count, ok = countOf(when, unit, scale)
			}
			if !ok {
				return dst, fmt.Errorf("%w: %v is beyond the range of %v", ErrValue, when, t)
			}
			return appendLE(dst, uint64(count), 8), nil
		},
	}, nil
}

// maxYear is the last year after 1970 that is an int of 32 bits, and maxUnix
// about as many seconds.
const (
	maxYear = math.MaxInt32 - 1970
	maxUnix = maxYear * 31_556_952
)

func timeAt(count int64, unit string, scale int64) (time.Time, bool) {
	n, ok := times(count, scale)
	if !ok {
		return time.Time{}, false
	}
	switch unit {
	case "Y":
		if n > maxYear || n < -maxYear {
			return time.Time{}, false
		}
		return time.Date(1970+int(n), 1, 1, 0, 0, 0, 0, time.UTC), true
	case "M":
		years, months := floorDiv(n, 12)
		if years > maxYear || years < -maxYear {
			return time.Time{}, false
		}
		return time.Date(1970+int(years), time.Month(1+months), 1, 0, 0, 0, 0, time.UTC), true
	}
	if s, found := unitSeconds[unit]; found {
		n, ok = times(n, s)
		return time.Unix(n, 0).UTC(), ok && n <= maxUnix && n >= -maxUnix
	}
	f := unitFraction[unit]
	sec, rest := floorDiv(n, f)
	if f > 1e9 {
		rest /= f / 1e9
	} else {
		rest *= 1e9 / f
	}
	return time.Unix(sec, rest).UTC(), true
}

// countOf is the opposite of timeAt, rounded down.
func countOf(when time.Time, unit string, scale int64) (int64, bool) {
	n, ok := int64(0), true
	switch unit {
	case "Y":
		n = int64(when.Year()) - 1970
	case "M":
		n = (int64(when.Year())-1970)*12 + int64(when.Month()) - 1
	default:
		if s, found := unitSeconds[unit]; found {
			n, _ = floorDiv(when.Unix(), s)
			break
		}
		f := unitFraction[unit]
		sec, rest := when.Unix(), int64(when.Nanosecond())
		if f > 1e9 {
			rest *= f / 1e9
		} else {
			rest /= 1e9 / f
		}
		if sec < 0 { // toward zero: whole seconds below the least count are out of range
			sec, rest = sec+1, rest-f
		}
		if n, ok = times(sec, f); !ok {
			return 0, false
		}
		ok = rest >= 0 && n <= math.MaxInt64-rest || rest < 0 && n >= math.MinInt64-rest
		n += rest
	}
	n, _ = floorDiv(n, scale)
	return n, ok && n != nat
}

// durationConv is for timedeltas whose unit has a fixed length, down to the nanosecond.
func durationConv(t dtype.Type) (conv, error) {
	unit, scale := t.Unit()
	if t.Kind() != dtype.Timedelta || unitSeconds[unit]+unitFraction[unit] == 0 {
		return conv{}, noConv(durationType, t)
	}
	return conv{
		get: func(p unsafe.Pointer, elem []byte) error {
			count := int64(loadLE(elem))
			n := count
			if count != nat {
				after, ok := timeAt(count, unit, scale) // 1970
				if ok {
					n, ok = countOf(after, "ns", 1)
				}
				if !ok {
					return fmt.Errorf("%w: %d × %d %s is beyond what a time.Duration can say", ErrValue, count, scale, unit)
				}
			}
			*(*int64)(p) = n
			return nil
		},
		put: func(dst []byte, p unsafe.Pointer) ([]byte, error) {
			n := *(*int64)(p)
			if n != nat {
				count, ok := countOf(time.Unix(0, n), unit, scale)
				if !ok {
					return dst, fmt.Errorf("%w: %v is beyond the range of %v", ErrValue, time.Duration(n), t)
				}
				n = count
			}
			return appendLE(dst, uint64(n), 8), nil
		},
	}, nil
}

// times multiplies; ok is false if the product is out of range. b is positive.
func times(a, b int64) (product int64, ok bool) {
	product = a * b // modulo 2^64
	return product, product/b == a && product != math.MinInt64
}

// floorDiv divides by a positive number, rounding down; the rest is not negative.
func floorDiv(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}
