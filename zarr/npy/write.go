package npy

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

const magic = "\x93NUMPY"

// align is the alignment of the elements' offset.
const align = 64

// AppendHeader appends all that comes before the elements: product(shape) times
// t.Size() bytes in memory layout. It fails for variable-length types, which
// .npy has not.
func AppendHeader(dst []byte, t dtype.Type, shape []int64) ([]byte, error) {
	descr, ok := t.NumPy()
	if !ok {
		return dst, fmt.Errorf("data type %v has no .npy form", t)
	}
	var h strings.Builder
	fmt.Fprintf(&h, "{'descr': %s, 'fortran_order': False, 'shape': (", descr)
	for i, n := range shape {
		if i > 0 {
			h.WriteString(", ")
		}
		fmt.Fprint(&h, n)
	}
	if len(shape) == 1 {
		h.WriteByte(',')
	}
	h.WriteString("), }")
	// Version 1 has two bytes for the length, version 2 four.
	version, before := byte(1), len(magic)+4
	if h.Len()+align > math.MaxUint16 {
		version, before = 2, len(magic)+6
	}
	pad := align - 1 - (before+h.Len())%align
	n := h.Len() + pad + 1
	dst = append(append(dst, magic...), version, 0)
	if version == 1 {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(n))
	} else {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	}
	dst = append(dst, h.String()...)
	dst = append(dst, strings.Repeat(" ", pad)...)
	return append(dst, '\n'), nil
}
