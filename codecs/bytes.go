package codecs

import (
	"context"
	"encoding/json"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/codecs/internal/swap"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// bytesCodec is the v3 codec "bytes", which is implicit in v2: elements one
// after another, their scalars in one byte order.
type bytesCodec struct {
	endian dtype.Order // None: not given
	typed  bool        // v2: the data type has the byte order
}

func parseBytes(c Config) (Codec, error) {
	f := c.Fields()
	b := &bytesCodec{}
	switch f.Enum("endian", "", "little", "big") {
	case "little":
		b.endian = dtype.Little
	case "big":
		b.endian = dtype.Big
	}
	return b, f.Err()
}

func (b *bytesCodec) Config() json.RawMessage {
	switch b.endian {
	case dtype.Little:
		return Object("endian", "little")
	case dtype.Big:
		return Object("endian", "big")
	}
	return nil
}

func (b *bytesCodec) Bind(in Rep) (Stage, Rep, error) {
	if in.Type.Variable() {
		return nil, Rep{}, BadField("", "elements of variable length need a codec such as vlen-utf8")
	}
	out := BytesRep(in.Size, in.Size)
	out.ItemSize = in.Type.Size()
	var words []dtype.Word
	for _, w := range in.Type.Words() {
		order := b.endian
		switch {
		case b.typed:
			order = w.Order
		case order != dtype.None:
		case in.Type.Kind() != dtype.Struct:
			return nil, Rep{}, BadField("endian", `missing: want "little" or "big" for scalars of %d bytes`, w.Size)
		default:
			// Arrays of the data type "structured" were written without it and
			// are little-endian.
		}
		if order == dtype.Big {
			words = append(words, w)
		}
	}
	return &bytesStage{box: in.layout(), swaps: swap.New(words, in.Type.Size()), narrow: in.Type.Narrow()}, out, nil
}

// bytesStage swaps bytes, or only locates elements.
type bytesStage struct {
	box   layout
	swaps swap.Words
	// narrow are the scalars of less than eight bits. The bits above them have
	// no meaning when stored; decoding sets them to their value in memory.
	narrow []dtype.NarrowRun
}

var (
	_ InPlaceStage = (*bytesStage)(nil)
	_ partialStage = (*bytesStage)(nil)
)

// identity reports whether stored and decoded bytes are the same.
func (s *bytesStage) identity() bool { return s.swaps.None() && s.narrow == nil }

// tidy sets the bits above narrow scalars.
func (s *bytesStage) tidy(b []byte) {
	if s.narrow == nil {
		return
	}
	for size := s.box.size; len(b) >= size; b = b[size:] {
		for _, r := range s.narrow {
			part := b[r.Offset : r.Offset+r.Count]
			shift := 8 - r.Bits
			for i, v := range part {
				if r.Signed {
					part[i] = byte(int8(v<<shift) >> shift)
				} else {
					part[i] = v << shift >> shift
				}
			}
		}
	}
}

func (s *bytesStage) Encode(dst, src []byte) ([]byte, error) {
	n := len(dst)
	dst = append(dst, src...)
	s.swaps.Swap(dst[n:])
	return dst, nil
}

func (s *bytesStage) Decode(dst, src []byte) ([]byte, error) {
	n := len(dst)
	dst = append(dst, src...)
	return dst, s.DecodeInPlace(dst[n:])
}

func (s *bytesStage) EncodeInPlace(b []byte) error {
	s.swaps.Swap(b)
	return nil
}

func (s *bytesStage) DecodeInPlace(b []byte) error {
	s.swaps.Swap(b)
	s.tidy(b)
	return nil
}

// DecodeBox reads the runs of bytes that hold the box, several at once where
// the gaps between them are small.
func (s *bytesStage) DecodeBox(ctx context.Context, src Source, box Box, dst Dst) error {
	if elements(box.Count) == 0 {
		return nil
	}
	if b, ok := inMemory(src); ok {
		return s.place(b[s.box.offset(box.Start):], box.Count, s.box.strides, dst)
	}
	r := boxReader{s: s, ctx: ctx, src: src, box: box, dst: dst}
	r.depth, r.span = s.plan(box, gapOf(src))
	return r.walk(0, s.box.offset(box.Start), dst.Offset)
}

// plan decides how a box is read: the axes before depth are walked, the axes from
// it on are read at once, span bytes: as many as possible, as long as the gaps are
// small or the waste is.
func (s *bytesStage) plan(box Box, gap int64) (depth, span int) {
	size, reach, useful := s.box.size, s.box.size, s.box.size
	for d := len(box.Count) - 1; d >= 0; d-- {
		n, stride := box.Count[d], s.box.strides[d]
		if n > 1 && int64(stride-reach) > gap && stride > 4*useful {
			depth = d + 1
			break
		}
		reach += (n - 1) * stride
		useful *= n
	}
	span = size
	for d := depth; d < len(box.Count); d++ {
		span += (box.Count[d] - 1) * s.box.strides[d]
	}
	return depth, span
}

// boxReader reads a box of a plain array.
type boxReader struct {
	s     *bytesStage
	ctx   context.Context
	src   Source
	box   Box
	dst   Dst
	depth int // axes before it are walked
	span  int // bytes of one read
}

// walk reads the elements at the given offsets, with the axes before axis fixed.
func (r *boxReader) walk(axis, off, to int) error {
	if axis == r.depth {
		return r.src.ReadRange(r.ctx, int64(off), int64(r.span), func(b []byte) error {
			return r.s.place(b, r.box.Count[axis:], r.s.box.strides[axis:], Dst{r.dst.Data, to, r.dst.Strides[axis:]})
		})
	}
	for i := range r.box.Count[axis] {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if err := r.walk(axis+1, off+i*r.s.box.strides[axis], to+i*r.dst.Strides[axis]); err != nil {
			return err
		}
	}
	return nil
}

// place copies elements from b to dst and decodes them.
func (s *bytesStage) place(b []byte, count, strides []int, dst Dst) error {
	if s.identity() {
		CopyStrided(dst, Src{Data: b, Strides: strides}, count, s.box.size)
		return nil
	}
	// Elements are decoded where they lie side by side.
	n := elements(count) * s.box.size
	tmp := scratch.Get(int64(n))
	defer tmp.Put()
	tmp.B = tmp.B[:n]
	var packed [MaxRank]int
	packedStrides(packed[:], count, s.box.size)
	side := Dst{Data: tmp.B, Strides: packed[:len(count)]}
	CopyStrided(side, Src{Data: b, Strides: strides}, count, s.box.size)
	if err := s.DecodeInPlace(tmp.B); err != nil {
		return err
	}
	CopyStrided(dst, side, count, s.box.size)
	return nil
}
