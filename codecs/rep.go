package codecs

import (
	"math"
	"math/bits"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// MaxRank is the largest number of dimensions that a chunk may have.
const MaxRank = 64

// maxVariable bounds the decoded size of a chunk of variable-length elements
// without a Max: its offsets have 32 bits.
const maxVariable = math.MaxUint32

// Rep describes the data between two codecs: the elements of one chunk, or
// bytes.
type Rep struct {
	// Array means that the bytes are the elements of an array in the memory
	// layout of dtype: C order of Shape, little-endian.
	Array bool
	// Type, Shape and Fill describe the array. Fill is one element, in memory
	// layout; for variable-length types its bytes without offsets. An empty Fill
	// means zeros. The slices must not be changed.
	Type  dtype.Type
	Shape []int
	Fill  []byte
	// Size is the number of bytes, -1 if it depends on the data. For arrays of
	// fixed-size types it is always known.
	Size int64
	// Max bounds the number of bytes where Size is -1: a decoder stops with
	// ErrCorrupt before it produces more.
	Max int64
	// ItemSize is, for bytes, the size of the elements that they hold, for
	// compressors that shuffle. 0 means unknown and is treated as 1.
	ItemSize int

	// floor is added to the minimum of Limit: the item lengths of a
	// variable-length chunk, which exist even if they compress well.
	floor int64
}

// ArrayRep describes the elements of one chunk. Errors are ErrConfig: too many
// dimensions, or more bytes than can be addressed.
func ArrayRep(t dtype.Type, shape []int, fill []byte) (Rep, error) {
	r := Rep{Array: true, Type: t, Shape: shape, Fill: fill}
	return r, r.measure()
}

// BytesRep describes n bytes, or at most limit bytes if n is -1.
func BytesRep(n, limit int64) Rep { return Rep{Size: n, Max: limit} }

// ItemsRep describes the encoded form of n elements of variable length: at most
// limit bytes. A few bytes for each of them, such as its length, are there
// however well they compress, and Limit allows for that.
func ItemsRep(n int, limit int64) Rep {
	return Rep{Size: -1, Max: limit, floor: 8 * int64(n)}
}

// measure checks an array and sets Size and Max.
func (r *Rep) measure() error {
	if r.Type.Kind() == dtype.Invalid {
		return BadField("", "no data type")
	}
	if len(r.Shape) > MaxRank {
		return BadField("", "%d dimensions are more than %d", len(r.Shape), MaxRank)
	}
	n, err := r.count()
	if err != nil {
		return err
	}
	if r.Type.Variable() {
		// An offset for each element, and the end of the last element.
		if n > (maxVariable-4)/4 {
			return BadField("", "%d elements of variable length are too many for a chunk", n)
		}
		if r.Fill == nil {
			r.Fill = r.Type.Zero()
		}
		r.Size = -1
		if r.Max <= 0 || r.Max > maxVariable {
			r.Max = min(maxVariable, math.MaxInt)
		}
		return nil
	}
	if len(r.Fill) != 0 && len(r.Fill) != r.Type.Size() {
		return BadField("", "fill value of %d bytes for elements of %d", len(r.Fill), r.Type.Size())
	}
	hi, size := bits.Mul64(uint64(n), uint64(r.Type.Size()))
	if hi != 0 || size > math.MaxInt {
		return BadField("", "chunk of shape %v and %d byte elements is too large", r.Shape, r.Type.Size())
	}
	r.Size, r.Max = int64(size), int64(size)
	return nil
}

// count returns the number of elements.
func (r *Rep) count() (int64, error) {
	n := uint64(1)
	zero := false
	for _, s := range r.Shape {
		if s < 0 {
			return 0, BadField("", "negative chunk shape %v", r.Shape)
		}
		if s == 0 {
			zero = true
			continue
		}
		hi, lo := bits.Mul64(n, uint64(s))
		if hi != 0 || lo > math.MaxInt {
			return 0, BadField("", "chunk of shape %v is too large", r.Shape)
		}
		n = lo
	}
	if zero {
		return 0, nil
	}
	return int64(n), nil
}

// Count returns the number of elements of an array.
func (r Rep) Count() int {
	n := 1
	for _, s := range r.Shape {
		n *= s
	}
	return n
}

// Item returns ItemSize, at least 1.
func (r Rep) Item() int { return max(1, r.ItemSize) }

// Limit returns the largest number of bytes that a decoder may produce from an
// encoded value of n bytes. That is the size, if known. If it depends on the
// data, the length of the encoded value bounds it too: 1100-fold is more than
// deflate can expand, and a value that expands more is small or made to exhaust
// memory.
func (r Rep) Limit(n int) int64 {
	if r.Size >= 0 {
		return r.Size
	}
	return min(r.Max, max(64<<20+r.floor, 1100*int64(n)))
}

// Grown returns the output Rep of a bytes-to-bytes codec on r whose size depends
// on the data and is seldom larger than r: a compressor. The bound is generous,
// since other writers may use other block sizes and headers.
func (r Rep) Grown() Rep {
	n := r.Max
	if r.Size >= 0 {
		n = r.Size
	}
	limit := int64(math.MaxInt64)
	if n < math.MaxInt64/4 {
		limit = 2*n + 64<<10
	}
	return Rep{Size: -1, Max: limit, floor: r.floor}
}

// Longer returns the output Rep of a bytes-to-bytes codec on r that adds n
// bytes: a checksum.
func (r Rep) Longer(n int64) Rep {
	out := Rep{Size: -1, Max: r.Max + n, floor: r.floor}
	if r.Size >= 0 {
		out.Size = r.Size + n
		out.Max = out.Size
	}
	if out.Max < 0 {
		out.Max = math.MaxInt64
	}
	return out
}
