package hdf5

import (
	"context"
)

// slots reads the slots of fixed and extensible arrays, which lie in runs: each is a data
// block, or a page of one.
//
//	| head | slot | slot | … | checksum |
type slots struct {
	g    *grid
	size int // bytes of a slot
	// first is the dimension that is turned to the front.
	first int
}

// run is a sequence of slots without a gap.
type run struct {
	addr  int64
	head  int    // bytes before the slots, 0 of a page
	first uint64 // number of the first slot
	n     uint64
}

func (s *slots) bytes(r run) int64 { return int64(r.head) + int64(r.n)*int64(s.size) + 4 }

// read reads a run; the position is at its first slot.
func (s *slots) read(ctx context.Context, r run) (*dec, error) {
	d, err := s.g.f.read(ctx, "slots of chunks", r.addr, s.bytes(r))
	if err != nil {
		return nil, err
	}
	if r.head > 0 {
		if s := string(d.take(4)); s != "FADB" && s != "EADB" {
			d.fail("begins with %q", s)
		}
	}
	return d, d.seal(r.head)
}

// find returns the chunk in a slot of a run.
func (s *slots) find(ctx context.Context, r run, i uint64) (chunk, error) {
	d, err := s.read(ctx, r)
	if err != nil {
		return noChunk, err
	}
	d.skip(int(i-r.first) * s.size)
	c := s.g.element(d, s.size)
	return c, d.err
}

// each calls fn with the stored chunks of runs, which are read together.
func (s *slots) each(ctx context.Context, runs []run, fn func([]int64, chunk) error) error {
	w := s.g.f.walk()
	at := make([]int64, len(s.g.counts))
	return inBatches(ctx, s.g.f, runs, func(r run) part { return part{r.addr, s.bytes(r)} }, func(r run) error {
		if err := w.visit("slots of chunks", r.addr, s.bytes(r)); err != nil {
			return err
		}
		d, err := s.read(ctx, r)
		if err != nil {
			return err
		}
		return s.these(d, r.first, r.n, at, fn)
	})
}

// these calls fn with the stored chunks in n slots at the position of d.
func (s *slots) these(d *dec, first, n uint64, at []int64, fn func([]int64, chunk) error) error {
	for i := range n {
		c := s.g.element(d, s.size)
		if d.err != nil {
			return d.err
		}
		if c.addr == undefined {
			continue
		}
		if s.g.coordinates(first+i, s.first, at); !s.g.inside(at) {
			continue
		}
		if err := fn(at, c); err != nil {
			return err
		}
	}
	return nil
}

// fixedIndex is a fixed array: a slot for each chunk of the largest shape.
//
//	header ─▶ data block: | slots |  or  | bits of pages | page | page | …
type fixedIndex struct {
	slots
	n       uint64
	block   int64
	bitmap  part   // of pages
	perPage uint64 // slots of a page; 0 without pages
}

func openFixed(ctx context.Context, g *grid) (*fixedIndex, error) {
	f := g.f
	d, err := f.readSigned(ctx, "a fixed array", "FAHD", 0, g.addr, int64(12+f.lenSize+f.addrSize))
	if err != nil {
		return nil, err
	}
	client, size, bits := d.u8(), int(d.u8()), int(d.u8())
	x := &fixedIndex{slots: slots{g: g, size: size}, n: uint64(d.length()), block: d.address()}
	g.elementSize(d, client, size)
	if err := d.sum(); err != nil {
		return nil, err
	}
	if bits > 16 || x.block != undefined && x.n > uint64(f.w.Size())/uint64(size) {
		d.fail("has %d elements in pages of 2^%d", x.n, bits)
		return nil, d.err
	}
	if err := g.fits(0, x.n); err != nil || x.block == undefined || x.n <= 1<<bits {
		return x, err
	}
	x.perPage = 1 << bits
	pages := (x.n + x.perPage - 1) / x.perPage
	head := int64(x.head())
	x.bitmap = part{x.block + head, int64(pages+7) / 8}
	if d, err = f.readSigned(ctx, "a data block of a fixed array", "FADB", 0, x.block, head+x.bitmap.n+4); err != nil {
		return nil, err
	}
	return x, d.seal(0)
}

func (x *fixedIndex) head() int { return 6 + x.g.f.addrSize }

// page returns a page.
func (x *fixedIndex) page(p uint64) run {
	r := run{first: p * x.perPage, n: x.perPage}
	r.addr = x.bitmap.addr + x.bitmap.n + 4 + int64(p)*x.bytes(r)
	r.n = min(r.n, x.n-r.first)
	return r
}

// written reports whether a bit of a bitmap of pages is set: the page was written.
func written(bitmap []byte, p uint64) bool { return bitmap[p/8]&(0x80>>(p%8)) != 0 }

func (x *fixedIndex) find(ctx context.Context, at []int64) (chunk, error) {
	i := uint64(x.g.number(at, 0))
	switch {
	case x.block == undefined || i >= x.n:
		return noChunk, nil
	case x.perPage == 0:
		return x.slots.find(ctx, run{x.block, x.head(), 0, x.n}, i)
	}
	bits, err := x.g.f.read(ctx, "the pages of a fixed array", x.bitmap.addr, x.bitmap.n)
	if err != nil || !written(bits.b, i/x.perPage) {
		return noChunk, err
	}
	return x.slots.find(ctx, x.page(i/x.perPage), i)
}

func (x *fixedIndex) each(ctx context.Context, fn func([]int64, chunk) error) error {
	if x.block == undefined {
		return nil
	}
	if x.perPage == 0 {
		return x.slots.each(ctx, []run{{x.block, x.head(), 0, x.n}}, fn)
	}
	bits, err := x.g.f.read(ctx, "the pages of a fixed array", x.bitmap.addr, x.bitmap.n)
	if err != nil {
		return err
	}
	var runs []run
	for p := uint64(0); p*x.perPage < x.n; p++ {
		if written(bits.b, p) {
			runs = append(runs, x.page(p))
		}
	}
	return x.slots.each(ctx, runs, fn)
}
