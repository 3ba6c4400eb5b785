package n5

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math"
	"unicode/utf8"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// stringCodec is the codec of N5's data type "string", a block in mode "varlength".
// Numbers are big-endian:
//
//	mode 1 (2) │ dimensions (2) │ size of each (4) … │ bytes (4) │ strings, encoded
//
// The strings are UTF-8, each ended by NUL, the first dimension varies fastest. At
// the border of an array a block may be smaller than other blocks.
const stringCodec = "zarrdb.n5_string"

type n5String struct {
	codecs codecs.Chain // of the bytes as an array of uint8
}

func parseString(c codecs.Config) (codecs.Codec, error) {
	f := c.Fields()
	f.Require("codecs")
	inner := f.Raw("codecs")
	if err := f.Err(); err != nil {
		return nil, err
	}
	chain, err := c.ParseInner(inner, "codecs")
	if err != nil {
		return nil, err
	}
	if _, err = chain.Bind(codecs.Rep{Type: dtype.NewUint(8), Shape: []int{1}}); err != nil {
		return nil, err
	}
	return codecs.NewCodec(c.Raw, (&n5String{chain}).bind), nil
}

func (n *n5String) bind(in codecs.Rep) (codecs.Stage, codecs.Rep, error) {
	if in.Type.Kind() != dtype.String {
		return nil, codecs.Rep{}, codecs.BadField("", "does not encode the data type %v", in.Type)
	}
	for _, d := range in.Shape {
		if int64(d) > math.MaxInt32 {
			return nil, codecs.Rep{}, codecs.BadField("", "a dimension of %d is too large", d)
		}
	}
	return &stringStage{n, in}, in.Grown(), nil
}

type stringStage struct {
	codec *n5String
	in    codecs.Rep
}

func (s *stringStage) Encode(dst, src []byte) ([]byte, error) {
	v, err := dtype.OpenVariable(src, s.in.Count())
	if err != nil {
		return dst, err
	}
	order := make([]uint32, s.in.Count()) // the element of each place in the block
	element := uint32(0)
	for i := range inOrder(s.in.Shape, s.in.Shape) {
		order[i] = element
		element++
	}
	text := make([]byte, 0, len(src))
	for _, i := range order {
		item := v.At(int(i))
		if bytes.IndexByte(item, 0) >= 0 {
			return dst, codecs.BadField("", "a string with NUL has no form in N5")
		}
		text = append(append(text, item...), 0)
	}
	be := binary.BigEndian
	dst = be.AppendUint16(dst, 1)
	dst = be.AppendUint16(dst, uint16(len(s.in.Shape)))
	for _, n := range s.in.Shape {
		dst = be.AppendUint32(dst, uint32(n))
	}
	dst = be.AppendUint32(dst, uint32(len(text)))
	inner, err := s.inner(len(text))
	if err != nil {
		return dst, err
	}
	return inner.Encode(dst, text)
}

func (s *stringStage) inner(n int) (*codecs.Bound, error) {
	return s.codec.codecs.Bind(codecs.Rep{Type: dtype.NewUint(8), Shape: []int{n}})
}

func (s *stringStage) Decode(dst, src []byte) ([]byte, error) {
	be := binary.BigEndian
	header := 8 + 4*len(s.in.Shape)
	if len(src) < header {
		return dst, codecs.Corruptf(stringCodec, "%d bytes have no room for the header", len(src))
	}
	if mode := be.Uint16(src); mode != 1 {
		return dst, codecs.Corruptf(stringCodec, "mode %d, not 1", mode)
	}
	if rank := be.Uint16(src[2:]); int(rank) != len(s.in.Shape) {
		return dst, codecs.Corruptf(stringCodec, "%d dimensions, not %d", rank, len(s.in.Shape))
	}
	shape, count := make([]int, len(s.in.Shape)), 1
	for i := range shape {
		shape[i] = int(be.Uint32(src[4+4*i:]))
		if shape[i] > s.in.Shape[i] || shape[i] < 0 {
			return dst, codecs.Corruptf(stringCodec, "a block larger than a chunk of shape %v", s.in.Shape)
		}
		count *= shape[i]
	}
	size, limit := int64(be.Uint32(src[header-4:])), s.in.Limit(len(src))
	if size > limit || 4*int64(s.in.Count()) > limit {
		return dst, codecs.Corruptf(stringCodec, "%d strings of %d bytes are more than %d bytes decode to", s.in.Count(), size, len(src))
	}
	if size < int64(count)-1 { // each but the last one is ended
		return dst, codecs.Corruptf(stringCodec, "%d bytes are too short for %d strings", size, count)
	}
	inner, err := s.inner(int(size))
	if err != nil {
		return dst, codecs.Corruptf(stringCodec, "%w", err)
	}
	text, err := inner.Decode(nil, src[header:])
	if err != nil {
		return dst, err
	}
	// Where each string begins, in the order of the block.
	starts := make([]uint32, 1, count+1)
	for at := 0; len(starts) <= count; {
		n := bytes.IndexByte(text[at:], 0)
		if n < 0 && len(starts) == count && at < len(text) { // the last one may be without NUL
			n, text = len(text)-at, append(text, 0)
		}
		if n < 0 {
			return dst, codecs.Corruptf(stringCodec, "%d strings in a block of %d", len(starts)-1, count)
		}
		at += n + 1
		starts = append(starts, uint32(at))
	}
	if int(starts[count]) != len(text) {
		return dst, codecs.Corruptf(stringCodec, "%d bytes behind the last of %d strings", len(text)-int(starts[count]), count)
	}
	w, err := dtype.NewBuilder(dst, s.in.Count())
	if err != nil {
		return dst, err
	}
	for i := range inOrder(s.in.Shape, shape) {
		item := s.in.Fill
		if i >= 0 {
			item = text[starts[i] : starts[i+1]-1]
		}
		if !utf8.Valid(item) {
			return dst, codecs.Corruptf(stringCodec, "string %d is not UTF-8", i)
		}
		if err := w.Append(item); err != nil {
			return dst, err
		}
	}
	return w.Finish()
}

// inOrder yields, for each element of a chunk in C order, its number in a box at the
// origin, in which the first dimension varies fastest; -1 outside the box.
func inOrder(chunk, box []int) iter.Seq[int] {
	return func(yield func(int) bool) {
		strides, n := make([]int, len(chunk)), 1
		for d, step := 0, 1; d < len(chunk); d++ {
			strides[d] = step
			step *= box[d]
			n *= chunk[d]
		}
		index := make([]int, len(chunk))
		for range n {
			at := 0
			for d, i := range index {
				if i >= box[d] {
					at = -1
					break
				}
				at += i * strides[d]
			}
			if !yield(at) {
				return
			}
			for d := len(index) - 1; d >= 0; d-- {
				if index[d]++; index[d] < chunk[d] {
					break
				}
				index[d] = 0
			}
		}
	}
}
