package codecs

import (
	"context"

	"github.com/zarrdb/zarrdb/codecs/internal/scratch"
)

// EncodePartial appends an encoded chunk that is old with the elements of box
// replaced by the elements of src. old is nil for a chunk that is not there and
// holds the fill value. Only for fixed-size types.
//
// In a shard the encoded inner chunks outside the box are copied, and inner
// chunks with only the fill value are left out. If none remains, nothing is
// appended: the caller deletes the key of the shard.
func (b *Bound) EncodePartial(ctx context.Context, dst []byte, old Source, box Box, src Src) ([]byte, error) {
	if err := b.checkBox(box, src); err != nil {
		return dst, err
	}
	return b.merge(ctx, dst, old, box, src, true)
}

// merge is EncodePartial. With keep, a chunk that is no shard is encoded even if
// it has only the fill value; otherwise nothing is appended.
func (b *Bound) merge(ctx context.Context, dst []byte, old Source, box Box, src Src, keep bool) ([]byte, error) {
	if old != nil {
		if err := b.checkEncoded(old.Size()); err != nil {
			return dst, err
		}
	}
	if b.indexed() {
		c := getCall()
		defer c.put()
		return b.shard.update(ctx, dst, old, c.storedBox(b.perm, box), c.stored(b.perm, src))
	}
	tmp := scratch.Get(b.in.Size)
	defer tmp.Put()
	all := Dst{Data: tmp.B[:b.in.Size], Strides: b.callerBox.strides}
	switch {
	case b.callerBox.whole(box.Count):
	case old == nil:
		FillStrided(all, b.callerBox.shape, b.in.Fill, b.callerBox.size)
	default:
		err := old.ReadRange(ctx, 0, old.Size(), func(data []byte) error {
			return b.DecodeInto(data, wholeBox(b.callerBox.shape), all)
		})
		if err != nil {
			return dst, err
		}
	}
	part := all
	part.Offset = b.callerBox.offset(box.Start)
	CopyStrided(part, src, box.Count, b.callerBox.size)
	if !keep && b.IsFill(all.Data) {
		return dst, nil
	}
	return b.Encode(dst, all.Data)
}

// AppendBox appends the elements of a box of an encoded chunk to dst, in memory
// layout: fixed-size elements in C order, elements of variable length as a block
// of their own. If the codecs allow it, it reads and decodes only the bytes it
// needs.
func (b *Bound) AppendBox(ctx context.Context, dst []byte, src Source, box Box) ([]byte, error) {
	if err := b.callerBox.contains(box); err != nil {
		return dst, err
	}
	if b.in.Type.Variable() {
		return b.appendVariable(ctx, dst, src, box)
	}
	n := len(dst)
	size := elements(box.Count) * b.callerBox.size
	dst = scratch.Grow(dst, int64(size))[:n+size]
	var strides [MaxRank]int
	packedStrides(strides[:], box.Count, b.callerBox.size)
	if err := b.DecodeBox(ctx, src, box, Dst{Data: dst, Offset: n, Strides: strides[:len(box.Count)]}); err != nil {
		return dst[:n], err
	}
	return dst, nil
}

func (b *Bound) appendVariable(ctx context.Context, dst []byte, src Source, box Box) ([]byte, error) {
	if b.indexed() {
		return b.shard.appendVariable(ctx, dst, src, box)
	}
	err := src.ReadRange(ctx, 0, src.Size(), func(data []byte) error {
		if b.callerBox.whole(box.Count) {
			var err error
			dst, err = b.Decode(dst, data)
			return err
		}
		tmp := scratch.Get(int64(len(data)))
		defer tmp.Put()
		var err error
		if tmp.B, err = b.Decode(tmp.B, data); err != nil {
			return err
		}
		dst, err = gatherVariable(dst, tmp.B, &b.callerBox, box)
		return err
	})
	return dst, err
}
