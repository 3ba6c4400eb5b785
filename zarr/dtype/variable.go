package dtype

import (
	"encoding/binary"
	"errors"
	"math"
)

// ErrTooLarge means that the elements of a variable-length type take more than
// the 4 GiB that their offsets can address.
var ErrTooLarge = errors.New("dtype: over 4 GiB of variable-length elements")

// ErrLayout means that bytes are not the elements of a variable-length type.
var ErrLayout = errors.New("dtype: bad offsets of variable-length elements")

// Variable is a view of n elements of a variable-length type in memory layout:
//
//	offset 0 │ offset 1 │ … │ offset n │ bytes
//	  n+1 little-endian uint32           element i is bytes[offset i : offset i+1]
//
// Offset 0 is 0 and offset n the number of bytes. The zero Variable has no
// elements. Safe for concurrent use.
type Variable struct {
	offsets []byte
	data    []byte
}

// VariableHeader returns the size of the offsets of n elements, and whether that
// fits an int.
func VariableHeader(n int) (int, bool) {
	if n < 0 || n > math.MaxInt32/4-1 {
		return 0, false
	}
	return 4 * (n + 1), true
}

// OpenVariable checks that buf holds exactly n elements and returns a view of
// them, which keeps buf. At then never fails on buf. Errors are ErrLayout.
func OpenVariable(buf []byte, n int) (Variable, error) {
	h, ok := VariableHeader(n)
	if !ok || len(buf) < h {
		return Variable{}, ErrLayout
	}
	v := Variable{offsets: buf[:h], data: buf[h:]}
	if v.offset(0) != 0 {
		return Variable{}, ErrLayout
	}
	last := uint32(0)
	for i := 1; i <= n; i++ {
		o := v.offset(i)
		if o < last {
			return Variable{}, ErrLayout
		}
		last = o
	}
	if uint64(last) != uint64(len(v.data)) {
		return Variable{}, ErrLayout
	}
	return v, nil
}

func (v Variable) offset(i int) uint32 { return binary.LittleEndian.Uint32(v.offsets[4*i:]) }

// Len returns the number of elements.
func (v Variable) Len() int { return max(len(v.offsets)/4-1, 0) }

// At returns the bytes of element i: a part of the buffer, not to be changed.
// It panics if there is no element i.
func (v Variable) At(i int) []byte {
	a, b := v.offset(i), v.offset(i+1)
	return v.data[a:b:b]
}

// Validate reports whether every element is one of type t: UTF-8 text, JSON
// text, whole elements of a Ragged. Errors are ErrValue.
func (v Variable) Validate(t Type) error {
	if t.kind == Bytes {
		return nil
	}
	if !t.Variable() {
		return badValue("%s has a fixed size", t)
	}
	for i := range v.Len() {
		if t.kind == Ragged {
			if len(v.At(i))%t.elem.size != 0 {
				return badValue("element %d: %d bytes are not whole elements of %s", i, len(v.At(i)), t.elem)
			}
			continue
		}
		if err := t.checkElem(v.At(i)); err != nil {
			return badValue("element %d is not %s", i, t)
		}
	}
	return nil
}

// Builder writes elements of a variable-length type one after another in the
// layout of [Variable]. Make one with NewBuilder. Not safe for concurrent use.
type Builder struct {
	buf   []byte
	start int // of the offsets in buf
	data  int // of the bytes in buf
	next  int // element
	n     int
}

// NewBuilder returns a builder that appends n elements to dst, which it owns
// until Finish.
func NewBuilder(dst []byte, n int) (Builder, error) {
	h, ok := VariableHeader(n)
	if !ok {
		return Builder{}, ErrTooLarge
	}
	b := Builder{start: len(dst), n: n}
	b.data = b.start + h
	if cap(dst) >= b.data {
		b.buf = dst[:b.data]
	} else {
		b.buf = append(dst, make([]byte, h)...)
	}
	clear(b.buf[b.start : b.start+4])
	return b, nil
}

// Append adds one element, whose bytes are copied. It fails with ErrTooLarge
// beyond 4 GiB, and panics after n elements.
func (b *Builder) Append(elem []byte) error {
	b.buf = append(b.buf, elem...)
	return b.end()
}

// AppendString is Append for text.
func (b *Builder) AppendString(elem string) error {
	b.buf = append(b.buf, elem...)
	return b.end()
}

func (b *Builder) end() error {
	if b.next == b.n {
		panic("dtype: more elements than the builder was made for")
	}
	size := uint64(len(b.buf) - b.data)
	if size > math.MaxUint32 {
		return ErrTooLarge
	}
	b.next++
	binary.LittleEndian.PutUint32(b.buf[b.start+4*b.next:], uint32(size))
	return nil
}

// Size returns the bytes of the elements appended so far, without offsets.
func (b *Builder) Size() int { return len(b.buf) - b.data }

// Finish returns dst with the elements appended. It fails with ErrLayout if
// there are fewer than n.
func (b *Builder) Finish() ([]byte, error) {
	if b.next != b.n {
		return nil, ErrLayout
	}
	return b.buf, nil
}
