package codecs

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// n5Default is the registered v3 codec "n5_default": a block of N5 in mode
// "default". All numbers are big-endian:
//
//	mode 0 (2) │ dimensions (2) │ size of each (4) … │ elements, encoded
//
// At the border of an array a block may be smaller than the chunks; the rest is
// filled. A block in mode 1, "varlength", which has the number of elements
// behind the sizes, is read if that number is the product of the sizes.
type n5Default struct {
	codecs Chain
}

func parseN5Default(c Config) (Codec, error) {
	f := c.Fields()
	f.Require("codecs")
	n := &n5Default{}
	inner := f.Raw("codecs")
	if err := f.Err(); err != nil {
		return nil, err
	}
	var err error
	if n.codecs, err = c.ParseInner(inner, "codecs"); err != nil {
		return nil, err
	}
	// A full transposition, big-endian bytes, and one compressor at most.
	list := n.codecs.Codecs()
	if len(list) < 2 || len(list) > 3 {
		return nil, BadField("codecs", "not transpose, bytes and at most one more")
	}
	t, ok := list[0].(*transpose)
	if !ok {
		return nil, BadField("codecs", "the first is not transpose")
	}
	for i, axis := range t.order {
		if axis != len(t.order)-1-i {
			return nil, BadField("codecs", "transpose with the order %v, which does not reverse all axes", t.order)
		}
	}
	if b, ok := list[1].(*bytesCodec); !ok || b.endian == dtype.Little {
		return nil, BadField("codecs", "the second is not bytes with big endian")
	}
	return NewCodec(c.Raw, n.bind), nil
}

func (n *n5Default) bind(in Rep) (Stage, Rep, error) {
	if in.Type.Variable() {
		return nil, Rep{}, BadField("", "elements of variable length are not for this mode")
	}
	if len(in.Shape) > math.MaxUint16 {
		return nil, Rep{}, BadField("", "%d dimensions are too many", len(in.Shape))
	}
	s := &n5Stage{codec: n, in: in, box: in.layout()}
	for _, d := range in.Shape {
		if int64(d) > math.MaxUint32 {
			return nil, Rep{}, BadField("", "a dimension of %d is too large", d)
		}
	}
	var err error
	if s.full, err = n.codecs.Bind(Rep{Type: in.Type, Shape: in.Shape, Fill: in.Fill}); err != nil {
		return nil, Rep{}, err
	}
	// Blocks at the border are smaller, but other writers may have made them
	// larger too.
	out := in.Grown()
	if size := s.full.MaxEncodedSize(); size < math.MaxInt64/2 {
		out.Max = max(out.Max, 4*size)
	}
	return s, out, nil
}

// The modes of a block.
const (
	n5ModeDefault = iota
	n5ModeVarlength
	n5ModeObject
)

type n5Stage struct {
	codec *n5Default
	in    Rep
	box   layout
	full  *Bound
}

func (s *n5Stage) headerSize() int { return 4 + 4*len(s.in.Shape) }

func (s *n5Stage) Encode(dst, src []byte) ([]byte, error) {
	be := binary.BigEndian
	dst = be.AppendUint16(dst, 0)
	dst = be.AppendUint16(dst, uint16(len(s.in.Shape)))
	for _, n := range s.in.Shape {
		dst = be.AppendUint32(dst, uint32(n))
	}
	return s.full.Encode(dst, src)
}

func (s *n5Stage) Decode(dst, src []byte) ([]byte, error) {
	be := binary.BigEndian
	if len(src) < s.headerSize() {
		return dst, Corruptf("n5_default", "%d bytes have no room for the header", len(src))
	}
	mode := be.Uint16(src)
	switch mode {
	case n5ModeDefault, n5ModeVarlength:
	case n5ModeObject:
		return dst, Corruptf("n5_default", "a block in mode object, which is not an array")
	default:
		return dst, Corruptf("n5_default", "mode %d, not 0", mode)
	}
	if rank := be.Uint16(src[2:]); int(rank) != len(s.in.Shape) {
		return dst, Corruptf("n5_default", "%d dimensions, not %d", rank, len(s.in.Shape))
	}
	shape := make([]int, len(s.in.Shape))
	same, size := true, uint64(s.in.Type.Size())
	for i := range shape {
		n := be.Uint32(src[4+4*i:])
		hi, lo := bits.Mul64(size, uint64(n))
		// A block this much larger than a chunk does not belong to this array.
		if hi != 0 || lo > uint64(max(4*s.in.Size, 1<<20)) {
			return dst, Corruptf("n5_default", "a block much larger than a chunk of shape %v", s.in.Shape)
		}
		size, shape[i] = lo, int(n)
		same = same && shape[i] == s.in.Shape[i]
	}
	src = src[s.headerSize():]
	if mode == n5ModeVarlength {
		count := size / uint64(s.in.Type.Size())
		if len(src) < 4 || uint64(be.Uint32(src)) != count {
			return dst, Corruptf("n5_default", "a block in mode varlength that has not one number for each of its %d elements", count)
		}
		src = src[4:]
	}
	if same {
		return s.full.Decode(dst, src)
	}
	b, err := s.codec.codecs.Bind(Rep{Type: s.in.Type, Shape: shape, Fill: s.in.Fill})
	if err != nil {
		return dst, Corruptf("n5_default", "a block of shape %v: %w", shape, err)
	}
	tmp := scratch.Get(int64(size))
	defer tmp.Put()
	if tmp.B, err = b.Decode(tmp.B, src); err != nil {
		return dst, err
	}
	return s.place(dst, tmp.B, b.in.layout()), nil
}

// place appends a chunk with the elements of a block of another shape.
func (s *n5Stage) place(dst, block []byte, from layout) []byte {
	start := len(dst)
	dst = scratch.Grow(dst, s.in.Size)[:start+int(s.in.Size)]
	chunk := dst[start:]
	fillRun(chunk, s.in.Fill)
	count := make([]int, len(s.in.Shape))
	for i := range count {
		count[i] = min(s.in.Shape[i], from.shape[i])
	}
	if elements(count) > 0 {
		CopyStrided(Dst{Data: chunk, Strides: s.box.strides}, Src{Data: block, Strides: from.strides}, count, s.box.size)
	}
	return dst
}
