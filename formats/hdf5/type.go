package hdf5

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/zarrdb/zarrdb/formats"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Classes of data types.
const (
	classInt = iota
	classFloat
	classTime
	classText
	classBits
	classOpaque
	classCompound
	classReference
	classEnum
	classVariable
	classArray
	classComplex
)

var classNames = []string{"integers", "floats", "times", "texts", "bit fields", "opaque", "compounds", "references", "enums", "sequences of variable length", "arrays", "complex numbers"}

// datatype is a data type of HDF5.
type datatype struct {
	class  byte
	bits   int // of the class
	size   int
	offset int // of the value in the element, in bits
	prec   int // bits of the value
	float  [5]int
	base   *datatype // of enums, arrays, sequences, complex numbers
	fields []field   // of compounds, or the names of an enum with their values
	dims   []int64   // of arrays
}

// field is a field of a compound, or a value of an enum.
type field struct {
	name   string
	offset int
	typ    *datatype
	value  []byte
}

const (
	maxTypeDepth = 32
	maxFields    = 1 << 12
)

// datatype reads a data type that may be shared.
func (f *file) datatype(ctx context.Context, m *message) (*datatype, error) {
	d, err := f.resolve(ctx, m)
	if err == nil {
		err = f.charge(int64(len(d.b)))
	}
	if err != nil {
		return nil, err
	}
	return readType(d, 0)
}

func readType(d *dec, depth int) (*datatype, error) {
	head := d.u8()
	t := &datatype{class: head & 15, bits: int(d.uint(3)), size: int(d.u32())}
	version := head >> 4
	switch {
	case d.err != nil:
		return nil, d.err
	case version < 1 || version > 5:
		return nil, formats.Unsupported("hdf5: data types of version %d", version)
	case int(t.class) >= len(classNames):
		return nil, formats.Unsupported("hdf5: data types of class %d", t.class)
	case depth > maxTypeDepth:
		return nil, formats.Unsupported("hdf5: data types more than %d deep", maxTypeDepth)
	case t.size <= 0 || t.size > 1<<30:
		return nil, formats.Invalid("hdf5: a data type of %d bytes", t.size)
	}
	pad := 8
	if version >= 3 {
		pad = 1
	}
	inner := func() (*datatype, error) { return readType(d, depth+1) }
	var err error
	switch t.class {
	case classInt, classBits:
		t.offset, t.prec = d.u16(), d.u16()
	case classFloat:
		t.offset, t.prec = d.u16(), d.u16()
		t.float = [5]int{int(d.u8()), int(d.u8()), int(d.u8()), int(d.u8()), int(d.u32())}
	case classTime:
		t.prec = d.u16()
	case classOpaque:
		d.skip(min(t.bits&255, d.left())) // the tag
	case classCompound:
		n := t.bits & 0xffff
		if n > maxFields || n > d.left() {
			return nil, formats.Unsupported("hdf5: a compound of %d fields", n)
		}
		for range n {
			x := field{name: d.text(pad)}
			if version < 3 {
				x.offset = int(d.u32())
			} else {
				x.offset = int(d.uint(sizeOf(uint64(t.size))))
			}
			var dims []int64
			if version == 1 {
				rank := int(d.u8())
				d.skip(11)
				for i := range 4 {
					if n := int64(d.u32()); i < rank {
						dims = append(dims, n)
					}
				}
			}
			if x.typ, err = inner(); err != nil {
				return nil, err
			}
			if len(dims) > 0 {
				n, ok := product(append(slices.Clone(dims), int64(x.typ.size))...)
				if !ok || n == 0 || n > 1<<30 {
					return nil, formats.Invalid("hdf5: the field %q has the shape %v", x.name, dims)
				}
				x.typ = &datatype{class: classArray, size: int(n), base: x.typ, dims: dims}
			}
			if x.offset < 0 || x.offset > t.size-x.typ.size {
				return nil, formats.Invalid("hdf5: the field %q of %d bytes is at %d in %d bytes", x.name, x.typ.size, x.offset, t.size)
			}
			t.fields = append(t.fields, x)
		}
	case classEnum:
		if t.base, err = inner(); err != nil {
			return nil, err
		}
		n := t.bits & 0xffff
		if n > d.left() {
			return nil, formats.Invalid("hdf5: an enum of %d names", n)
		}
		for range n {
			t.fields = append(t.fields, field{name: d.text(pad)})
		}
		for i := range t.fields {
			t.fields[i].value = d.take(t.base.size)
		}
	case classVariable, classComplex:
		t.base, err = inner()
	case classArray:
		rank := int(d.u8())
		if version < 3 {
			d.skip(3)
		}
		if rank > maxRank {
			return nil, formats.Invalid("hdf5: an array type of %d dimensions", rank)
		}
		for range rank {
			t.dims = append(t.dims, int64(d.u32()))
		}
		if version < 3 {
			d.skip(4 * rank)
		}
		if t.base, err = inner(); err == nil {
			if n, ok := product(append(slices.Clone(t.dims), int64(t.base.size))...); !ok || n != int64(t.size) {
				err = formats.Invalid("hdf5: an array type of %d bytes has the shape %v of %d bytes", t.size, t.dims, t.base.size)
			}
		}
	}
	if err == nil {
		err = d.err
	}
	return t, err
}

// isText reports whether elements are texts of variable length.
func (t *datatype) isText() bool { return t.class == classVariable && t.bits&15 == 1 }

// isBool reports whether it is the enum that h5py stores a bool as.
func (t *datatype) isBool() bool {
	if t.class != classEnum || t.size != 1 || len(t.fields) != 2 {
		return false
	}
	for _, x := range t.fields {
		switch {
		case x.name == "FALSE" && x.value[0] == 0, x.name == "TRUE" && x.value[0] == 1:
		default:
			return false
		}
	}
	return t.fields[0].name != t.fields[1].name
}

// element is the form of a type in Zarr.
type element struct {
	typ   dtype.Type
	order dtype.Order // None if no scalar has one
	dims  []int64     // of an array type, behind those of the dataset
}

// unsupported returns the error of a type that has no form in Zarr.
func unsupported(format string, args ...any) error {
	return formats.Unsupported("hdf5: the data type is not supported: %s", fmt.Sprintf(format, args...))
}

// element returns the form of a type.
func (t *datatype) element() (element, error) {
	switch t.class {
	case classInt, classBits, classFloat:
		return t.scalar()
	case classText:
		typ, err := dtype.NewFixedBytes(t.size)
		if err != nil {
			return element{}, unsupported("texts of %d bytes: %v", t.size, err)
		}
		return element{typ: typ}, nil
	case classOpaque:
		typ, err := dtype.NewRaw(t.size)
		if err != nil {
			return element{}, unsupported("opaque elements of %d bytes: %v", t.size, err)
		}
		return element{typ: typ}, nil
	case classEnum:
		e, err := t.base.element()
		if err == nil && t.isBool() {
			e.typ = dtype.NewBool()
		}
		if err == nil && t.base.class != classInt {
			err = unsupported("an enum of %s", classNames[t.base.class])
		}
		return e, err
	case classArray:
		e, err := t.base.element()
		e.dims = slices.Concat(t.dims, e.dims)
		if err == nil && e.typ.Variable() {
			err = unsupported("an array of texts of variable length")
		}
		return e, err
	case classComplex:
		return t.complexOf(t.base)
	case classCompound:
		return t.compound()
	case classVariable:
		if t.isText() {
			return element{typ: dtype.NewString()}, nil
		}
		return element{}, unsupported("ragged sequences (of variable length, vlen) of %s", classNames[t.base.class])
	case classReference:
		kind := "object"
		if t.bits&15 != 0 {
			kind = "region"
		}
		return element{}, unsupported("%s references", kind)
	}
	return element{}, unsupported("%s", classNames[t.class])
}

// scalar returns the form of an integer, a bit field or a float.
func (t *datatype) scalar() (element, error) {
	if t.offset != 0 || t.prec != 8*t.size {
		return element{}, unsupported("%s of %d bits at bit %d in %d bytes: their precision is not their size", classNames[t.class], t.prec, t.offset, t.size)
	}
	e := element{}
	if t.size > 1 {
		e.order = dtype.Little
		if t.bits&1 != 0 {
			e.order = dtype.Big
		}
	}
	switch n := 8 * t.size; {
	case t.class == classFloat:
		ieee := map[int][5]int{16: {10, 5, 0, 10, 15}, 32: {23, 8, 0, 23, 127}, 64: {52, 11, 0, 52, 1023}}
		if t.bits&0x40 != 0 || t.bits>>4&3 != 2 || t.bits>>8&255 != n-1 || ieee[n] != t.float {
			return element{}, unsupported("floats of %d bits that are not those of IEEE 754 (exponent of %d bits, mantissa of %d)", n, t.float[1], t.float[3])
		}
		e.typ = dtype.NewFloat(n)
	case n != 8 && n != 16 && n != 32 && n != 64:
		return element{}, unsupported("%s of %d bits", classNames[t.class], n)
	case t.class == classInt && t.bits&8 != 0:
		e.typ = dtype.NewInt(n)
	default:
		e.typ = dtype.NewUint(n)
	}
	return e, nil
}

func (t *datatype) complexOf(part *datatype) (element, error) {
	e, err := part.element()
	if err != nil || e.typ.Kind() != dtype.Float || len(e.dims) > 0 || t.size != 2*part.size {
		return element{}, unsupported("complex numbers of %s", classNames[part.class])
	}
	e.typ = dtype.NewComplex(2 * e.typ.Bits())
	return e, nil
}

// compound returns the form of a compound: a complex number, as h5py stores it, or a
// struct.
func (t *datatype) compound() (element, error) {
	if x := t.fields; len(x) == 2 && x[0].name == "r" && x[1].name == "i" && x[0].offset == 0 && x[1].offset == x[0].typ.size &&
		x[0].typ.class == classFloat && x[1].typ.class == classFloat && x[0].typ.float == x[1].typ.float && x[0].typ.bits == x[1].typ.bits {
		if e, err := t.complexOf(x[0].typ); err == nil {
			return e, nil
		}
	}
	var list []dtype.Field
	all, end := element{}, 0
	for _, x := range t.fields {
		e, err := x.typ.element()
		switch {
		case err != nil:
			return element{}, fmt.Errorf("%w, in the field %q of a compound", err, x.name)
		case e.typ.Variable():
			return element{}, unsupported("a compound with texts of variable length (vlen) in the field %q", x.name)
		case len(e.dims) > 0:
			return element{}, unsupported("a compound with an array in the field %q", x.name)
		case x.offset != end:
			return element{}, unsupported("a compound with gaps or fields in another order (the field %q is at %d, not %d)", x.name, x.offset, end)
		case e.order != dtype.None && all.order != dtype.None && e.order != all.order:
			return element{}, unsupported("a compound with mixed byte orders")
		}
		if e.order != dtype.None {
			all.order = e.order
		}
		end += x.typ.size
		list = append(list, dtype.Field{Name: x.name, Type: e.typ})
	}
	if end != t.size {
		return element{}, unsupported("a compound with gaps (%d bytes at its end)", t.size-end)
	}
	var err error
	if all.typ, err = dtype.NewStruct(list); err != nil {
		return element{}, unsupported("a compound: %v", err)
	}
	return all, nil
}

// memory changes elements from the file to the memory layout of dtype.
func (e *element) memory(b []byte) []byte {
	b = slices.Clone(b)
	if n := e.typ.Size(); e.order == dtype.Big {
		for at := 0; at+n <= len(b); at += n {
			e.typ.Swap(b[at : at+n])
		}
	}
	return b
}

// fixedText is a text of fixed length: up to its NUL if one ends it, else without the
// NULs behind it.
func (t *datatype) fixedText(b []byte) string {
	if t.bits&15 == 0 {
		b, _, _ = bytes.Cut(b, []byte{0})
	}
	return formats.Text(bytes.TrimRight(b, "\x00"))
}
