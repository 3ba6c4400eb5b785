package hdf5

import (
	"context"

	"github.com/zarrdb/zarrdb/formats"
)

// sharedIndex is a heap of messages that several objects share.
type sharedIndex struct {
	types int // bit t: messages of type t
	heap  int64
}

// readShared reads the table of shared messages.
func (f *file) readShared(ctx context.Context, addr int64, n int) error {
	if n > 8 {
		return formats.Invalid("hdf5: %d indexes of shared messages", n)
	}
	entry := 14 + 2*f.addrSize
	d, err := f.read(ctx, "the table of shared messages", addr, int64(4+n*entry+4))
	if err != nil {
		return err
	}
	if s := d.take(4); string(s) != "SMTB" {
		d.fail("begins with %q", s)
		return d.err
	}
	for range n {
		d.skip(2)
		x := sharedIndex{types: d.u16()}
		d.skip(10)
		d.skip(f.addrSize)
		x.heap = d.address()
		f.shared = append(f.shared, x)
	}
	return d.sum()
}

// resolve returns the data of a message that may be shared.
func (f *file) resolve(ctx context.Context, m *message) (*dec, error) {
	d := f.message(m)
	if m.flags&flagShared == 0 {
		return d, nil
	}
	return f.sharedMessage(ctx, m.typ, d)
}

// sharedMessage reads the place of a shared message of a type, and the message there.
func (f *file) sharedMessage(ctx context.Context, typ int, d *dec) (*dec, error) {
	version, kind := d.u8(), d.u8()
	switch {
	case d.err != nil:
		return nil, d.err
	case version < 1 || version > 3:
		return nil, formats.Unsupported("hdf5: shared messages of version %d", version)
	case version == 1:
		d.skip(6)
		fallthrough
	case kind != 1:
		return f.committed(ctx, typ, d)
	}
	id := d.take(8)
	if d.err != nil {
		return nil, d.err
	}
	b, err := f.sharedObject(ctx, typ, id)
	if err != nil {
		return nil, err
	}
	return &dec{f: f, b: b, what: "a shared message", addr: d.addr}, nil
}

// committed reads the message of an object that others share.
func (f *file) committed(ctx context.Context, typ int, d *dec) (*dec, error) {
	addr := d.address()
	if d.err != nil {
		return nil, d.err
	}
	o, err := f.commits.Get(ctx, addr, func() (*object, error) { return f.object(ctx, addr) })
	if err != nil {
		return nil, err
	}
	m := o.find(typ)
	if m == nil || m.flags&flagShared != 0 && typ == msgType { // no chains
		return nil, formats.Invalid("hdf5: the object at %d has no message of type %d to share", addr, typ)
	}
	return f.message(m), nil
}

// sharedObject returns a shared message by the ID in its heap.
func (f *file) sharedObject(ctx context.Context, typ int, id []byte) ([]byte, error) {
	for _, x := range f.shared {
		if x.types>>typ&1 == 0 {
			continue
		}
		h, err := f.heap(ctx, x.heap)
		if err != nil {
			return nil, err
		}
		return h.object(ctx, id)
	}
	return nil, formats.Invalid("hdf5: there is no table of shared messages of type %d", typ)
}
