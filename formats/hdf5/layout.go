package hdf5

import (
	"github.com/zarrdb/zarrdb/formats"
)

// Classes of layouts.
const (
	compact = iota
	contiguous
	chunked
	virtualSet
)

// Types of indexes of chunks.
const (
	indexTree1 = iota
	indexSingle
	indexImplicit
	indexFixed
	indexExtensible
	indexTree2
)

// layout says where the elements of a dataset are.
type layout struct {
	class byte
	addr  int64 // of the elements, or of the index of chunks
	size  int64 // of compact and contiguous elements, -1 if it is not stored

	chunk    []int64 // shape of chunks, with the bytes of an element at its end
	index    byte
	rawEdges bool  // chunks at the border are stored without filters
	single   chunk // of indexSingle with filters
}

// chunk is where a chunk lies, and which filters it skips.
type chunk struct {
	addr, size int64
	mask       uint32
}

// noChunk stands for a chunk that is not stored.
var noChunk = chunk{addr: undefined}

func readLayout(d *dec) (layout, error) {
	var l layout
	version := d.u8()
	switch {
	case d.err != nil:
		return l, d.err
	case version == 1 || version == 2:
		l.old(d)
		return l, l.check(d)
	case version < 3 || version > 5:
		return l, formats.Unsupported("hdf5: layouts of version %d", version)
	}
	l.class = d.u8()
	switch l.class {
	case compact:
		l.size = int64(d.u16())
		l.addr = d.addr + int64(d.off)
		d.skip(int(l.size))
	case contiguous:
		l.addr, l.size = d.address(), d.length()
	case chunked:
		if version == 3 {
			rank := int(d.u8())
			l.addr = d.address()
			l.sizes(d, rank, 4)
			break
		}
		l.chunks(d)
	case virtualSet:
		return l, formats.Unsupported("hdf5: the layout of a virtual dataset is not supported")
	default:
		return l, formats.Unsupported("hdf5: layouts of class %d", l.class)
	}
	return l, l.check(d)
}

// old reads a layout of version 1 or 2.
func (l *layout) old(d *dec) {
	rank := int(d.u8())
	l.class, l.size = d.u8(), -1
	d.skip(5)
	if l.class != compact {
		l.addr = d.address()
	}
	if l.class == chunked {
		l.sizes(d, rank, 4)
		return
	}
	d.skip(4 * rank)
	if l.class == compact {
		l.size = int64(d.u32())
		l.addr = d.addr + int64(d.off)
		d.skip(int(min(l.size, 1<<30)))
	}
}

// sizes reads the shape of chunks.
func (l *layout) sizes(d *dec, rank, n int) {
	if rank < 1 || rank > maxRank+1 {
		d.fail("has chunks of %d dimensions", rank-1)
	}
	for range rank {
		if d.err != nil {
			return
		}
		v := d.uint(n)
		if v < 1 || v > 1<<62 {
			d.fail("has chunks with the size %d", v)
		}
		l.chunk = append(l.chunk, int64(v))
	}
}

// chunks reads the index of chunks of the versions 4 and 5.
func (l *layout) chunks(d *dec) {
	flags, rank, n := d.u8(), int(d.u8()), int(d.u8())
	if n < 1 || n > 8 {
		d.fail("has sizes of %d bytes", n)
	}
	l.rawEdges = flags&1 != 0
	l.sizes(d, rank, n)
	l.index = d.u8()
	l.single = noChunk
	switch l.index {
	case indexSingle:
		if flags&2 != 0 {
			l.single.size, l.single.mask = d.length(), d.u32()
		}
	case indexImplicit:
	case indexFixed:
		d.skip(1)
	case indexExtensible:
		d.skip(5)
	case indexTree2:
		d.skip(6)
	default:
		if d.err == nil {
			d.err = formats.Unsupported("hdf5: indexes of chunks of type %d", l.index)
		}
	}
	l.addr = d.address()
}

func (l *layout) check(d *dec) error {
	if d.err == nil && l.class > chunked {
		d.fail("has class %d", l.class)
	}
	return d.err
}
