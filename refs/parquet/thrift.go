package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zarrdb/zarrdb/kv"
)

// errShort means that a structure is longer than the bytes read so far.
var errShort = corrupt("structure is cut off")

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", kv.ErrCorrupt, fmt.Sprintf(format, args...))
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("parquet: %s: %w", fmt.Sprintf(format, args...), errors.ErrUnsupported)
}

// Types of thrift's compact protocol.
const (
	tStop   = 0
	tTrue   = 1
	tFalse  = 2
	tByte   = 3
	tI16    = 4
	tI32    = 5
	tI64    = 6
	tDouble = 7
	tBinary = 8
	tList   = 9
	tSet    = 10
	tMap    = 11
	tStruct = 12
)

// decoder reads thrift's compact protocol. After an error all results are zero, so that callers
// check for an error once, at the end.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b = nil
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail(errShort)
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		if n < 0 {
			d.fail(corrupt("number beyond 64 bits"))
		}
		d.fail(errShort)
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v := d.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// i64 reads a field of type tI64.
func (d *decoder) i64(typ byte) int64 {
	if !d.is(typ, tI64) {
		return 0
	}
	return d.int()
}

// i32 reads a field of type tI32.
func (d *decoder) i32(typ byte) int32 {
	if !d.is(typ, tI32) {
		return 0
	}
	v := d.int()
	if v != int64(int32(v)) {
		d.fail(corrupt("number beyond 32 bits"))
		return 0
	}
	return int32(v)
}

// bytes returns a part of the decoder's input.
func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.fail(errShort)
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

// list reads the header of a list. Each element takes a byte or more, which
// bounds n.
func (d *decoder) list() (n int, elem byte) {
	h := d.byte()
	size := uint64(h >> 4)
	if size == 15 {
		size = d.uvarint()
	}
	if size > uint64(len(d.b)) {
		d.fail(errShort)
		return 0, 0
	}
	return int(size), h & 15
}

// structs calls fn for each element of a list of structures.
func (d *decoder) structs(typ byte, fn func()) {
	if typ != tList {
		d.fail(corrupt("not a list"))
		return
	}
	n, elem := d.list()
	if n > 0 && elem != tStruct {
		d.fail(corrupt("not a list of structures"))
		return
	}
	for range n {
		if d.err != nil {
			return
		}
		fn()
	}
}

// structure calls field for each field of a structure. field reads the value,
// or returns false to have it skipped. Wrong types are an error.
func (d *decoder) structure(field func(id int16, typ byte) bool) {
	id := int16(0)
	for d.err == nil {
		h := d.byte()
		typ := h & 15
		if typ == tStop {
			return
		}
		if delta := int16(h >> 4); delta != 0 {
			id += delta
		} else {
			id = int16(d.int())
		}
		if d.err == nil && !field(id, typ) {
			d.skip(typ, 0)
		}
	}
}

// is reports whether a field has the wanted type.
func (d *decoder) is(typ, want byte) bool {
	if typ != want {
		d.fail(corrupt("field of type %d instead of %d", typ, want))
	}
	return typ == want
}

// maxNesting bounds structures that are skipped.
const maxNesting = 32

func (d *decoder) skip(typ byte, depth int) {
	if depth > maxNesting {
		d.fail(corrupt("nested too deep"))
	}
	if d.err != nil {
		return
	}
	switch typ {
	case tTrue, tFalse:
	case tByte:
		d.byte()
	case tI16, tI32, tI64:
		d.uvarint()
	case tDouble:
		if len(d.b) < 8 {
			d.fail(errShort)
			return
		}
		d.b = d.b[8:]
	case tBinary:
		d.bytes()
	case tList, tSet:
		n, elem := d.list()
		for range n {
			d.element(elem, depth)
		}
	case tMap:
		n := d.uvarint()
		if n > uint64(len(d.b)) {
			d.fail(errShort)
		}
		if n == 0 || d.err != nil {
			return
		}
		types := d.byte()
		for range n {
			d.element(types>>4, depth)
			d.element(types&15, depth)
			if d.err != nil {
				return
			}
		}
	case tStruct:
		d.structure(func(_ int16, typ byte) bool {
			d.skip(typ, depth+1)
			return true
		})
	default:
		d.fail(corrupt("type %d", typ))
	}
}

// element skips an element of a collection, in which a boolean is a byte.
func (d *decoder) element(typ byte, depth int) {
	if typ == tTrue || typ == tFalse {
		typ = tByte
	}
	d.skip(typ, depth+1)
}

// encoder writes thrift's compact protocol. Fields are written in the order of
// their numbers.
type encoder struct {
	b    []byte
	last []int16 // number of the last field, of each open structure
}

func (e *encoder) begin() { e.last = append(e.last, 0) }

func (e *encoder) end() {
	e.b = append(e.b, tStop)
	e.last = e.last[:len(e.last)-1]
}

func (e *encoder) field(id int16, typ byte) {
	last := &e.last[len(e.last)-1]
	e.b = append(e.b, byte(id-*last)<<4|typ)
	*last = id
}

func (e *encoder) varint(v int64) {
	e.b = binary.AppendUvarint(e.b, uint64(v)<<1^uint64(v>>63))
}

func (e *encoder) i32(id int16, v int32) {
	e.field(id, tI32)
	e.varint(int64(v))
}

func (e *encoder) i64(id int16, v int64) {
	e.field(id, tI64)
	e.varint(v)
}

func (e *encoder) text(s string) {
	e.b = append(binary.AppendUvarint(e.b, uint64(len(s))), s...)
}

func (e *encoder) binary(id int16, s string) {
	e.field(id, tBinary)
	e.text(s)
}

// list opens a field that is a list of n elements, which follow.
func (e *encoder) list(id int16, elem byte, n int) {
	e.field(id, tList)
	if n < 15 {
		e.b = append(e.b, byte(n)<<4|elem)
		return
	}
	e.b = binary.AppendUvarint(append(e.b, 0xf0|elem), uint64(n))
}
