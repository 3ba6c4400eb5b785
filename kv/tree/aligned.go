package tree

import (
	"bytes"
	"encoding/binary"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// aligned compares two leaves with the same keys, item by item. It decodes only
// keys and values that differ. Most edits keep the keys of a leaf.
type aligned struct {
	a, b     *page
	i        int  // of the item that comes next
	native   bool // all values of both are native
	onePack  bool // and in the same pack
	key      []byte
	old, new Value
}

// align begins to compare the current leaves of the two sides, if they have the
// same keys and both sides are at the same key.
func (d *differ) align() {
	a, b := d.a.items.p, d.b.items.p
	at := d.a.items.i - 1
	if at != d.b.items.i-1 || a.len() != b.len() || !bytes.Equal(a.codedKeys(), b.codedKeys()) {
		return
	}
	d.both = aligned{a: a, b: b, i: at, key: d.both.key, native: a.kind == KindNative && b.kind == KindNative}
	d.both.onePack = d.both.native && a.native.usesOnePack() && b.native.usesOnePack() && a.packAt(0) == b.packAt(0)
}

// next returns the next difference; false at the end of the leaves.
func (l *aligned) next() (delta, bool) {
	for ; l.i < l.a.len(); l.i++ {
		if l.native {
			if l.sameNative(l.i) {
				continue
			}
			l.a.nativeAt(l.i, &l.old)
			l.b.nativeAt(l.i, &l.new)
		} else {
			l.old, l.new = Value{}, Value{}
			l.a.value(l.i, &l.old)
			l.b.value(l.i, &l.new)
			if l.old.Equal(&l.new) {
				continue
			}
		}
		l.key = l.a.keyAt(l.i, l.key)
		l.i++
		return delta{key: l.key, old: &l.old, new: &l.new}, true
	}
	return delta{}, false
}

// sameNative is Value.Equal of native value i of the two leaves. Equal hashes
// are of equal lengths.
func (l *aligned) sameNative(i int) bool {
	p, q := &l.a.native, &l.b.native
	s, t := l.a.raw[int(p.sums)+i*digest.Size:], l.b.raw[int(q.sums)+i*digest.Size:]
	_, _ = s[digest.Size-1], t[digest.Size-1]
	if binary.LittleEndian.Uint64(s) != binary.LittleEndian.Uint64(t) ||
		binary.LittleEndian.Uint64(s[8:]) != binary.LittleEndian.Uint64(t[8:]) ||
		binary.LittleEndian.Uint32(s[16:]) != binary.LittleEndian.Uint32(t[16:]) ||
		p.offsets.get(l.a.index, i) != q.offsets.get(l.b.index, i) {
		return false
	}
	return l.onePack || l.a.packAt(i) == l.b.packAt(i)
}

// packAt is the pack of native value i.
func (p *page) packAt(i int) PackID {
	c := &p.native
	return PackID(p.raw[int(c.dict)+c.entry(p.index, i)*len(PackID{}):])
}

// usesOnePack reports whether all values are in the pack of the first.
func (c *refColumn) usesOnePack() bool { return !c.own && c.entries.width == 0 }
