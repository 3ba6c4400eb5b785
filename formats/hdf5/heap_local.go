package hdf5

import (
	"bytes"
	"context"
)

// localHeap is the names of a group of the first version.
type localHeap struct{ *dec }

func (f *file) localHeap(ctx context.Context, addr int64) (localHeap, error) {
	d, err := f.readSigned(ctx, "a local heap", "HEAP", 0, addr, int64(8+2*f.lenSize+f.addrSize))
	if err != nil {
		return localHeap{}, err
	}
	d.skip(3)
	n := d.length()
	d.skip(f.lenSize)
	data := d.address()
	if d.err != nil {
		return localHeap{}, d.err
	}
	d, err = f.read(ctx, "the data of a local heap", data, n)
	return localHeap{d}, err
}

// text returns the text at an offset.
func (h localHeap) text(off uint64) (string, error) {
	if off < uint64(len(h.b)) {
		if i := bytes.IndexByte(h.b[off:], 0); i >= 0 {
			return string(h.b[off : off+uint64(i)]), nil
		}
	}
	h.fail("has no text at %d", off)
	return "", h.err
}
