package hdf5

import (
	"context"

	"github.com/zarrdb/zarrdb/formats"
)

// extensibleIndex is an extensible array: slots for the chunks of a dataset with one
// unlimited dimension, which is turned to the front.
//
//	header ─▶ index block: | slots | data blocks … | super blocks … |
//	                                  └▶ slots        └▶ | bits of pages | data blocks … |
//
// Super block u, real or not, has 2^(u/2) data blocks of 2^((u+1)/2) · min slots. Those of
// the first direct ones are listed in the index block itself.
type extensibleIndex struct {
	slots
	block   int64 // the index block
	inBlock uint64
	least   uint64 // slots of the smallest data block
	supers  int    // super blocks, direct ones included
	direct  int
	perPage uint64
	offset  int // bytes of the offset in a block
}

func openExtensible(ctx context.Context, g *grid) (*extensibleIndex, error) {
	f := g.f
	d, err := f.readSigned(ctx, "an extensible array", "EAHD", 0, g.addr, int64(16+6*f.lenSize+f.addrSize))
	if err != nil {
		return nil, err
	}
	client, size, maxBits := d.u8(), int(d.u8()), int(d.u8())
	x := &extensibleIndex{slots: slots{g: g, size: size, first: -1}, inBlock: uint64(d.u8()), least: uint64(d.u8())}
	pointers, pageBits := int(d.u8()), int(d.u8())
	d.skip(6 * f.lenSize)
	x.block = d.address()
	g.elementSize(d, client, size)
	if err := d.sum(); err != nil {
		return nil, err
	}
	power := func(n int) bool { return n > 0 && n&(n-1) == 0 }
	if maxBits < 1 || maxBits > 64 || !power(int(x.least)) || !power(pointers) || pageBits > 16 || log2(x.least) > maxBits {
		d.fail("has %d slots in the smallest block, %d pointers and indexes of %d bits", x.least, pointers, maxBits)
		return nil, d.err
	}
	x.supers, x.direct = 1+maxBits-log2(x.least), 2*log2(uint64(pointers))
	x.perPage, x.offset = 1<<pageBits, (maxBits+7)/8
	for dim, n := range g.max {
		if n == unlimited {
			x.first = dim
		}
	}
	if x.first < 0 || x.direct > x.supers {
		return nil, formats.Invalid("hdf5: an extensible array at %d for a dataset without an unlimited dimension, or with %d pointers", g.addr, pointers)
	}
	return x, g.fits(x.first, 1<<62)
}

// super is super block u: the first of its slots and of its data blocks, counted over all,
// how many data blocks it has, and the slots of each.
func (x *extensibleIndex) super(u int) (first, block, blocks, each uint64) {
	blocks, each = 1<<(u/2), x.least<<((u+1)/2)
	first = x.inBlock + x.least*(1<<u-1)
	for v := range u {
		block += 1 << (v / 2)
	}
	return first, block, blocks, each
}

// index reads the index block: the position is at its slots.
func (x *extensibleIndex) index(ctx context.Context) (*dec, error) {
	f := x.g.f
	_, blocks, _, _ := x.super(x.direct)
	head := 6 + f.addrSize
	n := head + int(x.inBlock)*x.size + (int(blocks)+x.supers-x.direct)*f.addrSize
	d, err := f.readSigned(ctx, "the index of an extensible array", "EAIB", 0, x.block, int64(n+4))
	if err != nil {
		return nil, err
	}
	return d, d.seal(head)
}

// dataBlock is a data block as a run of slots.
func (x *extensibleIndex) dataBlock(addr int64, first, n uint64) run {
	return run{addr, 6 + x.g.f.addrSize + x.offset, first, n}
}

// paged reports whether a data block of n slots has pages.
func (x *extensibleIndex) paged(n uint64) bool { return n > x.perPage }

// page returns page p of a data block.
func (x *extensibleIndex) page(r run, p uint64) run {
	page := run{first: r.first + p*x.perPage, n: x.perPage}
	page.addr = r.addr + int64(r.head) + 4 + int64(p)*x.bytes(page)
	return page
}

// superBlock reads the head of super block u: its bitmaps of pages, one behind the other,
// and its data blocks; the position is at their addresses.
func (x *extensibleIndex) superBlock(ctx context.Context, addr int64, u int) (bitmap []byte, d *dec, err error) {
	n, maps, head := x.superBytes(u)
	d, err = x.g.f.readSigned(ctx, "a super block of an extensible array", "EASB", 0, addr, n)
	if err != nil {
		return nil, nil, err
	}
	if err := d.seal(head); err != nil {
		return nil, nil, err
	}
	return d.take(maps), d, nil
}

// superBytes is the length of super block u, of its bitmaps and of what is before them.
func (x *extensibleIndex) superBytes(u int) (n int64, maps, head int) {
	_, _, blocks, each := x.super(u)
	head = 6 + x.g.f.addrSize + x.offset
	if x.paged(each) {
		all, ok := product(int64(blocks), int64(x.mapBytes(each)))
		if !ok {
			return 1 << 62, 0, head // more than any file has
		}
		maps = int(all)
	}
	return int64(head+maps+4) + int64(blocks)*int64(x.g.f.addrSize), maps, head
}

// mapBytes is the length of the bitmap of a data block of n slots.
func (x *extensibleIndex) mapBytes(n uint64) int { return int((n/x.perPage + 7) / 8) }

func (x *extensibleIndex) find(ctx context.Context, at []int64) (chunk, error) {
	i := uint64(x.g.number(at, x.first))
	if x.block == undefined {
		return noChunk, nil
	}
	d, err := x.index(ctx)
	if err != nil {
		return noChunk, err
	}
	if i < x.inBlock {
		d.skip(int(i) * x.size)
		c := x.g.element(d, x.size)
		return c, d.err
	}
	u := log2((i-x.inBlock)/x.least + 1)
	if u >= x.supers {
		return noChunk, nil
	}
	d.skip(int(x.inBlock) * x.size)
	first, block, _, each := x.super(u)
	b := (i - first) / each
	start := first + b*each
	if u < x.direct {
		d.skip(int(block+b) * x.g.f.addrSize)
		addr := d.address()
		if d.err != nil || addr == undefined {
			return noChunk, d.err
		}
		if x.paged(each) {
			return noChunk, x.pagedIndex()
		}
		return x.slots.find(ctx, x.dataBlock(addr, start, each), i)
	}
	_, direct, _, _ := x.super(x.direct)
	d.skip((int(direct) + u - x.direct) * x.g.f.addrSize)
	addr := d.address()
	if d.err != nil || addr == undefined {
		return noChunk, d.err
	}
	bitmap, d, err := x.superBlock(ctx, addr, u)
	if err != nil {
		return noChunk, err
	}
	d.skip(int(b) * x.g.f.addrSize)
	if addr = d.address(); d.err != nil || addr == undefined {
		return noChunk, d.err
	}
	r := x.dataBlock(addr, start, each)
	if x.paged(each) {
		p, n := (i-start)/x.perPage, x.mapBytes(each)
		if !written(bitmap[int(b)*n:], p) {
			return noChunk, nil
		}
		r = x.page(r, p)
	}
	return x.slots.find(ctx, r, i)
}

func (x *extensibleIndex) pagedIndex() error {
	return formats.Unsupported("hdf5: the extensible array at %d has pages in its index block", x.g.addr)
}

func (x *extensibleIndex) each(ctx context.Context, fn func([]int64, chunk) error) error {
	if x.block == undefined {
		return nil
	}
	d, err := x.index(ctx)
	if err != nil {
		return err
	}
	if err := x.these(d, 0, x.inBlock, make([]int64, len(x.g.counts)), fn); err != nil {
		return err
	}
	var runs []run
	left := x.g.f.w.Size()
	add := func(r run) error {
		if left -= x.bytes(r); left < 0 {
			return formats.Invalid("hdf5: the extensible array at %d has more slots than the file has bytes", x.g.addr)
		}
		runs = append(runs, r)
		return nil
	}
	for u := range x.direct {
		first, _, blocks, each := x.super(u)
		for b := range blocks {
			if addr := d.address(); addr != undefined {
				if x.paged(each) {
					return x.pagedIndex()
				}
				if err := add(x.dataBlock(addr, first+b*each, each)); err != nil {
					return err
				}
			}
		}
	}
	type super struct {
		u    int
		addr int64
	}
	var supers []super
	for u := x.direct; u < x.supers; u++ {
		if addr := d.address(); addr != undefined {
			supers = append(supers, super{u, addr})
		}
	}
	if d.err != nil {
		return d.err
	}
	w := x.g.f.walk()
	err = inBatches(ctx, x.g.f, supers, func(s super) part { n, _, _ := x.superBytes(s.u); return part{s.addr, n} }, func(s super) error {
		n, _, _ := x.superBytes(s.u)
		if err := w.visit("a super block of an extensible array", s.addr, n); err != nil {
			return err
		}
		bitmap, d, err := x.superBlock(ctx, s.addr, s.u)
		if err != nil {
			return err
		}
		first, _, blocks, each := x.super(s.u)
		for b := range blocks {
			addr := d.address()
			if addr == undefined {
				continue
			}
			r := x.dataBlock(addr, first+b*each, each)
			if !x.paged(each) {
				if err := add(r); err != nil {
					return err
				}
				continue
			}
			for p := range each / x.perPage {
				if written(bitmap[int(b)*x.mapBytes(each):], p) {
					if err := add(x.page(r, p)); err != nil {
						return err
					}
				}
			}
		}
		return d.err
	})
	if err != nil {
		return err
	}
	return x.slots.each(ctx, runs, fn)
}
