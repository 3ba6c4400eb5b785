package blosc

import (
	"encoding/binary"
	"slices"
)

// Index knows where the blocks of a frame are, so that a part of the data can
// be decoded from a part of the frame. It is immutable.
type Index struct {
	Info
	table []byte   // the encoded block starts
	ends  []uint32 // where, at most, each block ends
}

// NewIndex reads the header and the block starts from head, the first bytes of
// a frame of size bytes in all. head must have the first IndexSize of them; it
// is not kept.
func NewIndex(head []byte, size int64) (*Index, error) {
	info, err := Header(head)
	if err != nil {
		return nil, err
	}
	if info.FrameSize != size {
		return nil, corrupt("%d bytes, the header has %d", size, info.FrameSize)
	}
	if int64(len(head)) < info.IndexSize() {
		return nil, corrupt("%d bytes of a header of %d", len(head), info.IndexSize())
	}
	x := &Index{Info: info, table: slices.Clone(head[headerSize:info.IndexSize()])}
	starts := make([]uint32, len(x.table)/4)
	for i := range starts {
		starts[i] = binary.LittleEndian.Uint32(x.table[4*i:])
		if s := int64(starts[i]); s < info.IndexSize() || s > size {
			return nil, corrupt("block %d begins at %d of %d", i, s, size)
		}
	}
	// A block ends where the next one begins. Blocks written by threads come in
	// any order, and two may begin at the same offset.
	sorted := starts
	if !slices.IsSorted(starts) {
		sorted = slices.Clone(starts)
		slices.Sort(sorted)
	}
	x.ends = make([]uint32, len(starts))
	for i, s := range starts {
		x.ends[i] = uint32(size)
		if j, _ := slices.BinarySearch(sorted, s+1); j < len(sorted) {
			x.ends[i] = sorted[j]
		}
	}
	return x, nil
}

// Encoded returns which bytes of the frame, from lo to hi, are needed to decode
// n bytes of data from off on, which must be inside.
func (x *Index) Encoded(off, n int64) (lo, hi int64) {
	if n <= 0 {
		return 0, 0
	}
	if x.Stored {
		return headerSize + off, headerSize + off + n
	}
	lo = x.FrameSize
	for k := off / x.BlockSize; k <= (off+n-1)/x.BlockSize; k++ {
		lo = min(lo, int64(binary.LittleEndian.Uint32(x.table[4*k:])))
		hi = max(hi, int64(x.ends[k]))
	}
	return lo, hi
}

// DecodeRange appends n bytes of the data, from off on, to dst. enc is the part
// of the frame that Encoded returned; it begins at lo. Errors are as for
// [Decode].
func (x *Index) DecodeRange(dst, enc []byte, lo, off, n int64) ([]byte, error) {
	return x.decode(dst, x.table, enc, lo, off, n)
}
