package tree

import (
	"context"
	"iter"
)

// Scan yields the entries of a span in order of keys. It reads one leaf at a time,
// when the loop needs it. An error ends it.
func (t *Tree) Scan(ctx context.Context, root Root, span Span) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if root.Empty() {
			return
		}
		c := t.cursor(ctx, root, 0)
		err := c.scan(span, func(p *page, begin, end int) bool { return p.scan(begin, end, yield) })
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// Keys yields the keys of a span in ascending order, without their values. The keys
// of a page share an allocation; the caller may keep them but not change them.
func (t *Tree) Keys(ctx context.Context, root Root, span Span) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if root.Empty() {
			return
		}
		c := t.cursor(ctx, root, 0)
		if err := c.scan(span, func(p *page, begin, end int) bool { return p.scanKeys(begin, end, yield) }); err != nil {
			yield(nil, err)
		}
	}
}

// bounds returns the indices of the items of a page that lie in a span, and
// whether the span may go on after the page.
func (p *page) bounds(lo, to []byte) (begin, end int, more bool) {
	var buf scratchKey
	begin, end = 0, p.len()
	if len(lo) > 0 {
		begin, _ = p.find(lo, buf[:])
	}
	if to != nil {
		end, _ = p.find(to, buf[:])
	}
	return begin, max(begin, end), end == p.len()
}

// scan calls visit with the part of each page that lies in a span, until visit
// returns false.
func (c *cursor) scan(span Span, visit func(p *page, begin, end int) bool) error {
	lo := span.first()
	if err := c.seek(lo); err != nil {
		return err
	}
	for {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		p, err := c.load()
		if err != nil {
			return err
		}
		begin, end, more := p.bounds(lo, span.To)
		if !visit(p, begin, end) || !more || c.isLast() {
			return nil
		}
		lo = nil
		if err := c.next(); err != nil {
			return err
		}
	}
}

// scan yields items begin to end; false if yield returned false. Their keys
// share one allocation.
func (p *page) scan(begin, end int, yield func(Entry, error) bool) bool {
	if begin == end {
		return true
	}
	var (
		buf  scratchKey
		r    itemReader
		e    Entry
		keys = make([]byte, 0, min(int(p.keys.total), (end-begin)*int(p.keys.longest)))
	)
	r.open(p, begin, buf[:])
	for range end - begin {
		r.next(&e)
		n := len(keys)
		keys = append(keys, e.Key...)
		e.Key = keys[n:len(keys):len(keys)]
		if !yield(e, nil) {
			return false
		}
	}
	return true
}

// scanKeys yields the keys begin to end; false if yield returned false.
func (p *page) scanKeys(begin, end int, yield func([]byte, error) bool) bool {
	if begin == end {
		return true
	}
	var buf scratchKey
	keys := make([]byte, 0, min(int(p.keys.total), (end-begin)*int(p.keys.longest)))
	for r := p.enterItem(begin, buf[:]); ; r.next() {
		n := len(keys)
		keys = append(keys, r.key...)
		if !yield(keys[n:len(keys):len(keys)], nil) {
			return false
		}
		if begin++; begin == end {
			return true
		}
	}
}
