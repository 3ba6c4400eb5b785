package filter

import (
	"encoding/json"
	"math"
	"math/bits"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/internal/value"
)

// reshape is the registered v3 codec of that name: the same elements in the same
// order, as an array of another shape.
type reshape struct {
	dims []reshapeDim
}

// reshapeDim is one dimension of the output: a size, -1 for the remaining
// elements, or the product of dimensions of the input.
type reshapeDim struct {
	size int
	from []int
}

func parseReshape(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	f.Require("shape")
	r := &reshape{}
	raw := f.Raw("shape")
	var items []json.RawMessage
	if raw != nil && (json.Unmarshal(raw, &items) != nil || items == nil) {
		f.Fail("shape", "not a list")
	}
	if len(items) > codecs.MaxRank {
		f.Fail("shape", "%d dimensions are more than %d", len(items), codecs.MaxRank)
		items = nil
	}
	last, rest := -1, false
	for i, item := range items {
		d := reshapeDim{}
		if json.Unmarshal(item, &d.from) == nil && d.from != nil {
			for _, axis := range d.from {
				if axis <= last || axis >= codecs.MaxRank {
					f.Fail("shape", "dimension %d: the dimensions that come in are not in order", i)
				}
				last = axis
			}
		} else if json.Unmarshal(item, &d.size) != nil || d.size == 0 || d.size < -1 || string(item) == "null" {
			f.Fail("shape", "dimension %d: %s is neither a size nor a list of dimensions", i, value.Clip(item))
		} else if d.size == -1 {
			if rest {
				f.Fail("shape", "more than one dimension of -1")
			}
			rest = true
		}
		r.dims = append(r.dims, d)
	}
	return codecs.NewCodec(codecs.Object("shape", raw), r.bind), f.Err()
}

func (r *reshape) bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	if !in.Array {
		return nil, codecs.Rep{}, codecs.BadField("", "needs an array")
	}
	n := int64(in.Count())
	shape := make([]int, len(r.dims))
	known, rest := int64(1), -1
	for i, d := range r.dims {
		size := int64(d.size)
		if d.from != nil {
			size = 1
			for _, axis := range d.from {
				if axis >= len(in.Shape) {
					return nil, codecs.Rep{}, codecs.BadField("shape", "there is no dimension %d", axis)
				}
				size *= int64(in.Shape[axis])
			}
		}
		if size < 0 {
			rest = i
			continue
		}
		hi, lo := bits.Mul64(uint64(known), uint64(size))
		if hi != 0 || lo > math.MaxInt32 && int64(lo) > n {
			return nil, codecs.Rep{}, codecs.BadField("shape", "does not have the %d elements of %v", n, in.Shape)
		}
		known = int64(lo)
		shape[i] = int(size)
	}
	if rest >= 0 {
		if known == 0 || n%known != 0 {
			return nil, codecs.Rep{}, codecs.BadField("shape", "%d elements cannot be divided into %d", n, known)
		}
		shape[rest] = int(n / known)
		known = n
	}
	if known != n {
		return nil, codecs.Rep{}, codecs.BadField("shape", "%v does not have the %d elements of %v", shape, n, in.Shape)
	}
	for i, d := range r.dims {
		if len(d.from) > 0 && !aligned(in.Shape, shape, d.from, i) {
			return nil, codecs.Rep{}, codecs.BadField("shape", "dimension %d of %v is not the product of the dimensions %v of %v", i, shape, d.from, in.Shape)
		}
	}
	out := in
	out.Shape = shape
	// This stage prevents reads of parts in the other shape.
	return sameBytes{}, out, nil
}

// aligned reports whether the dimensions before and behind dimension i of shape have as many
// elements as the dimensions before and behind the given ones of in.
func aligned(in, shape, from []int, i int) bool {
	return elements(shape[:i]) == elements(in[:from[0]]) && elements(shape[i+1:]) == elements(in[from[len(from)-1]+1:])
}

// elements returns the number of elements of an array of that shape.
func elements(shape []int) int { return codecs.Rep{Shape: shape}.Count() }

// sameBytes is a stage that copies its input.
type sameBytes struct{}

var (
	_ codecs.ViewStage    = sameBytes{}
	_ codecs.InPlaceStage = sameBytes{}
)

func (sameBytes) Encode(dst, src []byte) ([]byte, error) { return append(dst, src...), nil }
func (sameBytes) Decode(dst, src []byte) ([]byte, error) { return append(dst, src...), nil }
func (sameBytes) DecodeView(src []byte) ([]byte, error)  { return src, nil }
func (sameBytes) EncodeInPlace([]byte) error             { return nil }
func (sameBytes) DecodeInPlace([]byte) error             { return nil }
