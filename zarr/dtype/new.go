package dtype

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// ErrType means that metadata names a data type that does not exist, is not
// supported, or breaks a limit.
var ErrType = errors.New("dtype: bad data type")

// ErrNoForm means that a data type or a value of it has no form in the requested
// format version.
var ErrNoForm = errors.New("dtype: has no form in this format version")

// Limits on types that come from metadata. A fill value is one element, so the
// size of an element bounds the memory for reading a small document.
const (
	maxSize  = 16 << 20 // bytes of one element
	maxDepth = 32       // types within types
	maxWords = 1 << 16  // runs of scalars in one element
)

// reason is an error that matches a sentinel but does not repeat its text: the
// caller adds the member of metadata.
type reason struct {
	kind error
	text string
}

func (r *reason) Error() string        { return r.text }
func (r *reason) Is(target error) bool { return target == r.kind }

func badType(format string, args ...any) error {
	return &reason{ErrType, fmt.Sprintf(format, args...)}
}

// scalar makes a type whose element is n words of the same size.
func scalar(k Kind, bits, size int) Type {
	t := Type{kind: k, bits: uint16(bits), size: size}
	if t.wordSize() > 1 {
		t.words = 1
	}
	return t
}

// NewBool returns bool.
func NewBool() Type { return scalar(Bool, 8, 1) }

// NewInt returns the signed integer of 2, 4, 8, 16, 32 or 64 bits. Another
// width panics.
func NewInt(bits int) Type { return scalar(Int, bits, intSize(bits)) }

// NewUint returns the unsigned integer of 2, 4, 8, 16, 32 or 64 bits. Another
// width panics.
func NewUint(bits int) Type { return scalar(Uint, bits, intSize(bits)) }

func intSize(bits int) int {
	switch bits {
	case 2, 4, 8:
		return 1
	case 16, 32, 64:
		return bits / 8
	}
	panic(fmt.Sprintf("dtype: no integer has %d bits", bits))
}

// NewFloat returns the IEEE 754 float of 16, 32 or 64 bits. Another width
// panics.
func NewFloat(bits int) Type {
	switch bits {
	case 16, 32, 64:
		return scalar(Float, bits, bits/8)
	}
	panic(fmt.Sprintf("dtype: no IEEE float has %d bits", bits))
}

// NewComplex returns the complex number of 32, 64 or 128 bits. Another width
// panics.
func NewComplex(bits int) Type {
	switch bits {
	case 32, 64, 128:
		return scalar(Complex, bits, bits/8)
	}
	panic(fmt.Sprintf("dtype: no complex number has %d bits", bits))
}

// NewRaw returns opaque elements of n bytes.
func NewRaw(n int) (Type, error) { return sized(Raw, n) }

// NewFixedBytes returns byte strings of at most n bytes, padded with zeros.
func NewFixedBytes(n int) (Type, error) { return sized(FixedBytes, n) }

// NewFixedUTF32 returns texts of at most n code points, padded with zeros.
func NewFixedUTF32(n int) (Type, error) {
	if n < 1 || n > maxSize/4 {
		return Type{}, badType("%d code points are not between 1 and %d", n, maxSize/4)
	}
	return scalar(FixedUTF32, 0, 4*n), nil
}

func sized(k Kind, n int) (Type, error) {
	if n < 1 || n > maxSize {
		return Type{}, badType("element of %d bytes is not between 1 byte and %d", n, maxSize)
	}
	return scalar(k, 0, n), nil
}

// NewDatetime returns points in time counted in scale × unit since 1970-01-01.
// Units are numpy's: Y M W D h m s ms us ns ps fs as generic.
func NewDatetime(unit string, scale int64) (Type, error) { return timed(Datetime, unit, scale) }

// NewTimedelta returns spans of time counted in scale × unit, see [NewDatetime].
func NewTimedelta(unit string, scale int64) (Type, error) { return timed(Timedelta, unit, scale) }

var units = []string{"Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic"}

func timed(k Kind, unit string, scale int64) (Type, error) {
	alias := ""
	if unit == "μs" || unit == "µs" { // Greek mu and the micro sign
		alias, unit = unit, "us"
	}
	i := slices.Index(units, unit)
	if i < 0 {
		return Type{}, badType("unknown unit of time %q", clip(unit))
	}
	if scale < 1 || scale > 1<<31-1 {
		return Type{}, badType("scale factor %d is not between 1 and 2147483647", scale)
	}
	t := scalar(k, 64, 8)
	t.unit, t.scale, t.alias = units[i], scale, alias
	return t, nil
}

// NewStruct returns the type whose elements are the given fields, packed in
// order; their offsets are computed. Names must be distinct and not empty,
// types of a fixed size.
func NewStruct(fields []Field) (Type, error) {
	t := Type{kind: Struct, fields: slices.Clone(fields)}
	if len(fields) == 0 {
		return Type{}, badType("struct without fields")
	}
	seen := make(map[string]bool, len(fields))
	for i := range t.fields {
		f := &t.fields[i]
		switch {
		case f.Name == "":
			return Type{}, badType("field %d has no name", i)
		case !utf8.ValidString(f.Name):
			return Type{}, badType("name of field %d is not UTF-8", i)
		case seen[f.Name]:
			return Type{}, badType("two fields are called %q", clip(f.Name))
		case f.Type.kind == Invalid || f.Type.Variable():
			return Type{}, badType("field %q has no fixed size", clip(f.Name))
		}
		seen[f.Name] = true
		f.Offset = t.size
		t.size += f.Type.size
		t.words += f.Type.words
		t.depth = max(t.depth, f.Type.depth+1)
		if err := t.check(); err != nil {
			return Type{}, err
		}
	}
	return t, nil
}

// NewSubarray returns the type whose elements are arrays of elem in C order.
func NewSubarray(elem Type, shape []int) (Type, error) {
	if elem.kind == Invalid || elem.Variable() {
		return Type{}, badType("elements of a subarray have a fixed size")
	}
	if len(shape) == 0 || len(shape) > maxDepth {
		return Type{}, badType("subarray with %d dimensions", len(shape))
	}
	n := 1
	for _, d := range shape {
		if d < 1 || d > maxSize/n {
			return Type{}, badType("subarray shape %v is not between 1 and %d elements", clipShape(shape), maxSize)
		}
		n *= d
	}
	if n > maxSize/elem.size {
		return Type{}, badType("element of %d × %d bytes is over %d", n, elem.size, maxSize)
	}
	t := Type{kind: subarray, elem: &elem, shape: slices.Clone(shape), size: n * elem.size, depth: elem.depth + 1}
	if _, ok := elem.solid(); ok {
		t.words = 1
	} else {
		t.words = n * elem.words
	}
	if runs := len(elem.Narrow()); runs > maxWords/n && elem.kind == Struct {
		return Type{}, badType("more than %d scalars in one element", maxWords)
	}
	return t, t.check()
}

func (t Type) check() error {
	switch {
	case t.size > maxSize:
		return badType("element of over %d bytes", maxSize)
	case t.depth > maxDepth:
		return badType("nested deeper than %d", maxDepth)
	case t.words > maxWords:
		return badType("more than %d scalars in one element", maxWords)
	}
	return nil
}

// NewString returns variable-length UTF-8 text.
func NewString() Type { return Type{kind: String} }

// NewBytes returns variable-length byte strings.
func NewBytes() Type { return Type{kind: Bytes} }

// NewJSON returns JSON values, each kept as its text.
func NewJSON() Type { return Type{kind: JSON} }

// NewRagged returns one-dimensional arrays of elem, which has a fixed size, of
// any length.
func NewRagged(elem Type) (Type, error) {
	if elem.kind == Invalid || elem.Variable() {
		return Type{}, badType("elements of a ragged array have a fixed size")
	}
	t := Type{kind: Ragged, elem: &elem, depth: elem.depth + 1}
	return t, t.check()
}

// clip shortens text from a document so that an error stays readable.
func clip(s string) string {
	const n = 60
	if len(s) <= n {
		return s
	}
	cut := n
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

func clipShape(s []int) []int { return s[:min(len(s), 8)] }
