package tree

import (
	"encoding/binary"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// pageEncoder collects the items of one page by columns. Its buffers are used
// again for the next page.
type pageEncoder struct {
	height uint8
	n      int
	keys   keyEncoder
	kinds  runEncoder
	sum    Root // Entries, Bytes, Flags so far

	inlineLens []uint64
	inline     []byte
	native     refEncoder
	packs      []byte
	packIDs    map[PackID]int
	sums       []byte
	virtual    refEncoder
	sources    sourceEncoder
	child      rootEncoder
	offsets    []uint64 // scratch

	scratch []byte
}

// rootEncoder is the writing twin of rootColumn.
type rootEncoder struct {
	names                                 []byte
	heights, sizes, entries, bytes, flags []uint64
}

func (e *rootEncoder) reset() {
	e.names = e.names[:0]
	for _, c := range []*[]uint64{&e.heights, &e.sizes, &e.entries, &e.bytes, &e.flags} {
		*c = (*c)[:0]
	}
}

func (e *rootEncoder) add(r *Root) {
	e.names = append(e.names, r.Name[:]...)
	e.heights = append(e.heights, uint64(r.Height))
	e.sizes = append(e.sizes, uint64(r.Size))
	e.entries = append(e.entries, r.Entries)
	e.bytes = append(e.bytes, r.Bytes)
	e.flags = append(e.flags, uint64(r.Flags))
}

func (e *rootEncoder) appendTo(dst []byte, heights bool) []byte {
	dst = append(dst, e.names...)
	if heights {
		dst = appendPacked(dst, e.heights)
	}
	dst = appendPacked(dst, e.sizes)
	dst = appendPacked(dst, e.entries)
	dst = appendPacked(dst, e.bytes)
	return appendPacked(dst, e.flags)
}

// reset starts a page of the given height.
func (e *pageEncoder) reset(height uint8) {
	e.height, e.n, e.sum = height, 0, Root{Height: height}
	e.keys.reset()
	e.child.reset()
	if height > 0 {
		return
	}
	e.kinds.reset()
	e.inlineLens, e.inline = e.inlineLens[:0], e.inline[:0]
	e.native.reset(true)
	e.packs, e.sums = e.packs[:0], e.sums[:0]
	clear(e.packIDs)
	e.virtual.reset(false)
	e.sources.reset()
}

// release puts the encoder back into the pool, without references to memory of the caller.
func (e *pageEncoder) release() {
	e.reset(0)
	encoderPool.Put(e)
}

// add appends an item; false if its key is not greater than the one before. In
// an interior page the item is a KindChild value with the root of a page.
func (e *pageEncoder) add(x *Entry) bool {
	if !e.keys.add(x.Key) {
		return false
	}
	e.addValue(&x.Value)
	return true
}

// addValue appends the value of an item.
func (e *pageEncoder) addValue(v *Value) {
	e.n++
	e.sum.Bytes += v.bytes()
	if e.height > 0 {
		e.sum.Entries += v.Child.Entries
		e.sum.Flags |= v.Child.Flags
		e.child.add(&v.Child)
		return
	}
	e.sum.Entries++
	e.sum.Flags |= v.flags()
	e.kinds.add(int64(v.Kind))
	switch v.Kind {
	case KindInline:
		e.inlineLens = append(e.inlineLens, uint64(len(v.Inline)))
		e.inline = append(e.inline, v.Inline...)
	case KindNative:
		e.native.add(e.packID(&v.Pack), v.Offset, v.Length)
		e.sums = append(e.sums, v.Sum[:]...)
	case KindVirtual:
		e.virtual.add(e.sources.id(&v.Source), v.Offset, v.Length)
	case KindChild:
		e.child.add(&v.Child)
	}
}

// packID returns the number of a pack in the dictionary.
func (e *pageEncoder) packID(p *PackID) int {
	const size = len(PackID{})
	if n := e.native.state.entry * size; n < len(e.packs) && PackID(e.packs[n:]) == *p {
		return e.native.state.entry
	}
	id, ok := e.packIDs[*p]
	if !ok {
		if e.packIDs == nil {
			e.packIDs = map[PackID]int{}
		}
		id = len(e.packs) / size
		e.packIDs[*p] = id
		e.packs = append(e.packs, p[:]...)
	}
	return id
}

// finish returns the bytes of the page, which the caller owns, and its root.
func (e *pageEncoder) finish() ([]byte, Root) {
	b := append(e.scratch[:0], pageFormat, e.height)
	b = binary.AppendUvarint(b, uint64(e.n))
	b = append(b, e.keys.buf...)
	if e.height > 0 {
		b = e.child.appendTo(b, false)
	} else {
		b = e.appendValues(b)
	}
	e.scratch = b
	out := make([]byte, len(b))
	copy(out, b)
	root := e.sum
	root.Name, root.Size = digest.Of(out), uint32(len(out))
	return out, root
}

func (e *pageEncoder) appendValues(b []byte) []byte {
	e.kinds.flush()
	b = append(b, e.kinds.buf...)
	if len(e.inlineLens) > 0 {
		b = appendPacked(b, e.inlineLens)
		b = append(b, e.inline...)
	}
	if e.native.n > 0 {
		dict := len(e.packs) / len(PackID{})
		b = binary.AppendUvarint(b, uint64(dict))
		b = append(b, e.packs...)
		b = e.native.appendTo(b, dict)
		b = append(b, e.sums...)
	}
	if e.virtual.n > 0 {
		dict := len(e.sources.list)
		b = binary.AppendUvarint(b, uint64(dict))
		b = append(b, e.sources.buf...)
		b = e.virtual.appendTo(b, dict)
	}
	if len(e.child.names) > 0 {
		b = e.child.appendTo(b, true)
	}
	return b
}
