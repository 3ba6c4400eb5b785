package hdf5

import (
	"bytes"
	"context"

	"github.com/zarrdb/zarrdb/formats"
)

// Types of messages.
const (
	msgSpace       = 0x01
	msgLinkInfo    = 0x02
	msgType        = 0x03
	msgFillOld     = 0x04
	msgFill        = 0x05
	msgLink        = 0x06
	msgExternal    = 0x07
	msgLayout      = 0x08
	msgFilters     = 0x0b
	msgAttribute   = 0x0c
	msgSharedTable = 0x0f
	msgContinue    = 0x10
	msgSymbols     = 0x11
	msgTreeK       = 0x13
	msgDriver      = 0x14
	msgAttrInfo    = 0x15
	msgLast        = 0x18
)

// Flags of messages.
const (
	flagShared  = 1 << 1
	flagUnknown = 1 << 7 // a reader that does not know the type must not go on
)

// object is the header of an object.
//
//	| prefix | message | message | … |  ─▶ | message | … |      continuations
type object struct {
	addr int64
	msgs []message
	odd  error // a message that is not known and has to be
}

// message is one message of a header. Its data are a copy.
type message struct {
	typ   int
	flags byte
	addr  int64 // of the data
	data  []byte
}

// message returns a decoder of a message.
func (f *file) message(m *message) *dec {
	return &dec{f: f, b: m.data, what: messageNames[m.typ], addr: m.addr}
}

// messageNames are what errors call the messages that are read.
var messageNames = map[int]string{
	msgSpace: "the dataspace", msgType: "the data type", msgFill: "the fill value", msgFillOld: "the fill value", msgLayout: "the layout",
	msgFilters: "the filter pipeline", msgAttribute: "an attribute", msgLink: "a link", msgLinkInfo: "a link", msgExternal: "a message",
	msgSharedTable: "a message", msgSymbols: "a message", msgTreeK: "a message", msgDriver: "a message", msgAttrInfo: "a message",
}

// find returns the first message of a type, or nil without one.
func (o *object) find(typ int) *message {
	for i := range o.msgs {
		if o.msgs[i].typ == typ {
			return &o.msgs[i]
		}
	}
	return nil
}

// headerBytes are read of a header before its length is known.
const headerBytes = 512

// object reads the header at an address.
func (f *file) object(ctx context.Context, addr int64) (*object, error) {
	list, err := f.objects(ctx, []int64{addr})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// reading is a header of which parts were read.
type reading struct {
	o       *object
	walk    *walk
	version byte
	ordered bool // messages have their order of creation
	left    int  // messages of version 1 to come
	rest    []part
}

// objects reads headers: first the beginnings of all headers, then their continuations, then the continuations of these.
func (f *file) objects(ctx context.Context, addrs []int64) ([]*object, error) {
	parts := make([]part, len(addrs))
	for i, addr := range addrs {
		parts[i] = part{addr, headerBytes}
	}
	if err := f.ahead(ctx, parts); err != nil {
		return nil, err
	}
	list := make([]*object, len(addrs))
	open := make([]*reading, len(addrs))
	for i, addr := range addrs {
		r := &reading{o: &object{addr: addr}, walk: f.walk()}
		if err := f.begin(ctx, r); err != nil {
			return nil, err
		}
		list[i], open[i] = r.o, r
	}
	for len(open) > 0 {
		parts = parts[:0]
		for _, r := range open {
			parts = append(parts, r.rest...)
		}
		if err := f.ahead(ctx, parts); err != nil {
			return nil, err
		}
		more := open[:0]
		for _, r := range open {
			rest := r.rest
			r.rest = nil
			for _, p := range rest {
				if err := f.proceed(ctx, r, p); err != nil {
					return nil, err
				}
			}
			if len(r.rest) > 0 {
				more = append(more, r)
			}
		}
		open = more
	}
	return list, nil
}

// begin reads the first part of a header.
func (f *file) begin(ctx context.Context, r *reading) error {
	const what = "an object header"
	addr := r.o.addr
	d, err := f.read(ctx, what, addr, min(32, max(0, f.w.Size()-f.base-addr)))
	if err != nil {
		return err
	}
	if bytes.HasPrefix(d.b, []byte("OHDR")) {
		r.version = 2
		d.signature("OHDR", 2)
		flags := d.u8()
		r.ordered = flags&4 != 0
		if flags&0x20 != 0 {
			d.skip(16)
		}
		if flags&0x10 != 0 {
			d.skip(4)
		}
		n := d.uint(1 << (flags & 3))
		if d.err != nil || n > uint64(f.w.Size()) {
			d.fail("has %d bytes of messages", n)
			return d.err
		}
		start := int64(d.off)
		d, err := f.readWalked(ctx, r.walk, what, addr, start+int64(n)+4)
		if err != nil {
			return err
		}
		if err := d.seal(int(start)); err != nil {
			return err
		}
		return f.messages(r, d)
	}
	r.version = 1
	if v := d.u8(); v != 1 {
		d.fail("has version %d", v)
	}
	d.skip(1)
	r.left = d.u16()
	d.skip(4)
	n := int64(d.u32())
	if d.err != nil {
		return d.err
	}
	if d, err = f.readWalked(ctx, r.walk, what, addr, 16+n); err != nil {
		return err
	}
	d.off = 16
	return f.messages(r, d)
}

// readWalked is read of a part that a walk comes to.
func (f *file) readWalked(ctx context.Context, w *walk, what string, addr, n int64) (*dec, error) {
	if err := w.visit(what, addr, n); err != nil {
		return nil, err
	}
	if err := f.charge(n); err != nil {
		return nil, err
	}
	return f.read(ctx, what, addr, n)
}

// proceed reads a continuation.
func (f *file) proceed(ctx context.Context, r *reading, p part) error {
	d, err := f.readWalked(ctx, r.walk, "the continuation of an object header", p.addr, p.n)
	if err != nil {
		return err
	}
	if r.version == 1 {
		return f.messages(r, d)
	}
	if s := d.take(4); string(s) != "OCHK" {
		d.fail("begins with %q", s)
	}
	if err := d.seal(4); err != nil {
		return err
	}
	return f.messages(r, d)
}

// messages reads the messages of one part of a header.
func (f *file) messages(r *reading, d *dec) error {
	head := 4
	if r.version == 1 {
		head = 8
	} else if r.ordered {
		head = 6
	}
	for d.left() >= head && (r.version == 2 || r.left > 0) {
		var m message
		var n int
		if r.version == 1 {
			m.typ, n, m.flags = d.u16(), d.u16(), d.u8()
			d.skip(3)
			r.left--
		} else {
			m.typ, n, m.flags = int(d.u8()), d.u16(), d.u8()
			d.skip(head - 4)
		}
		m.addr = d.addr + int64(d.off)
		data := d.take(n)
		if d.err != nil {
			return d.err
		}
		switch {
		case m.typ == msgContinue:
			c := &dec{f: f, b: data, what: "a continuation", addr: m.addr}
			p := part{c.address(), c.length()}
			if c.err != nil {
				return c.err
			}
			r.rest = append(r.rest, p)
			continue
		case m.typ == 0:
			continue
		case m.typ >= msgLast && m.flags&flagUnknown != 0:
			r.o.odd = formats.Unsupported("hdf5: a message of type %d, which a reader has to know", m.typ)
		}
		if messageNames[m.typ] == "" {
			continue
		}
		if err := f.charge(int64(n + 64)); err != nil {
			return err
		}
		m.data = bytes.Clone(data)
		r.o.msgs = append(r.o.msgs, m)
	}
	return nil
}
