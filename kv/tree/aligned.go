package tree

import (
	"bytes"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// aligned compares two leaves with the same keys, item by item, without decoding
// keys and values that do not differ: what most edits leave.
type aligned struct {
	a, b     *page
	i        int // of the item that comes next
	key      []byte
	old, new Value
}

// align begins to compare the leaves in which the two sides stand, if they have
// the same keys and the sides stand at the same one.
func (d *differ) align() {
	a, b := d.a.items.p, d.b.items.p
	at := d.a.items.i - 1
	if at != d.b.items.i-1 || a.len() != b.len() || !bytes.Equal(a.codedKeys(), b.codedKeys()) {
		return
	}
	d.both = aligned{a: a, b: b, i: at, key: d.both.key}
}

// next returns the next difference; false at the end of the leaves.
func (l *aligned) next() (delta, bool) {
	for ; l.i < l.a.len(); l.i++ {
		if l.a.kind == KindNative && l.b.kind == KindNative {
			if sameNative(l.a, l.b, l.i) {
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

// sameNative is Value.Equal of native value i of two leaves.
func sameNative(a, b *page, i int) bool {
	p, q := &a.native, &b.native
	if string(a.raw[int(p.sums)+i*digest.Size:][:digest.Size]) != string(b.raw[int(q.sums)+i*digest.Size:][:digest.Size]) ||
		p.offsets.get(a.index, i) != q.offsets.get(b.index, i) || p.lengths.get(a.raw, i) != q.lengths.get(b.raw, i) {
		return false
	}
	const size = len(PackID{})
	return string(a.raw[int(p.dict)+p.entry(a.index, i)*size:][:size]) == string(b.raw[int(q.dict)+q.entry(b.index, i)*size:][:size])
}
