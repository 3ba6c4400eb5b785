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
	kInt
	kFloat
)

func (k kind) String() string { return [...]string{"str", "int", "float"}[k] }

// Value is a Python value: a string, an integer or a finite float. The zero Value
// is the empty string. A Value is never changed.
type Value struct {
	kind kind
	n    int64 // an integer, or the bits of a float
	s    string
}

// Str is a string, which should be UTF-8.
func Str(s string) Value { return Value{s: s} }

// Int is an integer.
func Int(i int64) Value { return Value{kind: kInt, n: i} }

// Float is a floating point number, which must be finite.
func Float(f float64) Value { return Value{kind: kFloat, n: int64(math.Float64bits(f))} }

// text is a string that was made here.
func text(s string) (Value, error) {
	if len(s) > MaxOutput {
		return Value{}, errOutput
	}
	return Str(s), nil
}

// number is the float nearest to an integer or float.
func (v Value) number() float64 {
	if v.kind == kFloat {
		return math.Float64frombits(uint64(v.n))
	}
	return float64(v.n)
}

// appendStr appends str(v).
func (v Value) appendStr(dst []byte) []byte {
	switch v.kind {
	case kInt:
		return strconv.AppendInt(dst, v.n, 10)
	case kFloat:
		return AppendFloat(dst, v.number())
	}
	return append(dst, v.s...)
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
