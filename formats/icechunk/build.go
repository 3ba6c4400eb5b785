package icechunk

import (
	"encoding/binary"

	"github.com/klauspost/compress/zstd"
)

// builder writes a flatbuffer from its beginning to its end: a table leaves room for
// the offsets in it, and their targets come after and fill it.
type builder struct {
	b       []byte
	layouts map[string]int // where the layouts of tables stand, which tables share
}

// newBuilder begins a flatbuffer; the next object is its root.
func newBuilder() *builder {
	f := &builder{layouts: map[string]int{}}
	f.b = append(f.b, 0, 0, 0, 0)
	f.b = append(f.b, "Ichk"...)
	return f
}

// slot is a field of a table: its bytes and how they are aligned, or an offset that is
// filled later. The zero slot is a field that is left out.
type slot struct {
	bytes []byte
	align int
}

func fixedSlot(b []byte) slot { return slot{b, 1} }
func u8Slot(x byte) slot      { return slot{[]byte{x}, 1} }
func u32Slot(x uint32) slot   { return slot{binary.LittleEndian.AppendUint32(nil, x), 4} }
func u64Slot(x uint64) slot   { return slot{binary.LittleEndian.AppendUint64(nil, x), 8} }
func offsetSlot() slot        { return slot{make([]byte, 4), 4} }

// pad aligns the bytes that follow after n more bytes.
func (f *builder) pad(align, n int) {
	for (len(f.b)+n)%align != 0 {
		f.b = append(f.b, 0)
	}
}

// point sets the offset at a place to the offset of the next object.
func (f *builder) point(at int) {
	binary.LittleEndian.PutUint32(f.b[at:], uint32(len(f.b)-at))
}

// table writes a table, to which the offset at a place leads, and returns the places of
// its fields.
func (f *builder) table(at int, fields ...slot) []int {
	for len(fields) > 0 && fields[len(fields)-1].bytes == nil {
		fields = fields[:len(fields)-1]
	}
	layout := make([]byte, 4+2*len(fields))
	size := 4
	for i, s := range fields {
		if s.bytes != nil {
			size = (size + s.align - 1) / s.align * s.align
			binary.LittleEndian.PutUint16(layout[4+2*i:], uint16(size))
			size += len(s.bytes)
		}
	}
	binary.LittleEndian.PutUint16(layout, uint16(len(layout)))
	binary.LittleEndian.PutUint16(layout[2:], uint16(size))
	where, ok := f.layouts[string(layout)]
	if !ok {
		f.pad(2, 0)
		where = len(f.b)
		f.layouts[string(layout)] = where
		f.b = append(f.b, layout...)
	}
	f.pad(8, 0)
	f.point(at)
	start := len(f.b)
	f.b = append(f.b, make([]byte, size)...)
	binary.LittleEndian.PutUint32(f.b[start:], uint32(start-where))
	places := make([]int, len(fields))
	for i, s := range fields {
		if s.bytes != nil {
			places[i] = start + int(binary.LittleEndian.Uint16(layout[4+2*i:]))
			copy(f.b[places[i]:], s.bytes)
		}
	}
	return places
}

// vector writes n elements that are given as bytes.
func (f *builder) vector(at, n, align int, elements []byte) {
	f.pad(max(4, align), 4)
	f.pad(4, 0)
	f.point(at)
	f.b = binary.LittleEndian.AppendUint32(f.b, uint32(n))
	f.b = append(f.b, elements...)
}

// text writes a string.
func (f *builder) text(at int, s string) {
	f.vector(at, len(s), 4, []byte(s))
	f.b = append(f.b, 0)
}

// offsets writes a vector of n offsets and returns the place of the first; the rest
// follows.
func (f *builder) offsets(at, n int) int {
	f.vector(at, n, 4, make([]byte, 4*n))
	return len(f.b) - 4*n
}

var encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(0))

// file is the flatbuffer as a file of version 1.
func (f *builder) file(is kind) []byte {
	out := append([]byte(magic), "zarrdb"...)
	for len(out) < len(magic)+nameLen {
		out = append(out, ' ')
	}
	out = append(out, spec1, byte(is), compressed)
	return encoder.EncodeAll(f.b, out)
}
