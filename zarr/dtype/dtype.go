package dtype

// Kind is the family that a data type belongs to.
type Kind uint8

// The kinds. Elements of the kinds before String have a fixed size; those from
// String on have a variable one.
const (
	Invalid    Kind = iota
	Bool            // one byte, 0 or 1
	Int             // signed, Bits wide
	Uint            // unsigned, Bits wide
	Float           // IEEE 754 binary16/32/64, or a narrow format named by Format
	Complex         // two floats, real part first
	Raw             // r8, r16, …; V1, V16: opaque bytes
	FixedBytes      // S5, null_terminated_bytes: bytes padded with zeros
	FixedUTF32      // U5, fixed_length_utf32: code points padded with zeros
	Datetime        // int64 since 1970-01-01 in Scale × Unit; NaT is the minimum
	Timedelta       // int64 in Scale × Unit; NaT is the minimum
	Struct          // named fields, packed in order
	Subarray        // a fixed shape of another type, C order

	String // UTF-8 text
	Bytes  // byte strings
	Ragged // one-dimensional arrays of Elem of any length
	JSON   // any JSON value, kept as its text
)

// Order is the byte order in which a scalar is stored by Zarr v1 and v2, where
// it is part of the data type. In memory every scalar is little-endian.
type Order uint8

// The byte orders. None is for types whose scalars are one byte wide or that
// have no fixed width.
const (
	None Order = iota
	Little
	Big
)

// Type is a Zarr data type. It is a value: copying is cheap, nothing changes
// after parsing, and the zero Type is Invalid. Two types are compared with
// [Type.Equal].
//
// In memory the elements of a fixed-size type lie one after another in C
// order, each Size bytes, every scalar little-endian; sub-byte integers and
// bool take one byte. The elements of a variable-length type of n elements are
// n+1 little-endian uint32 offsets, the first 0, followed by that many bytes
// (see [Variable]).
type Type struct {
	kind   Kind
	bits   uint16 // of a scalar in memory-independent terms: int4 has 4, complex64 has 64
	size   int    // bytes of one element in memory; 0 if variable
	order  Order  // as stored by v1 and v2
	format string // narrow floats by registered name: "bfloat16", "float8_e4m3" …; "" is IEEE
	unit   string // Datetime, Timedelta: "ns", "D" …; "generic"
	scale  int64  // Datetime, Timedelta: units per count
	fields []Field
	elem   *Type // Subarray, Ragged
	shape  []int // Subarray
}

// Field is one field of a Struct.
type Field struct {
	Name string
	Type Type
	// Offset is where the field begins in an element in memory, in bytes.
	Offset int
}

// Kind returns the family.
func (t Type) Kind() Kind { return t.kind }

// Size returns the bytes that one element takes in memory, 0 if it varies.
func (t Type) Size() int { return t.size }

// Variable reports whether elements have no fixed size.
func (t Type) Variable() bool { return t.kind >= String }

// Bits returns the width of a scalar: 4 for int4, 32 for float32, 64 for
// complex64.
func (t Type) Bits() int { return int(t.bits) }

// Order returns the stored byte order of a v1 or v2 data type.
func (t Type) Order() Order { return t.order }

// Format names a float that is not IEEE 754, such as "bfloat16".
func (t Type) Format() string { return t.format }

// Unit returns the unit and the units per count of a Datetime or Timedelta.
func (t Type) Unit() (unit string, scale int64) { return t.unit, t.scale }

// Fields returns the fields of a Struct in order; they must not be changed.
func (t Type) Fields() []Field { return t.fields }

// Elem returns the element type of a Subarray or Ragged and, for a Subarray,
// its shape, which must not be changed.
func (t Type) Elem() (Type, []int) {
	if t.elem == nil {
		return Type{}, nil
	}
	return *t.elem, t.shape
}
