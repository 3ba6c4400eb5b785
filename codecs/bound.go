package codecs

import (
	"context"
	"sync"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
	"github.com/zarrdb/zarrdb/codecs/kernels"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Encode appends the encoded form of a whole chunk to dst; src holds its
// elements in memory layout and is not changed.
func (b *Bound) Encode(dst, src []byte) ([]byte, error) {
	if err := b.checkElements(src); err != nil {
		return dst, err
	}
	if b.perm == nil {
		return b.stages.encode(dst, src)
	}
	return b.EncodeFrom(dst, Src{Data: src, Strides: b.callerBox.strides})
}

// EncodeFrom appends the encoded form of a whole chunk to dst, whose elements
// lie in src. Only for fixed-size types.
func (b *Bound) EncodeFrom(dst []byte, src Src) ([]byte, error) {
	if b.in.Type.Variable() {
		return dst, errVariable
	}
	if len(src.Strides) != len(b.in.Shape) {
		return dst, errStrides(len(src.Strides), len(b.in.Shape))
	}
	if b.perm == nil && b.stages.inPlace() && !b.storedBox.packed(b.in.Shape, src) {
		n := len(dst)
		dst = scratch.Grow(dst, b.in.Size)[:n+int(b.in.Size)]
		CopyStrided(Dst{Data: dst, Offset: n, Strides: b.storedBox.strides}, src, b.in.Shape, b.storedBox.size)
		if err := b.stages.encodeInPlace(dst[n:]); err != nil {
			return dst[:n], err
		}
		return dst, nil
	}
	if b.indexed() {
		// Inner chunks are read in place: a copy of all of them can be large.
		c := getCall()
		defer c.put()
		return b.shard.encodeFrom(dst, nil, c.stored(b.perm, src))
	}
	elems, tmp := b.gather(src)
	defer tmp.Put()
	return b.stages.encode(dst, elems)
}

// gather returns the elements of a whole chunk in the order in which the
// stages take them: a part of src, or a copy in tmp, which then must be put
// back.
func (b *Bound) gather(src Src) (elems []byte, tmp *scratch.Buffer) {
	c := getCall()
	defer c.put()
	shape, from := b.storedBox.shape, c.stored(b.perm, src)
	if b.storedBox.packed(shape, from) {
		return from.Data[from.Offset:][:b.in.Size], nil
	}
	tmp = scratch.Get(b.in.Size)
	tmp.B = tmp.B[:b.in.Size]
	CopyStrided(Dst{Data: tmp.B, Strides: b.storedBox.strides}, from, shape, b.storedBox.size)
	return tmp.B, tmp
}

// Decode appends the elements of a whole encoded chunk to dst, in memory
// layout. The appended bytes have exactly the size of the chunk.
func (b *Bound) Decode(dst, src []byte) ([]byte, error) {
	if err := b.checkEncoded(int64(len(src))); err != nil {
		return dst, err
	}
	if b.perm == nil {
		return b.stages.decode(dst, src)
	}
	// Memory for the size in the metadata is allocated only when the data have
	// been read.
	if b.shard == nil && len(b.stages) > 0 {
		tmp := scratch.Get(b.in.expect(len(src)))
		defer tmp.Put()
		var err error
		if tmp.B, err = b.stages.decode(tmp.B, src); err != nil {
			return dst, err
		}
		src = tmp.B
	}
	n := len(dst)
	dst = scratch.Grow(dst, b.in.Size)[:n+int(b.in.Size)]
	c := getCall()
	defer c.put()
	box, to := wholeBox(b.storedBox.shape), c.stored(b.perm, Dst{Data: dst, Offset: n, Strides: b.callerBox.strides})
	if b.shard == nil {
		CopyStrided(to, b.part(src, box), box.Count, b.storedBox.size)
		return dst, nil
	}
	if err := b.decodeStored(c, src, box, to); err != nil {
		return dst[:n], err
	}
	return dst, nil
}

// DecodeInto decodes a whole encoded chunk and writes the elements of box to
// dst, without a copy in between if the codecs and the layout allow it. After an
// error dst may hold anything. Only for fixed-size types.
func (b *Bound) DecodeInto(src []byte, box Box, dst Dst) error {
	if err := b.checkBox(box, dst); err != nil {
		return err
	}
	if err := b.checkEncoded(int64(len(src))); err != nil {
		return err
	}
	c := getCall()
	defer c.put()
	return b.decodeStored(c, src, c.storedBox(b.perm, box), c.stored(b.perm, dst))
}

// decodeStored is DecodeInto with box and dst in stored order.
func (b *Bound) decodeStored(c *call, src []byte, box Box, dst Dst) error {
	whole := b.storedBox.whole(box.Count)
	if len(b.stages) > 0 && b.shard == nil && whole && b.storedBox.packed(box.Count, dst) {
		n := int(b.in.Size)
		place := dst.Data[dst.Offset : dst.Offset : dst.Offset+n]
		out, err := b.stages.decode(place, src)
		if err != nil || n == 0 {
			return err
		}
		if &out[0] != &dst.Data[dst.Offset] {
			copy(dst.Data[dst.Offset:], out)
		}
		return nil
	}
	few := 2*elements(box.Count) < elements(b.storedBox.shape)
	if few && len(b.tail) > 0 && b.in.Size >= minBlocks && b.Partial() {
		c.mem = src
		return b.decodeBox(context.Background(), &c.mem, box, dst)
	}
	// If the array-to-bytes codec can locate elements, they are copied from its
	// encoded bytes; not if bytes must be swapped, which is faster for all at
	// once if many are wanted.
	rest, pick := b.stages, b.partial != nil
	if pick && b.shard == nil && len(b.tail) > 0 && !b.identity {
		pick = few
	}
	if pick {
		rest = b.tail
	}
	data := src
	if len(rest) > 0 {
		tmp := scratch.Get(rest[0].in.expect(len(src)))
		defer tmp.Put()
		var own *scratch.Buffer
		var err error
		data, own, err = rest.decodeView(tmp, src)
		defer own.Put()
		if err != nil {
			return err
		}
	}
	if pick {
		c.mem = data
		return b.partial.DecodeBox(context.Background(), &c.mem, box, dst)
	}
	CopyStrided(dst, b.part(data, box), box.Count, b.storedBox.size)
	return nil
}

// minBlocks is the size from which on decoding single blocks of a chunk in
// memory pays.
const minBlocks = 128 << 10

// part returns where a box lies in the stored order of a decoded chunk.
func (b *Bound) part(data []byte, box Box) Src {
	return Src{Data: data, Offset: b.storedBox.offset(box.Start), Strides: b.storedBox.strides}
}

// Partial reports whether DecodeBox may read less than the whole value.
func (b *Bound) Partial() bool {
	if b.partial == nil {
		return false
	}
	for _, s := range b.tail {
		if _, ok := s.Stage.(RangeStage); !ok {
			return false
		}
	}
	return true
}

// Ahead returns the range of an encoded chunk that DecodeBox, or ReadIndex of a
// shard, will read first, so that callers can prefetch it: n bytes from off on,
// where n is -1 for all bytes and off is -1 for the last n. gap is the gap of
// the source, see [Gapper].
func (b *Bound) Ahead(box Box, gap int64) (off, n int64) {
	raw, _ := b.partial.(*bytesStage)
	switch {
	case b.indexed() && b.shard.atStart:
		return 0, b.shard.indexSize
	case b.indexed():
		return -1, b.shard.indexSize
	case !b.Partial() || b.MaxEncodedSize() <= 4*gap:
		return 0, -1
	case raw == nil || len(b.tail) > 0:
		return 0, bloscGuess
	}
	c := getCall()
	defer c.put()
	box = c.storedBox(b.perm, box)
	_, span := raw.plan(box, gap)
	return int64(raw.box.offset(box.Start)), int64(span)
}

// DecodeBox writes the elements of a box of an encoded chunk to dst. If the
// codecs allow it, it reads and decodes only the bytes it needs, otherwise all
// of src. After an error dst may hold anything. Only for fixed-size types.
func (b *Bound) DecodeBox(ctx context.Context, src Source, box Box, dst Dst) error {
	if err := b.checkBox(box, dst); err != nil {
		return err
	}
	if err := b.checkEncoded(src.Size()); err != nil {
		return err
	}
	c := getCall()
	defer c.put()
	part, to := c.storedBox(b.perm, box), c.stored(b.perm, dst)
	if !b.Partial() {
		return src.ReadRange(ctx, 0, src.Size(), func(data []byte) error {
			return b.decodeStored(c, data, part, to)
		})
	}
	return b.decodeBox(ctx, src, part, to)
}

// decodeBox is DecodeBox for a chain that can, with box and dst in stored
// order.
func (b *Bound) decodeBox(ctx context.Context, src Source, box Box, dst Dst) error {
	for i := len(b.tail) - 1; i >= 0; i-- {
		var err error
		if src, err = b.tail[i].Stage.(RangeStage).Open(ctx, src); err != nil {
			return err
		}
		if want := b.tail[i].in.Size; want >= 0 && src.Size() != want {
			return Corruptf(b.tail[i].name, "decodes to %d bytes where there must be %d", src.Size(), want)
		}
	}
	return b.partial.DecodeBox(ctx, src, box, dst)
}

// IsFill reports whether elems, any number of elements in memory layout, hold
// nothing but the fill value, bit by bit.
func (b *Bound) IsFill(elems []byte) bool {
	if b.in.Type.Variable() {
		return isFillVariable(elems, b.in.Fill)
	}
	if len(b.in.Fill) == 0 {
		return allZero(elems)
	}
	return kernels.IsRepeat(elems, b.in.Fill)
}

// allZero reports whether b is empty or all zeros.
func allZero(b []byte) bool {
	return len(b) == 0 || b[0] == 0 && kernels.IsRepeat(b, b[:1])
}

// checkElements checks the length of a chunk in memory layout.
func (b *Bound) checkElements(src []byte) error {
	if b.in.Type.Variable() {
		_, err := dtype.OpenVariable(src, b.in.Count())
		return err
	}
	if int64(len(src)) != b.in.Size {
		return errSize(len(src), b.in.Size)
	}
	return nil
}

// checkEncoded checks the length of an encoded chunk, if it is known.
func (b *Bound) checkEncoded(n int64) error {
	if b.out.Size >= 0 && n != b.out.Size {
		return Corruptf(b.last, "%d bytes where there must be %d", n, b.out.Size)
	}
	return nil
}

func (b *Bound) checkBox(box Box, dst Dst) error {
	if b.in.Type.Variable() {
		return errVariable
	}
	if len(dst.Strides) != len(box.Count) {
		return errStrides(len(dst.Strides), len(box.Count))
	}
	return b.callerBox.contains(box)
}

// call holds the state of one call besides scratch buffers: boxes in stored
// order and a Source in memory. Pooled, since they are passed to interfaces
// and would be allocated each time.
type call struct {
	start, count, strides [MaxRank]int
	mem                   Bytes
}

var calls = sync.Pool{New: func() any { return new(call) }}

func getCall() *call { return calls.Get().(*call) }

func (c *call) put() {
	c.mem = nil
	calls.Put(c)
}

// storedBox returns box with its axes in stored order. It is always a copy, so
// that slices of the caller need not be allocated.
func (c *call) storedBox(perm []int, box Box) Box {
	n := len(box.Count)
	for i := range n {
		axis := i
		if perm != nil {
			axis = perm[i]
		}
		c.start[i], c.count[i] = box.Start[axis], box.Count[axis]
	}
	return Box{Start: c.start[:n], Count: c.count[:n]}
}

// stored returns dst with its axes in stored order, as a copy too.
func (c *call) stored(perm []int, dst Dst) Dst {
	n := len(dst.Strides)
	for i := range n {
		axis := i
		if perm != nil {
			axis = perm[i]
		}
		c.strides[i] = dst.Strides[axis]
	}
	return Dst{Data: dst.Data, Offset: dst.Offset, Strides: c.strides[:n]}
}

var zeros [MaxRank]int

// wholeBox returns the box that is all of shape.
func wholeBox(shape []int) Box { return Box{Start: zeros[:len(shape)], Count: shape} }
