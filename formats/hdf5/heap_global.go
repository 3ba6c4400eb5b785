package hdf5

import (
	"context"

	"github.com/zarrdb/zarrdb/formats"
)

// collection is a collection of the global heap: objects by their number.
type collection struct {
	b       []byte
	objects map[int]part // in b
}

// collectionBytes are those of most collections.
const collectionBytes = 4096

// collection reads the one at an address.
func (f *file) collection(ctx context.Context, addr int64) (*collection, error) {
	return f.globals.Get(ctx, addr, func() (*collection, error) {
		const what = "a global heap"
		// The heads of collections and of objects are padded to 16 bytes.
		const head = 16
		d, err := f.readSigned(ctx, what, "GCOL", 1, addr, head)
		if err != nil {
			return nil, err
		}
		d.skip(3)
		n := d.length()
		if d.err == nil && n < head {
			d.fail("has %d bytes", n)
		}
		if d.err != nil {
			return nil, d.err
		}
		if d, err = f.read(ctx, what, addr, n); err == nil {
			err = f.charge(n)
		}
		if err != nil {
			return nil, err
		}
		d.off = head
		c := &collection{b: d.b, objects: map[int]part{}}
		for d.left() >= head {
			i := d.u16()
			d.skip(6)
			size := d.length()
			d.skip(8 - f.lenSize)
			if i == 0 { // the rest is free
				break
			}
			c.objects[i] = part{int64(d.off), size}
			if size > int64(d.left()) {
				d.fail("has an object of %d bytes", size)
				return nil, d.err
			}
			d.skip(min(int(size+7)&^7, d.left()))
		}
		return c, d.err
	})
}

// globalObject returns an object of the global heap.
func (f *file) globalObject(ctx context.Context, addr int64, i uint32) ([]byte, error) {
	c, err := f.collection(ctx, addr)
	if err != nil {
		return nil, err
	}
	p, ok := c.objects[int(i)]
	if !ok {
		return nil, formats.Invalid("hdf5: the global heap at %d has no object %d", addr, i)
	}
	return c.b[p.addr : p.addr+p.n], nil
}

// collectionsAhead reads collections at addresses into the window.
func (f *file) collectionsAhead(ctx context.Context, addrs map[int64]bool) error {
	if len(addrs) < 2 {
		return nil
	}
	parts := make([]part, 0, len(addrs))
	for addr := range addrs {
		parts = append(parts, part{addr, collectionBytes})
	}
	return f.ahead(ctx, parts)
}
