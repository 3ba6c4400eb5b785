package hdf5

import (
	"bytes"
	"context"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
)

// fractalHeap is a heap of links, attributes or shared messages.
//
//	header ─▶ direct block                        ID: offset and length in the space of
//	   or  ─▶ indirect block ─▶ direct blocks     all direct blocks; a place in the file
//	                         └▶ indirect blocks   (huge); or the object itself (tiny)
type fractalHeap struct {
	f        *file
	addr     int64
	idLen    int
	offBytes int
	lenBytes int
	sums     bool
	filters  *pipeline // nil if blocks are stored as they are

	width            int
	start, maxDirect int64
	directRows       int
	root             int64
	rows             int // of the root, 0 if it is a direct block
	rootSize         int64
	rootMask         uint32
	hugeTree         int64
}

// heap reads the header of a heap.
func (f *file) heap(ctx context.Context, addr int64) (*fractalHeap, error) {
	return f.heaps.Get(ctx, addr, func() (*fractalHeap, error) { return f.readHeap(ctx, addr) })
}

func (f *file) readHeap(ctx context.Context, addr int64) (*fractalHeap, error) {
	const what = "a fractal heap"
	head := int64(26 + 3*f.addrSize + 12*f.lenSize)
	d, err := f.readSigned(ctx, what, "FRHP", 0, addr, head)
	if err != nil {
		return nil, err
	}
	h := &fractalHeap{f: f, addr: addr, idLen: d.u16()}
	filterBytes := d.u16()
	h.sums = d.u8()&2 != 0
	maxManaged := int64(d.u32())
	d.skip(f.lenSize)
	h.hugeTree = d.address()
	d.skip(9*f.lenSize + f.addrSize)
	h.width = d.u16()
	h.start, h.maxDirect = d.length(), d.length()
	maxBits := d.u16()
	d.skip(2)
	h.root = d.address()
	h.rows = d.u16()
	if filterBytes > 0 {
		n := head + int64(f.lenSize+4+filterBytes)
		at := d.off
		if d, err = f.read(ctx, what, addr, n); err != nil {
			return nil, err
		}
		d.off = at
		h.rootSize, h.rootMask = d.length(), d.u32()
		p := &dec{f: f, b: bytes.Clone(d.take(filterBytes)), what: "the filters of a fractal heap", addr: addr}
		if d.err == nil {
			if h.filters, err = readPipeline(p); err != nil {
				return nil, err
			}
		}
	}
	if err := d.sum(); err != nil {
		return nil, err
	}
	power := func(n int64) bool { return n > 0 && n&(n-1) == 0 }
	if h.width < 1 || h.width > 1<<15 || !power(int64(h.width)) || !power(h.start) || !power(h.maxDirect) || h.start > h.maxDirect || h.maxDirect > 1<<31 ||
		maxBits < 1 || maxBits > 64 || h.idLen < 2 || h.rows > 64 {
		d.fail("has blocks of %d to %d bytes, %d in a row", h.start, h.maxDirect, h.width)
		return nil, d.err
	}
	h.directRows = log2(uint64(h.maxDirect)) - log2(uint64(h.start)) + 2
	h.offBytes = (maxBits + 7) / 8
	h.lenBytes = min(sizeOf(uint64(h.maxDirect)), sizeOf(uint64(maxManaged)))
	return h, nil
}

// object returns the object of an ID.
func (h *fractalHeap) object(ctx context.Context, id []byte) ([]byte, error) {
	d := &dec{f: h.f, b: id, what: "an object of a fractal heap", addr: h.addr}
	flags := d.u8()
	if flags>>6 != 0 {
		return nil, formats.Unsupported("hdf5: IDs of version %d in a fractal heap", flags>>6)
	}
	switch flags >> 4 & 3 {
	case 0:
		off, n := d.uint(h.offBytes), d.uint(h.lenBytes)
		if d.err != nil {
			return nil, d.err
		}
		return h.managed(ctx, off, n)
	case 1:
		return h.huge(ctx, d)
	case 2:
		n := int(flags & 15)
		if h.idLen > 18 {
			n = n<<8 | int(d.u8())
		}
		return d.take(n + 1), d.err
	}
	return nil, formats.Invalid("hdf5: an ID of type 3 in the fractal heap at %d", h.addr)
}

// rowSize is the size of each block of a row.
func (h *fractalHeap) rowSize(row int) uint64 { return uint64(h.start) << max(0, row-1) }

// rowStart is where the blocks of a row begin.
func (h *fractalHeap) rowStart(row int) uint64 {
	if row == 0 {
		return 0
	}
	return uint64(h.width) * uint64(h.start) << (row - 1)
}

// managed finds an object in the direct blocks.
func (h *fractalHeap) managed(ctx context.Context, off, n uint64) ([]byte, error) {
	addr, rows, size, mask := h.root, h.rows, h.start, h.rootMask
	stored := h.rootSize
	if h.filters == nil {
		stored = size
	}
	for rows > 0 {
		row := 0
		if q := off / (uint64(h.width) * uint64(h.start)); q > 0 {
			row = log2(q) + 1
		}
		if row >= rows {
			return nil, formats.Invalid("hdf5: the fractal heap at %d has no byte %d", h.addr, off)
		}
		block := h.rowSize(row)
		column := (off - h.rowStart(row)) / block
		off -= h.rowStart(row) + column*block
		d, err := h.indirect(ctx, addr, rows)
		if err != nil {
			return nil, err
		}
		entry := h.f.addrSize
		if h.filters != nil {
			entry += h.f.lenSize + 4
		}
		i, direct := row*h.width+int(column), min(rows, h.directRows)*h.width
		if row < h.directRows {
			d.skip(i * entry)
			addr, rows, size, stored = d.address(), 0, int64(block), int64(block)
			if h.filters != nil {
				stored, mask = d.length(), d.u32()
			}
		} else {
			d.skip(direct*entry + (i-direct)*h.f.addrSize)
			addr = d.address()
			rows = log2(block) - log2(uint64(h.start)*uint64(h.width)) + 1
		}
		if d.err != nil {
			return nil, d.err
		}
	}
	b, err := h.direct(ctx, addr, size, stored, mask)
	if err != nil {
		return nil, err
	}
	if off > uint64(len(b)) || n > uint64(len(b))-off {
		return nil, formats.Invalid("hdf5: an object of %d bytes in a block of %d in the fractal heap at %d", n, len(b), h.addr)
	}
	return b[off : off+n : off+n], nil
}

// indirect reads an indirect block; the position is at its first child.
func (h *fractalHeap) indirect(ctx context.Context, addr int64, rows int) (*dec, error) {
	f := h.f
	direct := min(rows, h.directRows) * h.width
	entry := f.addrSize
	if h.filters != nil {
		entry += f.lenSize + 4
	}
	head := 5 + f.addrSize + h.offBytes
	n := head + direct*entry + (rows*h.width-direct)*f.addrSize
	d, err := f.readSigned(ctx, "an indirect block", "FHIB", 0, addr, int64(n+4))
	if err != nil {
		return nil, err
	}
	if d.address() != h.addr {
		d.fail("is of another heap")
		return nil, d.err
	}
	return d, d.seal(head)
}

// direct reads a direct block.
func (h *fractalHeap) direct(ctx context.Context, addr, size, stored int64, mask uint32) ([]byte, error) {
	const what = "a block of a fractal heap"
	if err := h.f.inside(what, addr, stored); err != nil {
		return nil, err
	}
	if size > maxChunk {
		return nil, formats.Unsupported("hdf5: a block of %d bytes in a fractal heap", size)
	}
	return h.f.blocks.Get(ctx, addr, func() ([]byte, error) {
		d, err := h.f.read(ctx, what, addr, stored)
		if err != nil {
			return nil, err
		}
		if d.b = bytes.Clone(d.b); h.filters != nil {
			if d.b, err = h.filters.decode(d.b, mask, size); err != nil {
				return nil, err
			}
		}
		d.signature("FHDB", 0)
		if a := d.address(); d.err == nil && a != h.addr {
			d.fail("is of another heap")
		}
		d.skip(h.offBytes)
		if d.err == nil && h.sums {
			at := d.off
			want := d.u32()
			if d.err == nil {
				clear(d.b[at:d.off])
				if codecs.Lookup3(d.b, 0) != want {
					d.fail("has a wrong checksum")
				}
			}
		}
		return d.b, d.err
	})
}

// huge finds an object with a place of its own.
func (h *fractalHeap) huge(ctx context.Context, d *dec) ([]byte, error) {
	f := h.f
	place := f.addrSize + f.lenSize
	if h.filters != nil {
		place += 4 + f.lenSize
	}
	if h.idLen-1 < place {
		id := number(d.take(min(8, h.idLen-1)))
		if d.err != nil {
			return nil, d.err
		}
		t, err := f.tree2(ctx, h.hugeTree)
		if err != nil {
			return nil, err
		}
		if t.recordSize != place+f.lenSize {
			return nil, formats.Invalid("hdf5: the B-tree at %d has records of %d bytes", h.hugeTree, t.recordSize)
		}
		record, err := t.find(ctx, func(r []byte) int {
			return compare(number(r[place:place+f.lenSize]), id)
		})
		if err == nil && record == nil {
			err = formats.Invalid("hdf5: the fractal heap at %d has no huge object %d", h.addr, id)
		}
		if err != nil {
			return nil, err
		}
		d = &dec{f: f, b: record, what: d.what, addr: h.addr}
	}
	addr, n, size, mask := d.address(), d.length(), int64(0), uint32(0)
	if h.filters != nil {
		mask, size = d.u32(), d.length()
	}
	if d.err != nil {
		return nil, d.err
	}
	o, err := f.read(ctx, "a huge object of a fractal heap", addr, n)
	if err != nil || h.filters == nil {
		if err != nil {
			return nil, err
		}
		return o.b, nil
	}
	return h.filters.decode(o.b, mask, size)
}
