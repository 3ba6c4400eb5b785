package codecs

import (
	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// permuteVariable appends the n elements of src in another order: the element at
// index c of shape has the position sum of c·strides on the stored side, which
// is the output if toStored.
func permuteVariable(dst, src []byte, shape, strides []int, toStored bool) ([]byte, error) {
	n := elements(shape)
	v, err := dtype.OpenVariable(src, n)
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
		stored += step(index[:len(shape)], shape, strides)
	}
	w, err := dtype.NewBuilder(scratch.Grow(dst, int64(len(src))), n)
	if err != nil {
		return dst, err
	}
	for _, i := range at {
		if err := w.Append(v.At(int(i))); err != nil {
			return dst, err
		}
	}
	return w.Finish()
}

// gatherVariable appends the elements of a box of src, a chunk of the given
// shape.
func gatherVariable(dst, src []byte, chunk *layout, box Box) ([]byte, error) {
	v, err := dtype.OpenVariable(src, elements(chunk.shape))
	if err != nil {
		return dst, err
	}
	n := elements(box.Count)
	w, err := dtype.NewBuilder(dst, n)
	if err != nil {
		return dst, err
	}
	var index [MaxRank]int
	at := chunk.offset(box.Start)
	for range n {
		if err := w.Append(v.At(at)); err != nil {
			return dst, err
		}
		at += step(index[:len(box.Count)], box.Count, chunk.strides)
	}
	return w.Finish()
}

// step moves index, which counts in C order up to shape, on by one, and returns
// how far that is with the given strides. After the last index it is zero
// again.
func step(index, shape, strides []int) int {
	move := 0
	for d := len(shape) - 1; d >= 0; d-- {
		index[d]++
		move += strides[d]
		if index[d] < shape[d] {
			break
		}
		move -= index[d] * strides[d]
		index[d] = 0
	}
	return move
}

// isFillVariable reports whether all elements of b are fill.
func isFillVariable(b, fill []byte) bool {
	if len(b) < 4 {
		return true
	}
	// n elements that are fill take 4(n+1) + n·len(fill) bytes.
	n := (len(b) - 4) / (4 + len(fill))
	if n*(4+len(fill)) != len(b)-4 {
		return false
	}
	v, err := dtype.OpenVariable(b, n)
	if err != nil {
		return false
	}
	for i := range n {
		if string(v.At(i)) != string(fill) {
			return false
		}
	}
	return true
}
