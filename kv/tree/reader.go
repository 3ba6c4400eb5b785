package tree

import "sort"

// at returns key i in buf or on the heap.
func (c *keyColumn) at(i int, buf []byte) []byte {
	r := c.enterItem(i, buf)
	return r.key
}

// enterItem returns a reader that stands at key i.
func (c *keyColumn) enterItem(i int, buf []byte) keyReader {
	m := sort.Search(len(c.marks), func(m int) bool { return int(c.marks[m].item) > i }) - 1
	r := c.enter(m, buf)
	for at := int(c.marks[m].item); at < i; at++ {
		r.next()
	}
	return r
}

// lastKey returns the last key of a page, which the caller owns.
func (p *page) lastKey() []byte { return p.keys.at(p.len()-1, nil) }

// itemReader reads the items of a page in order.
type itemReader struct {
	p       *page
	i       int // of the item that comes next
	keys    keyReader
	stands  bool // keys stands at item i, not before it
	native  refReader
	virtual refReader
}

// open goes before item i of a page. buf is scratch space for keys.
func (r *itemReader) open(p *page, i int, buf []byte) {
	*r = itemReader{p: p, i: i, stands: true}
	if i == p.len() {
		return
	}
	r.keys = p.keys.enterItem(i, buf)
	if !p.isLeaf() {
		return
	}
	if p.kind != mixed {
		r.native = p.native.enter(p.raw, i)
		r.virtual = p.virtual.enter(p.raw, i)
		return
	}
	// Values of a kind are entered at the first one that comes.
	for want, j := 2, i; j < p.len() && want > 0; j++ {
		switch {
		case p.kinds[j] == KindNative && r.native == refReader{}:
			r.native = p.native.enter(p.raw, int(p.ords[j]))
			want--
		case p.kinds[j] == KindVirtual && r.virtual == refReader{}:
			r.virtual = p.virtual.enter(p.raw, int(p.ords[j]))
			want--
		}
	}
}

// next sets e to the next item, or returns false. e.Key is valid until the next
// call. e must have been set by this reader only, or be zero.
func (r *itemReader) next(e *Entry) bool {
	p := r.p
	if r.i == p.len() {
		return false
	}
	if r.stands {
		r.stands = false
	} else {
		r.keys.next()
	}
	e.Key = r.keys.key
	i := r.i
	r.i++
	kind := p.kind
	if !p.isLeaf() {
		e.Value.Kind = KindChild
		e.Value.Child = p.child.get(i)
		return true
	}
	if kind == mixed {
		kind, i = p.kinds[i], int(p.ords[i])
		e.Value = Value{}
	}
	switch kind {
	case KindInline:
		e.Value.Inline = p.inlineAt(i)
	case KindNative:
		entry, offset, length := p.native.next(&r.native, p.raw, i)
		p.native.set(&e.Value, i, entry, offset, length)
	case KindVirtual:
		entry, offset, length := p.virtual.next(&r.virtual, p.raw, i)
		p.virtual.set(&e.Value, i, entry, offset, length)
	case KindChild:
		e.Value.Kind = KindChild
		e.Value.Child = p.child.get(i)
	}
	return true
}
