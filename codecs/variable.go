package codecs

import (
	"encoding/binary"
	"fmt"
	"math"
)

// variable is a block of n variable-length elements in memory: n+1 offsets,
// the first 0, and the bytes that they cut (see [dtype.Type]).
type variable struct {
	n       int
	offsets []byte
	data    []byte
}

// openVariable checks that b is a block of n elements.
func openVariable(b []byte, n int) (variable, error) {
	head := 4 * (int64(n) + 1)
	if int64(len(b)) < head {
		return variable{}, fmt.Errorf("codecs: %d bytes are too short for %d elements of variable length", len(b), n)
	}
	v := variable{n: n, offsets: b[:head], data: b[head:]}
	last := uint32(0)
	for i := range n + 1 {
		off := v.offset(i)
		if i == 0 && off != 0 || off < last {
			return variable{}, fmt.Errorf("codecs: offset %d of element %d of variable length is out of order", off, i)
		}
		last = off
	}
	if int64(last) != int64(len(v.data)) {
		return variable{}, fmt.Errorf("codecs: elements of variable length end at %d of %d bytes", last, len(v.data))
	}
	return v, nil
}

func (v *variable) offset(i int) uint32 { return binary.LittleEndian.Uint32(v.offsets[4*i:]) }

func (v *variable) item(i int) []byte { return v.data[v.offset(i):v.offset(i+1)] }

// variableWriter appends such a block to a slice, one element after another.
type variableWriter struct {
	b     []byte
	start int // of the offsets
	next  int // element to be added
	data  int // start of the data
}

// newVariableWriter reserves the offsets of n elements behind dst.
func newVariableWriter(dst []byte, n, data int) variableWriter {
	w := variableWriter{start: len(dst)}
	head := 4 * (n + 1)
	dst = grow(dst, int64(head)+int64(data))
	w.data = len(dst) + head
	w.b = dst[:w.data]
	clear(w.b[w.start:])
	return w
}

// add appends one element. It fails if the offsets cannot hold its end.
func (w *variableWriter) add(item []byte) error {
	if int64(len(w.b)-w.data)+int64(len(item)) > math.MaxUint32 {
		return fmt.Errorf("codecs: a chunk holds more than 4 GiB of variable-length data")
	}
	w.b = append(w.b, item...)
	w.next++
	binary.LittleEndian.PutUint32(w.b[w.start+4*w.next:], uint32(len(w.b)-w.data))
	return nil
}

// permuteVariable appends the elements of src in another order: the element
// at c, an index into shape, stands at the sum of c·strides on the stored side.
// toStored says that the stored side comes out.
func permuteVariable(dst, src []byte, shape, strides []int, toStored bool) ([]byte, error) {
	n := elements(shape)
	v, err := openVariable(src, n)
	if err != nil {
		return dst, err
	}
	// at[k]: the element of src that comes out as number k.
	at := make([]int32, n)
	var index [MaxRank]int
	stored := 0
	for i := range n {
		if toStored {
			at[stored] = int32(i)
		} else {
			at[i] = int32(stored)
		}
		for d := len(shape) - 1; d >= 0; d-- {
			index[d]++
			stored += strides[d]
			if index[d] < shape[d] {
				break
			}
			stored -= index[d] * strides[d]
			index[d] = 0
		}
	}
	w := newVariableWriter(dst, n, len(v.data))
	for _, i := range at {
		if err := w.add(v.item(int(i))); err != nil {
			return dst, err
		}
	}
	return w.b, nil
}

// isFillVariable reports whether every element of the block b is fill.
func isFillVariable(b, fill []byte) bool {
	if len(b) < 4 {
		return true
	}
	// A block of n elements that are fill has 4(n+1) + n·len(fill) bytes.
	n := (len(b) - 4) / (4 + len(fill))
	if n*(4+len(fill)) != len(b)-4 {
		return false
	}
	v, err := openVariable(b, n)
	if err != nil {
		return false
	}
	for i := range n {
		if string(v.item(i)) != string(fill) {
			return false
		}
	}
	return true
}
