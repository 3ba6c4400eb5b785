package jinja

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxOutput is the longest text that a template may make, in bytes.
const MaxOutput = 1 << 16

var errOutput = fmt.Errorf("text longer than %d bytes", MaxOutput)

type kind uint8

const (
	kNone kind = iota
	kBool
	kInt
	kFloat
	kStr
	kList
	kTuple
)

// Value is a Python value. The zero Value is None. A Value is never changed.
type Value struct {
	kind kind
	n    int64 // a boolean, an integer, or the bits of a float
	s    string
	list []Value
}

// None is the value none.
func None() Value { return Value{} }

// Bool is a boolean.
func Bool(b bool) Value {
	if b {
		return Value{kind: kBool, n: 1}
	}
	return Value{kind: kBool}
}

// Int is an integer.
func Int(i int64) Value { return Value{kind: kInt, n: i} }

// Float is a floating point number.
func Float(f float64) Value { return Value{kind: kFloat, n: int64(math.Float64bits(f))} }

// Str is a string, which should be UTF-8.
func Str(s string) Value { return Value{kind: kStr, s: s} }

func (v Value) float() float64 { return math.Float64frombits(uint64(v.n)) }

// integral reports whether v is an integer; a boolean is one too.
func (v Value) integral() bool { return v.kind == kInt || v.kind == kBool }

func (v Value) numeric() bool { return v.integral() || v.kind == kFloat }

// number converts an integer or a float.
func (v Value) number() float64 {
	if v.kind == kFloat {
		return v.float()
	}
	return float64(v.n)
}

func (v Value) typeName() string {
	return [...]string{"NoneType", "bool", "int", "float", "str", "list", "tuple"}[v.kind]
}

// truth is bool(v).
func (v Value) truth() bool {
	switch v.kind {
	case kBool, kInt:
		return v.n != 0
	case kFloat:
		return v.float() != 0
	case kStr:
		return v.s != ""
	case kList, kTuple:
		return len(v.list) > 0
	}
	return false
}

// appendStr appends str(v).
func (v Value) appendStr(dst []byte) []byte {
	switch v.kind {
	case kStr:
		return append(dst, v.s...)
	case kInt:
		return strconv.AppendInt(dst, v.n, 10)
	}
	return v.appendRepr(dst)
}

// appendRepr appends repr(v).
func (v Value) appendRepr(dst []byte) []byte {
	switch v.kind {
	case kNone:
		return append(dst, "None"...)
	case kBool:
		if v.n != 0 {
			return append(dst, "True"...)
		}
		return append(dst, "False"...)
	case kInt:
		return strconv.AppendInt(dst, v.n, 10)
	case kFloat:
		return AppendFloat(dst, v.float())
	case kStr:
		return appendReprStr(dst, v.s)
	}
	open, end := byte('['), byte(']')
	if v.kind == kTuple {
		open, end = '(', ')'
	}
	dst = append(dst, open)
	for i, e := range v.list {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = e.appendRepr(dst)
	}
	if v.kind == kTuple && len(v.list) == 1 {
		dst = append(dst, ',')
	}
	return append(dst, end)
}

// str returns str(v).
func (v Value) str() string {
	if v.kind == kStr {
		return v.s
	}
	return string(v.appendStr(nil))
}

// appendReprStr appends repr of a string: in single quotes unless it has some
// and no double ones.
func appendReprStr(dst []byte, s string) []byte {
	quote := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		quote = '"'
	}
	dst = append(dst, quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case strconv.IsPrint(r):
			dst = utf8.AppendRune(dst, r)
		case r < 0x100:
			dst = fmt.Appendf(dst, `\x%02x`, r)
		case r < 0x10000:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = fmt.Appendf(dst, `\U%08x`, r)
		}
	}
	return append(dst, quote)
}

// AppendFloat appends a float as Python's repr prints it: the shortest digits
// that give f back, with an exponent below 1e-4 and from 1e16 on.
func AppendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	from := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	for _, c := range dst[from:] {
		if c == '.' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

// equal is a == b.
func equal(a, b Value) bool {
	switch {
	case a.integral() && b.integral():
		return a.n == b.n
	case a.numeric() && b.numeric():
		c, ok := compareNumbers(a, b)
		return ok && c == 0
	case a.kind != b.kind:
		return false
	case a.kind == kStr:
		return a.s == b.s
	case a.kind == kList || a.kind == kTuple:
		if len(a.list) != len(b.list) {
			return false
		}
		for i := range a.list {
			if !equal(a.list[i], b.list[i]) {
				return false
			}
		}
	}
	return true
}

// compareNumbers orders two numbers exactly; ok is false if one is NaN.
func compareNumbers(a, b Value) (order int, ok bool) {
	if a.integral() && b.integral() {
		return sign(a.n < b.n, a.n > b.n), true
	}
	if a.kind == kFloat && b.kind == kFloat {
		x, y := a.float(), b.float()
		return sign(x < y, x > y), x == x && y == y
	}
	if a.kind == kFloat {
		order, ok = compareNumbers(b, a)
		return -order, ok
	}
	// An integer against a float: integers beyond 2^53 have no exact float.
	f := b.float()
	switch {
	case f != f:
		return 0, false
	case f >= 1<<63:
		return -1, true
	case f < -1<<63:
		return 1, true
	}
	whole := math.Trunc(f)
	if i := int64(whole); a.n != i {
		return sign(a.n < i, a.n > i), true
	}
	return sign(whole < f, whole > f), true
}

func sign(less, greater bool) int {
	switch {
	case less:
		return -1
	case greater:
		return 1
	}
	return 0
}

// compare orders two values where Python can.
func compare(a, b Value) (order int, ok bool, err error) {
	switch {
	case a.numeric() && b.numeric():
		order, ok = compareNumbers(a, b)
		return order, ok, nil
	case a.kind == kStr && b.kind == kStr:
		return strings.Compare(a.s, b.s), true, nil
	case a.kind == b.kind && (a.kind == kList || a.kind == kTuple):
		for i := range min(len(a.list), len(b.list)) {
			if !equal(a.list[i], b.list[i]) {
				return compare(a.list[i], b.list[i])
			}
		}
		return sign(len(a.list) < len(b.list), len(a.list) > len(b.list)), true, nil
	}
	return 0, false, fmt.Errorf("%s and %s have no order", a.typeName(), b.typeName())
}

var errInteger = errors.New("integer beyond 64 bits")
