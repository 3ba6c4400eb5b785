package hdf5

import (
	"bytes"
	"context"
	"fmt"
	"math/bits"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
)

// undefined is the address of something that is not there.
const undefined = -1

// dec reads the fields of one structure, and keeps the first error.
type dec struct {
	f    *file
	b    []byte
	off  int
	what string // the structure, for errors
	addr int64  // of b[0]
	err  error
}

// read returns n bytes of the structure what at an address. The bytes must not be changed.
func (f *file) read(ctx context.Context, what string, addr, n int64) (*dec, error) {
	if err := f.inside(what, addr, n); err != nil {
		return nil, err
	}
	b, err := f.w.Bytes(ctx, f.base+addr, n)
	if err != nil {
		return nil, err
	}
	return &dec{f: f, b: b, what: what, addr: addr}, nil
}

// inside reports whether the file has n bytes at an address.
func (f *file) inside(what string, addr, n int64) error {
	size := f.w.Size() - f.base
	switch {
	case addr < 0:
		return formats.Invalid("hdf5: %s without an address", what)
	case n < 0 || addr > size || n > size-addr:
		return formats.Invalid("hdf5: %s has %d bytes at %d, where the file has %d", what, n, f.base+addr, f.w.Size())
	}
	return nil
}

// readSigned is read of a structure with a signature and a version, at least n bytes
// long; the position is behind the version.
func (f *file) readSigned(ctx context.Context, what, signature string, version byte, addr, n int64) (*dec, error) {
	d, err := f.read(ctx, what, addr, n)
	if err != nil {
		return nil, err
	}
	d.signature(signature, version)
	return d, d.err
}

func (d *dec) signature(signature string, version byte) {
	if s := string(d.take(4)); d.err == nil && s != signature {
		d.fail("begins with %q, not %q", s, signature)
	}
	if v := d.u8(); d.err == nil && v != version {
		d.err = formats.Unsupported("hdf5: %s at %d has version %d", d.what, d.addr, v)
	}
}

// sum checks the checksum that ends at the position.
func (d *dec) sum() error {
	end := d.off
	if want := d.u32(); d.err == nil && codecs.Lookup3(d.b[:end], 0) != want {
		d.fail("has a wrong checksum")
	}
	return d.err
}

// seal checks the checksum at the end of the bytes, and leaves the bytes between the first n and the checksum.
func (d *dec) seal(n int) error {
	if d.off = len(d.b) - 4; d.off < n {
		d.fail("has %d bytes", len(d.b))
		return d.err
	}
	err := d.sum()
	d.off, d.b = n, d.b[:len(d.b)-4]
	return err
}

func (d *dec) fail(format string, args ...any) {
	if d.err == nil {
		d.err = formats.Invalid("hdf5: %s at %d %s", d.what, d.addr, fmt.Sprintf(format, args...))
	}
}

func (d *dec) left() int { return len(d.b) - d.off }

// take returns the next n bytes.
func (d *dec) take(n int) []byte {
	if d.err != nil {
		return nil
	}
	if n < 0 || n > d.left() {
		d.fail("ends after %d bytes", len(d.b))
		return nil
	}
	b := d.b[d.off : d.off+n : d.off+n]
	d.off += n
	return b
}

func (d *dec) skip(n int) { d.take(n) }

// uint reads a little-endian number of up to 8 bytes.
func (d *dec) uint(n int) uint64 { return number(d.take(n)) }

func number(b []byte) uint64 {
	v := uint64(0)
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

func (d *dec) u8() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}
func (d *dec) u16() int    { return int(d.uint(2)) }
func (d *dec) u32() uint32 { return uint32(d.uint(4)) }

// address reads an address, which may be undefined.
func (d *dec) address() int64 { return address(d, d.take(d.f.addrSize)) }

func address(d *dec, b []byte) int64 {
	v := number(b)
	if len(b) > 0 && bits.OnesCount64(v) == 8*len(b) {
		return undefined
	}
	if v > 1<<62 {
		d.fail("has the address %d", v)
		return undefined
	}
	return int64(v)
}

// length reads a length or a count.
func (d *dec) length() int64 {
	v := d.uint(d.f.lenSize)
	if v > 1<<62 {
		d.fail("has the length %d", v)
		return 0
	}
	return int64(v)
}

// text reads a text up to its NUL, which is skipped with what pads it to a multiple of pad.
func (d *dec) text(pad int) string {
	n := bytes.IndexByte(d.b[d.off:], 0)
	if n < 0 {
		n = d.left() + 1 // which is an error
	}
	s := string(d.take(n))
	d.skip((n+pad)/pad*pad - n)
	return s
}

// sizeOf is how many bytes HDF5 takes for numbers up to n.
func sizeOf(n uint64) int { return log2(n)/8 + 1 }

// log2 is the logarithm, rounded down; 0 of 0.
func log2(n uint64) int { return max(0, bits.Len64(n)-1) }

// walk bounds what a traversal of linked structures reads: no structure twice, and no
// more bytes than the file has. So no loop and no overlap makes it long.
type walk struct {
	f    *file
	seen map[int64]bool
	left int64
}

func (f *file) walk() *walk { return &walk{f, map[int64]bool{}, f.w.Size()} }

func (w *walk) visit(what string, addr, n int64) error {
	if err := w.f.inside(what, addr, n); err != nil {
		return err
	}
	if w.seen[addr] {
		return formats.Invalid("hdf5: %s at %d is met twice", what, addr)
	}
	w.seen[addr] = true
	if w.left -= n; w.left < 0 {
		return formats.Invalid("hdf5: %s at %d overlaps others", what, addr)
	}
	return nil
}

// part is a range of the file by its address.
type part struct{ addr, n int64 }

// ahead reads parts into the window, in few requests; each is cut where the file ends.
// Parts that are damaged are found when they are used.
func (f *file) ahead(ctx context.Context, parts []part) error {
	const batch = 4 << 20
	list, bytes := make([]formats.Part, 0, len(parts)), int64(0)
	for i, p := range parts {
		if size := f.w.Size() - f.base; p.addr >= 0 && p.addr < size {
			n := min(p.n, size-p.addr)
			list, bytes = append(list, formats.Part{Off: f.base + p.addr, N: n}), bytes+n
		}
		if len(list) > 0 && (bytes >= batch || i == len(parts)-1) {
			if _, err := f.w.ReadMany(ctx, list); err != nil {
				return err
			}
			list, bytes = list[:0], 0
		}
	}
	return nil
}
