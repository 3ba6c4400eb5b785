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

// Links are what one page names, for collectors. The slices are reused by the
// next page.
type Links struct {
	// Pages are the pages below, or the roots of child maps.
	Pages []Root
	// Payloads are those of native values. Of values in a row whose payloads
	// follow each other, only the sum is given: Length then reaches from the
	// first to the end of the last. There may be a payload of other pages in
	// between; with Exact, which the caller sets, each has its own entry.
	Payloads []Payload
	Exact    bool

	page    page
	scratch scratch
}

// maxRow is how far apart payloads may be to follow each other: the room of a
// record's header and of alignment, and less than any other payload would
// take with its header.
const maxRow = 400

// Follows reports whether a payload at offset next may come right after one
// that ends at end: nothing that is worth reclaiming fits in between.
func Follows(end, next uint64) bool {
	if next < end {
		return false
	}
	gap := next - end
	return gap <= maxRow || next%refAlignLarge == 0 && gap <= maxRow+refAlignLarge
}

// Links reads one page and sets l to what it names. It keeps nothing in the
// cache, so that a walk over everything does not push out what readers use.
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

// Read sets l to what a page with these bytes names, and returns the height of
// the page. It keeps nothing of raw. Bytes that are no page, or have another
// hash than the name, are ErrCorrupt.
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
