package dtype

import "slices"

// Kind is the family that a data type belongs to.
type Kind uint8

// The kinds. Elements of the kinds before String have a fixed size; kinds from
// String on have a variable size.
const (
	Invalid    Kind = iota
	Bool            // one byte, 0 or 1
	Int             // signed, Bits wide; int2 and int4 are sign-extended to a byte
	Uint            // unsigned, Bits wide
	Float           // IEEE 754 binary16/32/64, or a narrow format named by Format
	Complex         // two floats, real part first
	Raw             // r8, r16, …; V1, V16: opaque bytes
	FixedBytes      // S5, null_terminated_bytes: bytes padded with zeros
	FixedUTF32      // U5, fixed_length_utf32: code points padded with zeros
	Datetime        // int64 since 1970-01-01 in Scale × Unit; NaT is the minimum
	Timedelta       // int64 in Scale × Unit; NaT is the minimum
	Struct          // named fields, packed in order
	subarray        // a fixed shape of another type, C order

	String // UTF-8 text
	Bytes  // byte strings
	Ragged // one-dimensional arrays of Elem of any length
	JSON   // any JSON value, kept as its text
)

// Order is the byte order in which a scalar is stored by Zarr v1 and v2, where
// it is part of the data type. In memory every scalar is little-endian.
type Order uint8

// The byte orders. None is for types whose scalars are one byte wide or that
// have no fixed width, and for types of Zarr v3, where a codec decides.
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
	order  Order  // as stored by v1 and v2
	depth  uint8  // levels of types below: 0 for scalars
	bits   uint16 // of an element where its family has widths: int4 has 4, complex64 has 64
	size   int    // bytes of one element in memory; 0 if variable
	words  int    // at least len(Words()), so that it can be limited before it is built
	alias  string // its name in v3 metadata, if PrintV3 would choose another
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

// Bits returns the width of an element of the kinds from Bool to Complex: 4
// for int4, 32 for float32, 64 for complex64, 8 for bool.
func (t Type) Bits() int { return int(t.bits) }

// Order returns the stored byte order of a v1 or v2 data type. It is None for a
// Struct or a Subarray, whose scalars have their own orders.
func (t Type) Order() Order { return t.order }

// Format names a float that is not IEEE 754, such as "bfloat16"; for a Complex
// it names the format of its parts.
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

// Equal reports whether t and u are the same type stored in the same byte order.
// Their names in metadata are not compared. To compare only the values that
// elements can have, compare t.WithOrder(None).
func (t Type) Equal(u Type) bool {
	if t.kind != u.kind || t.order != u.order || t.bits != u.bits || t.size != u.size ||
		t.format != u.format || t.unit != u.unit || t.scale != u.scale ||
		!slices.Equal(t.shape, u.shape) || (t.elem == nil) != (u.elem == nil) {
		return false
	}
	if t.elem != nil && !t.elem.Equal(*u.elem) {
		return false
	}
	return slices.EqualFunc(t.fields, u.fields, func(a, b Field) bool {
		return a.Name == b.Name && a.Offset == b.Offset && a.Type.Equal(b.Type)
	})
}

// WithOrder returns t with the given byte order for every scalar that has one;
// None is the form of v3.
func (t Type) WithOrder(o Order) Type {
	if t.hasOrder() {
		t.order = o
	}
	if t.elem != nil {
		e := t.elem.WithOrder(o)
		t.elem = &e
	}
	if t.fields != nil {
		t.fields = slices.Clone(t.fields)
		for i := range t.fields {
			t.fields[i].Type = t.fields[i].Type.WithOrder(o)
		}
	}
	return t
}

// hasOrder reports whether t itself consists of scalars wider than a byte.
func (t Type) hasOrder() bool {
	switch t.kind {
	case Int, Uint, Float, Complex, FixedUTF32, Datetime, Timedelta:
		return t.words > 0
	}
	return false
}

// Word is a run of scalars inside one element: Count of them, Size bytes each,
// from Offset on.
type Word struct {
	Offset, Size, Count int
	// Order is the stored order of v1 and v2; None for v3.
	Order Order
}

// Words returns the scalars of one element that are wider than a byte, in the
// order of their offsets, neighbours of one size and order as one run: the words
// to reverse to change byte order. A Complex gives a run of two, a FixedUTF32
// one per code point; Raw, FixedBytes and variable-length types give none. The
// caller owns the slice.
func (t Type) Words() []Word {
	if t.words == 0 {
		return nil
	}
	return t.appendWords(make([]Word, 0, t.words), 0)
}

func (t Type) appendWords(dst []Word, off int) []Word {
	switch t.kind {
	case Struct:
		for _, f := range t.fields {
			dst = f.Type.appendWords(dst, off+f.Offset)
		}
	case subarray:
		if w, ok := t.elem.solid(); ok {
			w.Offset = off
			w.Count = t.size / w.Size
			return appendWord(dst, w)
		}
		for o := 0; o < t.size && t.words > 0; o += t.elem.size {
			dst = t.elem.appendWords(dst, off+o)
		}
	default:
		if n := t.wordSize(); n > 1 {
			dst = appendWord(dst, Word{Offset: off, Size: n, Count: t.size / n, Order: t.order})
		}
	}
	return dst
}

// NarrowRun is a run of scalars of less than eight bits inside one element:
// Count of them, a byte each, from Offset on. In memory the bits above Bits are
// copies of the sign if Signed, else 0.
type NarrowRun struct {
	Offset, Count, Bits int
	Signed              bool
}

// Narrow returns the scalars of one element that have less than eight bits, such
// as int4 and float6_e3m2fn: nil for almost every type. The caller owns the
// slice.
func (t Type) Narrow() []NarrowRun { return t.appendNarrow(nil, 0) }

func (t Type) appendNarrow(dst []NarrowRun, off int) []NarrowRun {
	switch t.kind {
	case Struct:
		for _, f := range t.fields {
			dst = f.Type.appendNarrow(dst, off+f.Offset)
		}
	case subarray:
		one := t.elem.appendNarrow(nil, 0)
		if len(one) == 1 && one[0].Count == t.elem.size {
			one[0].Offset, one[0].Count = off, t.size
			return append(dst, one[0])
		}
		for o := 0; o < t.size && len(one) > 0; o += t.elem.size {
			for _, r := range one {
				r.Offset += off + o
				dst = append(dst, r)
			}
		}
	default:
		if bits := t.scalarBits(); bits < 8 {
			dst = append(dst, NarrowRun{Offset: off, Count: t.size, Bits: bits, Signed: t.kind == Int})
		}
	}
	return dst
}

// scalarBits is the width of t's numbers, 8 if it has none.
func (t Type) scalarBits() int {
	switch t.kind {
	case Int, Uint, Float:
		return t.Bits()
	case Complex:
		return t.Bits() / 2
	}
	return 8
}

// appendWord joins w to the run before it if size and order are equal.
func appendWord(dst []Word, w Word) []Word {
	if n := len(dst); n > 0 {
		p := &dst[n-1]
		if p.Size == w.Size && p.Order == w.Order && p.Offset+p.Size*p.Count == w.Offset {
			p.Count += w.Count
			return dst
		}
	}
	return append(dst, w)
}

// solid returns the one word that an element of t consists of, if it does.
func (t Type) solid() (Word, bool) {
	switch t.kind {
	case subarray:
		w, ok := t.elem.solid()
		return w, ok
	case Struct:
		return Word{}, false
	}
	n := t.wordSize()
	return Word{Size: n, Order: t.order}, n > 1
}

// wordSize is the width of t's scalars where they have a byte order, else 0.
func (t Type) wordSize() int {
	switch t.kind {
	case Int, Uint, Float, Datetime, Timedelta:
		return t.size
	case Complex:
		return t.size / 2
	case FixedUTF32:
		return 4
	}
	return 0
}

// Zero returns a new element all of whose bytes are zero; for a
// variable-length type it is empty, for JSON the text null.
func (t Type) Zero() []byte {
	if t.kind == JSON {
		return []byte("null")
	}
	return make([]byte, t.size)
}

// Swap reverses the bytes of every scalar of one element in place.
func (t Type) Swap(elem []byte) {
	for _, w := range t.Words() {
		swapWords(elem, w)
	}
}

// toMemory turns an element as v1 and v2 store it into memory layout, or back.
func (t Type) toMemory(elem []byte) {
	for _, w := range t.Words() {
		if w.Order == Big {
			swapWords(elem, w)
		}
	}
}

func swapWords(elem []byte, w Word) {
	for p := elem[w.Offset : w.Offset+w.Size*w.Count]; len(p) > 0; p = p[w.Size:] {
		slices.Reverse(p[:w.Size])
	}
}
