package jinja

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// MaxOutput is the longest text that a template may make, in bytes.
const MaxOutput = 1 << 16

var (
	errOutput  = fmt.Errorf("text longer than %d bytes", MaxOutput)
	errInteger = errors.New("integer beyond 64 bits")
	errZero    = errors.New("division by zero")
)

// unsupported is the error for what Jinja2 may know and this package does not.
func unsupported(format string, args ...any) error {
	return fmt.Errorf(format+" is not supported", args...)
}

type kind uint8

const (
	kStr kind = iota
	kBool
	kInt
	kFloat
)

func (k kind) String() string { return [...]string{"str", "bool", "int", "float"}[k] }

// Value is a Python value: a string, a boolean, an integer or a finite float.
// The zero Value is the empty string. A Value is never changed.
type Value struct {
	kind kind
	n    int64 // a boolean, an integer, or the bits of a float
	s    string
}

// Str is a string, which should be UTF-8.
func Str(s string) Value { return Value{s: s} }

// Int is an integer.
func Int(i int64) Value { return Value{kind: kInt, n: i} }

// Float is a floating point number, which must be finite.
func Float(f float64) Value { return Value{kind: kFloat, n: int64(math.Float64bits(f))} }

func boolean(b bool) Value {
	if b {
		return Value{kind: kBool, n: 1}
	}
	return Value{kind: kBool}
}

// text is a string that was made here.
func text(s string) (Value, error) {
	if len(s) > MaxOutput {
		return Value{}, errOutput
	}
	return Str(s), nil
}

// finite is the result of float arithmetic.
func finite(f float64) (Value, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return Value{}, unsupported("a float that is not finite")
	}
	return Float(f), nil
}

// integral reports whether v is an integer; a boolean is one too.
func (v Value) integral() bool { return v.kind == kInt || v.kind == kBool }

func (v Value) numeric() bool { return v.kind != kStr }

// number is the float nearest to an integer or float.
func (v Value) number() float64 {
	if v.kind == kFloat {
		return math.Float64frombits(uint64(v.n))
	}
	return float64(v.n)
}

// exact reports whether number loses nothing.
func (v Value) exact() bool {
	const most = 1 << 53
	return v.kind == kFloat || -most <= v.n && v.n <= most
}

// truth is bool(v).
func (v Value) truth() bool {
	if v.kind == kStr {
		return v.s != ""
	}
	return v.number() != 0
}

// truncate is int(v) of a number.
func (v Value) truncate() (int64, error) {
	if v.kind != kFloat {
		return v.n, nil
	}
	f := math.Trunc(v.number())
	if f >= 1<<63 || f < -1<<63 {
		return 0, errInteger
	}
	return int64(f), nil
}

// appendStr appends str(v).
func (v Value) appendStr(dst []byte) []byte {
	switch {
	case v.kind == kStr:
		return append(dst, v.s...)
	case v.kind == kInt:
		return strconv.AppendInt(dst, v.n, 10)
	case v.kind == kFloat:
		return AppendFloat(dst, v.number())
	case v.n != 0:
		return append(dst, "True"...)
	}
	return append(dst, "False"...)
}

// str returns str(v).
func (v Value) str() string {
	if v.kind == kStr {
		return v.s
	}
	return string(v.appendStr(nil))
}

// AppendFloat appends a finite float as Python's repr prints it: the shortest
// digits that give f back, with an exponent below 1e-4 and from 1e16 on.
func AppendFloat(dst []byte, f float64) []byte {
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if f == math.Trunc(f) {
		dst = append(dst, ".0"...)
	}
	return dst
}

// ParseInt is int(s) of a decimal text, which may have a sign and white space
// around it. ok is false where it is no integer; an integer beyond 64 bits is an
// error.
func ParseInt(s string) (i int64, ok bool, err error) {
	i, err = strconv.ParseInt(strings.TrimFunc(s, isSpace), 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, false, errInteger
	}
	return i, err == nil, nil
}

// isSpace reports what \s matches and str.strip removes.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }
