package tree

import (
	"context"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// Payload is where the bytes of a native value are.
type Payload struct {
	Pack           PackID
	Offset, Length uint64
}

// Links holds the pages and payloads that one page refers to, for garbage
// collection. The next page reuses the slices.
type Links struct {
	// Pages are the pages below, or the roots of child maps.
	Pages []Root
	// Payloads are the payloads of native values. Payloads of consecutive
	// values that follow each other in a pack are one entry: Length then
	// reaches from the first to the end of the last. A payload of another page
	// may lie between them. The caller sets Exact to get one entry per payload.
	Payloads []Payload
	Exact    bool

	page    page
	scratch scratch
}

// maxRow is the largest distance of payloads that follow each other: enough for
// a record's header and alignment, too little for another payload with its
// header.
const maxRow = 400

// Follows reports whether a payload at offset next may directly follow one that
// ends at end: no reclaimable payload fits between them.
func Follows(end, next uint64) bool {
	if next < end {
		return false
	}
	gap := next - end
	return gap <= maxRow || next%refAlignLarge == 0 && gap <= maxRow+refAlignLarge
}

// Links reads one page and sets l to its references. It does not put the page
// into the cache, so that a walk over everything does not evict the pages of
// readers.
func (t *Tree) Links(ctx context.Context, r Root, l *Links) error {
	l.Pages, l.Payloads = l.Pages[:0], l.Payloads[:0]
	if r.Empty() {
		return nil
	}
	var p *page
	if t.cache != nil {
		p = t.cache.get(&r.Name)
	}
	if p == nil {
		raw, err := t.fetch(ctx, &r)
		if err != nil {
			return err
		}
		if p, err = l.decode(r.Name, raw); err != nil {
			return err
		}
	}
	if err := p.is(&r); err != nil {
		return err
	}
	l.set(p)
	return nil
}

// Read sets l to the references of a page with these bytes, and returns the
// height of the page. It does not keep raw. The error is ErrCorrupt if the bytes
// are no page or have another hash than the name.
func (l *Links) Read(name Name, raw []byte) (height uint8, err error) {
	l.Pages, l.Payloads = l.Pages[:0], l.Payloads[:0]
	if digest.Of(raw) != name {
		return 0, corrupt(name, "its %d bytes have another hash", len(raw))
	}
	p, err := l.decode(name, raw)
	if err != nil {
		return 0, err
	}
	l.set(p)
	height = p.self.Height
	l.page = page{}
	return height, nil
}

// decode parses a page in memory that the next one reuses.
func (l *Links) decode(name Name, raw []byte) (*page, error) {
	l.page = page{}
	return &l.page, l.page.decode(name, raw, &l.scratch)
}

func (l *Links) set(p *page) {
	for i := range p.len() {
		kind, o := KindChild, i
		if p.isLeaf() {
			kind, o = p.ordinal(i)
		}
		switch kind {
		case KindChild:
			if c := p.childAt(o); !c.Empty() {
				l.Pages = append(l.Pages, c)
			}
		case KindNative:
			l.add(p, o)
		}
	}
}

// add appends native value o of a leaf.
func (l *Links) add(p *page, o int) {
	c := &p.native
	x := Payload{
		Pack:   PackID(p.raw[int(c.dict)+c.entry(p.index, o)*len(PackID{}):]),
		Offset: c.offsets.get(p.index, o), Length: c.lengths.get(p.raw, o),
	}
	if n := len(l.Payloads); n > 0 && !l.Exact {
		last := &l.Payloads[n-1]
		if last.Pack == x.Pack && Follows(last.Offset+last.Length, x.Offset) {
			last.Length = x.Offset + x.Length - last.Offset
			return
		}
	}
	l.Payloads = append(l.Payloads, x)
}
