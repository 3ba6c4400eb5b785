package codecs

import (
	"encoding/json"
	"slices"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
)

// transpose is the v3 codec "transpose" and order "F" of v2: axis i of the
// stored array is axis order[i] of the input.
//
// In front of a chain it never runs: [Chain.Bind] turns it into an axis order
// with which elements are copied between the chunk and the caller's array.
type transpose struct{ order []int }

func parseTranspose(c Config) (Codec, error) {
	f := c.Fields()
	f.Require("order")
	t := &transpose{order: f.Ints("order")}
	if err := f.Err(); err != nil {
		return nil, err
	}
	seen := make([]bool, len(t.order))
	for _, axis := range t.order {
		if axis < 0 || axis >= len(seen) || seen[axis] {
			return nil, BadField("order", "%v is not a permutation", t.order)
		}
		seen[axis] = true
	}
	return t, nil
}

func (t *transpose) Config() json.RawMessage { return Object("order", t.order) }

func (t *transpose) stacked(*Registry) (Codec, error) {
	order := []int{0}
	for _, axis := range t.order {
		order = append(order, axis+1)
	}
	return &transpose{order: order}, nil
}

// permute returns the output Rep for the input in.
func (t *transpose) permute(in Rep) (Rep, error) {
	if len(t.order) != len(in.Shape) {
		return Rep{}, BadField("order", "%v is for %d dimensions, not for %d", t.order, len(t.order), len(in.Shape))
	}
	out := in
	out.Shape = permuted(t.order, in.Shape)
	return out, nil
}

func permuted(order, of []int) []int {
	p := make([]int, len(order))
	for i, axis := range order {
		p[i] = of[axis]
	}
	return p
}

// identity reports whether order is the identity.
func identityOrder(order []int) bool {
	return slices.IsSorted(order)
}

func (t *transpose) Bind(in Rep) (Stage, Rep, error) {
	out, err := t.permute(in)
	if err != nil {
		return nil, Rep{}, err
	}
	if identityOrder(t.order) {
		return nil, out, nil
	}
	s := &transposeStage{in: in.layout(), variable: in.Type.Variable()}
	stored := out.layout()
	// strides[i]: one step along axis i of in, in the bytes of out.
	s.strides = make([]int, len(t.order))
	for i, axis := range t.order {
		s.strides[axis] = stored.strides[i]
	}
	return s, out, nil
}

// transposeStage moves elements, for a transpose after another array codec, or
// of elements of variable length.
type transposeStage struct {
	in       layout
	strides  []int // of the stored elements, by the axes of in
	variable bool
}

func (s *transposeStage) Encode(dst, src []byte) ([]byte, error) {
	if s.variable {
		return permuteVariable(dst, src, s.in.shape, s.strides, true)
	}
	dst = scratch.Grow(dst, int64(len(src)))
	n := len(dst)
	dst = dst[:n+len(src)]
	CopyStrided(Dst{dst[n:], 0, s.strides}, Src{src, 0, s.in.strides}, s.in.shape, s.in.size)
	return dst, nil
}

func (s *transposeStage) Decode(dst, src []byte) ([]byte, error) {
	if s.variable {
		return permuteVariable(dst, src, s.in.shape, s.strides, false)
	}
	dst = scratch.Grow(dst, int64(len(src)))
	n := len(dst)
	dst = dst[:n+len(src)]
	CopyStrided(Dst{dst[n:], 0, s.in.strides}, Src{src, 0, s.strides}, s.in.shape, s.in.size)
	return dst, nil
}
