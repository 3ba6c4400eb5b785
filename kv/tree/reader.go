package tree

import "sort"

// at returns key i in buf or on the heap.
func (p *page) keyAt(i int, buf []byte) []byte {
	r := p.enterItem(i, buf)
	return r.key
}

// lastKey returns the last key of a page, which the caller owns.
func (p *page) lastKey() []byte { return p.keyAt(p.len()-1, nil) }

// enterItem returns a reader that stands at key i.
func (p *page) enterItem(i int, buf []byte) keyReader {
	m := sort.Search(int(p.keys.marks), func(m int) bool { return p.markItem(m) > i }) - 1
	r := p.enter(m, buf)
	for at := p.markItem(m); at < i; at++ {
		r.next()
	}
	return r
}

// itemReader reads the items of a page in order.
type itemReader struct {
	p      *page
	i      int // of the item that comes next
	keys   keyReader
	stands bool // keys stands at item i, not before it

	sources sourceCursor
}

// open goes before item i of a page. buf is scratch space for keys.
func (r *itemReader) open(p *page, i int, buf []byte) {
	*r = itemReader{p: p, i: i, stands: true}
	if i < p.len() {
		r.keys = p.enterItem(i, buf)
	}
}

// next sets e to the next item, or returns false. e.Key is valid until the next
// call. e must be zero or from the call before.
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
	kind, o := p.kind, r.i
	if kind == mixed {
		e.Value = Value{}
		kind, o = p.ordinal(r.i)
	}
	switch kind {
	case KindNative:
		p.nativeAt(o, &e.Value)
	case KindVirtual:
		r.virtual(o, &e.Value)
	default:
		p.value(r.i, &e.Value)
	}
	r.i++
	return true
}

// virtual sets v to virtual value o.
func (r *itemReader) virtual(o int, v *Value) {
	p := r.p
	c := &p.virtual
	v.Kind = KindVirtual
	v.Offset, v.Length = c.offsets.get(p.index, o), c.lengths.get(p.raw, o)
	v.Source = r.sources.get(p, c.entry(p.index, o))
}
