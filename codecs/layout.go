package codecs

import (
	"fmt"
	"slices"
)

// layout is a C-order array: the shape and the strides. Elements of variable
// length count as one byte, so that strides are in elements.
type layout struct {
	shape   []int
	strides []int
	size    int // bytes of one element
}

func newLayout(shape []int, size int) layout {
	l := layout{shape: shape, strides: make([]int, len(shape)), size: size}
	packedStrides(l.strides, shape, size)
	return l
}

// packedStrides sets strides to the strides of an array in C order.
func packedStrides(strides, shape []int, size int) {
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = size
		size *= shape[i]
	}
}

// layout returns where the elements of an array lie.
func (r *Rep) layout() layout {
	if r.Type.Variable() {
		return newLayout(r.Shape, 1)
	}
	return newLayout(r.Shape, r.Type.Size())
}

// bytes returns the size of the whole array.
func (l *layout) bytes() int {
	n := l.size
	for _, s := range l.shape {
		n *= s
	}
	return n
}

// offset returns where the element at the given coordinates lies.
func (l *layout) offset(at []int) int {
	n := 0
	for i, a := range at {
		n += a * l.strides[i]
	}
	return n
}

// contains checks that box lies inside the array.
func (l *layout) contains(box Box) error {
	if len(box.Start) != len(l.shape) || len(box.Count) != len(l.shape) {
		return fmt.Errorf("codecs: box of rank %d, %d for a chunk of rank %d", len(box.Start), len(box.Count), len(l.shape))
	}
	for i, n := range l.shape {
		if box.Start[i] < 0 || box.Count[i] < 0 || box.Count[i] > n || box.Start[i] > n-box.Count[i] {
			// Copies, so that the slices of callers without errors stay on the
			// stack.
			return fmt.Errorf("codecs: box %v + %v outside a chunk of shape %v",
				slices.Clone(box.Start), slices.Clone(box.Count), l.shape)
		}
	}
	return nil
}

// whole reports whether a box of that extent is the whole array.
func (l *layout) whole(count []int) bool { return slices.Equal(l.shape, count) }

// packed reports whether a box of that extent lies in dst without gaps and in
// C order.
func (l *layout) packed(count []int, dst Dst) bool {
	step := l.size
	for i := len(count) - 1; i >= 0; i-- {
		if count[i] != 1 && dst.Strides[i] != step {
			return false
		}
		step *= count[i]
	}
	return true
}

// elements returns the number of elements in a box of that extent.
func elements(count []int) int {
	n := 1
	for _, c := range count {
		n *= c
	}
	return n
}
