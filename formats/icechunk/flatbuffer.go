package icechunk

import (
	"encoding/binary"
	"math"

	"github.com/zarrdb/zarrdb/formats"
)

// buffer is a flatbuffer under examination. The first offset that leads out of it, and
// the first required field that is missing, becomes err; from then on everything is
// empty. So callers look at err once, when they are done. Not safe for concurrent use:
// each goroutine makes its own of the same bytes.
type buffer struct {
	b   []byte
	err error
}

func (f *buffer) fail(format string, args ...any) {
	if f.err == nil {
		f.err = formats.Invalid(format, args...)
	}
}

// span reports whether n bytes at a position lie inside.
func (f *buffer) span(pos, n int) bool {
	if pos < 0 || n < 0 || pos > len(f.b) || n > len(f.b)-pos {
		f.fail("an offset leads out of the file")
		return false
	}
	return f.err == nil
}

func (f *buffer) u32(pos int) uint32 { return binary.LittleEndian.Uint32(f.b[pos:]) }

// follow returns the position that the offset at pos leads to, or -1.
func (f *buffer) follow(pos int) int {
	if !f.span(pos, 4) {
		return -1
	}
	to := uint64(pos) + uint64(f.u32(pos))
	if to > uint64(len(f.b)) {
		f.fail("an offset leads out of the file")
		return -1
	}
	return int(to)
}

// root returns the table that the buffer is.
func (f *buffer) root() table { return f.table(f.follow(0)) }

// table is the table at a position.
func (f *buffer) table(pos int) table {
	if pos < 0 || !f.span(pos, 4) {
		return table{f: f}
	}
	vt := int64(pos) - int64(int32(f.u32(pos)))
	if vt < 0 || vt > int64(len(f.b)) || !f.span(int(vt), 4) {
		f.fail("a table without its layout")
		return table{f: f}
	}
	vtSize := int(binary.LittleEndian.Uint16(f.b[vt:]))
	size := int(binary.LittleEndian.Uint16(f.b[vt+2:]))
	if vtSize < 4 || !f.span(int(vt), vtSize) || !f.span(pos, size) {
		f.fail("a table without its layout")
		return table{f: f}
	}
	return table{f: f, pos: pos, size: size, vt: f.b[vt : int(vt)+vtSize]}
}

// table is a table of a flatbuffer. Fields are named by their number in the schema.
type table struct {
	f         *buffer
	pos, size int
	vt        []byte // how long it is, how long the table is, and the places of the fields
}

// at returns the position of a field of n bytes, or -1 if the table has not got it.
func (t table) at(field, n int) int {
	i := 4 + 2*field
	if i+2 > len(t.vt) {
		return -1
	}
	off := int(binary.LittleEndian.Uint16(t.vt[i:]))
	if off == 0 {
		return -1
	}
	if off+n > t.size {
		t.f.fail("field %d lies outside its table", field)
		return -1
	}
	return t.pos + off
}

// require notes that a field may not be missing.
func (t table) require(pos int, name string) int {
	if pos < 0 {
		t.f.fail("%s is missing", name)
	}
	return pos
}

func (t table) u8(field int, otherwise byte) byte {
	if p := t.at(field, 1); p >= 0 {
		return t.f.b[p]
	}
	return otherwise
}

func (t table) u32(field int) uint32 {
	if p := t.at(field, 4); p >= 0 {
		return t.f.u32(p)
	}
	return 0
}

func (t table) u64(field int) uint64 {
	if p := t.at(field, 8); p >= 0 {
		return binary.LittleEndian.Uint64(t.f.b[p:])
	}
	return 0
}

// fixed returns the bytes of a struct, nil if it is not there.
func (t table) fixed(field, n int) []byte {
	if p := t.at(field, n); p >= 0 {
		return t.f.b[p : p+n]
	}
	return nil
}

// sub returns the table that a field leads to.
func (t table) sub(field int, name string) table {
	p := t.require(t.at(field, 4), name)
	if p < 0 {
		return table{f: t.f}
	}
	return t.f.table(t.f.follow(p))
}

// bytes returns a vector of bytes or a string, nil if it is not there; one that is
// there and empty is not nil.
func (t table) bytes(field int) []byte {
	v := t.vector(field, 1)
	if v.pos == 0 {
		return nil
	}
	return t.f.b[v.pos : v.pos+v.n : v.pos+v.n]
}

// needBytes is bytes of a field that may not be missing.
func (t table) needBytes(field int, name string) []byte {
	b := t.bytes(field)
	if b == nil {
		t.f.fail("%s is missing", name)
	}
	return b
}

// vector returns the vector of a field with elements of so many bytes, an empty one if
// it is not there.
func (t table) vector(field, elem int) vector {
	p := t.at(field, 4)
	if p < 0 {
		return vector{f: t.f}
	}
	p = t.f.follow(p)
	if p < 0 || !t.f.span(p, 4) {
		return vector{f: t.f}
	}
	n := t.f.u32(p)
	if uint64(n)*uint64(elem) > math.MaxInt32 || !t.f.span(p+4, int(n)*elem) {
		t.f.fail("a vector is longer than the file")
		return vector{f: t.f}
	}
	return vector{t.f, p + 4, int(n), elem}
}

// need is vector of a field that may not be missing.
func (t table) need(field, elem int, name string) vector {
	v := t.vector(field, elem)
	if v.pos == 0 {
		t.f.fail("%s are missing", name)
	}
	return v
}

// vector is a list of elements of a fixed size: numbers, structs, or offsets of tables.
type vector struct {
	f            *buffer
	pos, n, elem int
}

// bytes returns an element.
func (v vector) bytes(i int) []byte { return v.f.b[v.pos+i*v.elem : v.pos+(i+1)*v.elem] }

// u32 returns an element that is a number.
func (v vector) u32(i int) uint32 { return v.f.u32(v.pos + 4*i) }

// table returns the table that an element leads to.
func (v vector) table(i int) table { return v.f.table(v.f.follow(v.pos + 4*i)) }

// all returns the bytes of all elements.
func (v vector) all() []byte { return v.f.b[v.pos : v.pos+v.n*v.elem] }
