package hdf5

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// fillBytes returns the fill value of a dataset as it is stored, nil for zeros.
func (f *file) fillBytes(ctx context.Context, o *object, size int) ([]byte, error) {
	m := o.find(msgFill)
	if m == nil {
		if m = o.find(msgFillOld); m == nil {
			return nil, nil
		}
	}
	d, err := f.resolve(ctx, m)
	if err != nil {
		return nil, err
	}
	has := true
	if m.typ == msgFill {
		switch version := d.u8(); {
		case version < 3:
			d.skip(2)
			has = d.u8() != 0
		default:
			has = d.u8()&0x20 != 0
		}
	}
	if !has || d.err != nil {
		return nil, d.err
	}
	n := int(d.u32())
	if n == 0 || d.err != nil {
		return nil, d.err
	}
	b := d.take(n)
	if d.err == nil && n != size {
		d.fail("has %d bytes, where an element has %d", n, size)
	}
	return bytes.Clone(b), d.err
}

// fillJSON prints the fill value.
func (e *element) fillJSON(b []byte) (json.RawMessage, error) {
	if b == nil {
		return e.typ.PrintFillV3(e.typ.Zero())
	}
	b = e.memory(b)
	n := e.typ.Size()
	if e.typ.Kind() == dtype.Bool {
		for i := range b {
			b[i] = min(b[i], 1)
		}
	}
	for at := n; at < len(b); at += n {
		if !bytes.Equal(b[at:at+n], b[:n]) {
			return nil, unsupported("arrays whose fill value has several values")
		}
	}
	return e.typ.PrintFillV3(b[:n])
}
