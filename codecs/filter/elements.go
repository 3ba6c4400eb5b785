package filter

import (
	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/codecs/internal/swap"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// elementOp is the operation of an array-to-array filter on n elements, from one
// type to the other, both in memory layout. dst has the right length and may be
// src if the two sizes are equal.
type elementOp interface {
	encode(dst, src []byte) error
	decode(dst, src []byte) error
}

// bindElements binds a filter that converts elements of from to elements of to,
// by its configuration. Like numcodecs, it interprets its input as such
// elements: in v2 the data type of the array may be another one, and the input
// may already be bytes, in stored byte order.
func bindElements(name string, in codecs.Rep, from, to dtype.Type, op elementOp) (codecs.Stage, codecs.Rep, error) {
	if in.Size < 0 || in.Array && in.Type.Variable() {
		return nil, codecs.Rep{}, codecs.BadField("", "the input has no fixed size")
	}
	if in.Size%int64(from.Size()) != 0 {
		return nil, codecs.Rep{}, codecs.BadField("dtype", "%d bytes are not elements of %v", in.Size, from)
	}
	s := elementStage{name: name, op: op, from: from.Size(), to: to.Size()}
	n := int(in.Size / int64(from.Size()))
	out := codecs.BytesRep(int64(n)*int64(to.Size()), int64(n)*int64(to.Size()))
	out.ItemSize = to.Size()
	if in.Array {
		// From memory to stored bytes, and from there to memory as from has it.
		s.stored, s.pre = swap.Stored(in.Type), swap.Stored(from)
		if s.stored.Flat() == s.pre.Flat() && s.pre.Flat() != 0 {
			s.stored, s.pre = swap.Words{}, swap.Words{}
		}
		shape := in.Shape
		if in.Type.Size() != from.Size() {
			shape = []int{n}
		}
		out = codecs.Rep{Array: true, Type: to, Shape: shape}
		if err := s.setFill(in, &out); err != nil {
			return nil, codecs.Rep{}, err
		}
	} else {
		s.pre, s.post = swap.Stored(from), swap.Stored(to)
	}
	if s.from == s.to {
		return &inPlaceElementStage{s}, out, nil
	}
	return &s, out, nil
}

// setFill makes the fill value of the output. A value that cannot be encoded
// gives no fill value.
func (s *elementStage) setFill(in codecs.Rep, out *codecs.Rep) error {
	if in.Type.Size() != s.from {
		return nil
	}
	fill := make([]byte, s.from)
	copy(fill, in.Fill)
	encoded, err := s.Encode(nil, fill)
	if err != nil {
		return codecs.BadField("", "the fill value cannot be encoded: %w", err)
	}
	out.Fill = encoded
	return nil
}

// elementStage runs an elementOp.
type elementStage struct {
	name     string
	op       elementOp
	from, to int // bytes of an element
	// Conversions of the input bytes to memory layout, and of the output to
	// bytes.
	stored, pre, post swap.Words
}

func (s *elementStage) Encode(dst, src []byte) ([]byte, error) {
	start, n := len(dst), len(src)/s.from
	if !s.stored.None() || !s.pre.None() {
		tmp := scratch.Get(int64(len(src)))
		defer tmp.Put()
		tmp.B = append(tmp.B, src...)
		s.stored.Swap(tmp.B)
		s.pre.Swap(tmp.B)
		src = tmp.B
	}
	dst = scratch.Grow(dst, int64(n)*int64(s.to))[:start+n*s.to]
	if err := s.op.encode(dst[start:], src); err != nil {
		return dst[:start], err
	}
	s.post.Swap(dst[start:])
	return dst, nil
}

func (s *elementStage) Decode(dst, src []byte) ([]byte, error) {
	start, n := len(dst), len(src)/s.to
	if n*s.to != len(src) {
		return dst, codecs.Corruptf(s.name, "%d bytes are not elements of %d", len(src), s.to)
	}
	if !s.post.None() {
		tmp := scratch.Get(int64(len(src)))
		defer tmp.Put()
		tmp.B = append(tmp.B, src...)
		s.post.Swap(tmp.B)
		src = tmp.B
	}
	dst = scratch.Grow(dst, int64(n)*int64(s.from))[:start+n*s.from]
	if err := s.op.decode(dst[start:], src); err != nil {
		return dst[:start], err
	}
	s.pre.Swap(dst[start:])
	s.stored.Swap(dst[start:])
	return dst, nil
}

// inPlaceElementStage is for elements of one size on both sides.
type inPlaceElementStage struct{ elementStage }

var _ codecs.InPlaceStage = (*inPlaceElementStage)(nil)

func (s *inPlaceElementStage) EncodeInPlace(b []byte) error {
	s.stored.Swap(b)
	s.pre.Swap(b)
	err := s.op.encode(b, b)
	s.post.Swap(b)
	return err
}

func (s *inPlaceElementStage) DecodeInPlace(b []byte) error {
	s.post.Swap(b)
	err := s.op.decode(b, b)
	s.pre.Swap(b)
	s.stored.Swap(b)
	return err
}

// numpyType reads a member that is a numpy data type, def if the member is missing. A type that
// filters cannot compute with is an error.
func numpyType(f *codecs.Fields, name string, def dtype.Type) (dtype.Type, number) {
	t := def
	if raw := f.Raw(name); raw != nil {
		var err error
		if t, err = dtype.ParseNumPy(raw); err != nil {
			f.Fail(name, "%w", err)
			return def, notANumber
		}
	}
	k := numberOf(t)
	if k == notANumber {
		f.Fail(name, "%v is not a type to compute with", t)
	}
	return t, k
}

// printNumpy prints a type that was read by numpyType.
func printNumpy(t dtype.Type) string {
	raw, err := t.PrintV2()
	if err != nil || len(raw) < 2 {
		panic(err) // it was parsed from such text
	}
	return string(raw[1 : len(raw)-1])
}
