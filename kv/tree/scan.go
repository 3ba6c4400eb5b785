package tree

import (
	"context"
	"iter"
)

// Scan yields the entries of a span in order of keys, or backwards. It reads one
// leaf at a time, when the loop needs it. An error ends it.
func (t *Tree) Scan(ctx context.Context, root Root, span Span) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if root.Empty() {
			return
		}
		c := t.cursor(ctx, root, 0)
		var err error
		if span.Reverse {
			err = c.scanDown(span, yield)
		} else {
			err = c.scanUp(span, func(p *page, begin, end int) bool { return p.scan(begin, end, yield) })
		}
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// Keys yields the keys of a span in ascending order, without their values; it
// ignores Reverse. The keys of a page share an allocation; the caller may keep
// them but not change them.
func (t *Tree) Keys(ctx context.Context, root Root, span Span) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if root.Empty() {
			return
		}
		c := t.cursor(ctx, root, 0)
		if err := c.scanUp(span, func(p *page, begin, end int) bool { return p.scanKeys(begin, end, yield) }); err != nil {
			yield(nil, err)
		}
	}
}

// bounds returns the indices of the items of a page that lie in a span, and
// whether the span may go on before and after the page.
func (p *page) bounds(lo, to []byte) (begin, end int, before, after bool) {
	var buf scratchKey
	begin, end = 0, p.len()
	if len(lo) > 0 {
		begin, _ = p.find(lo, buf[:])
	}
	if to != nil {
		end, _ = p.find(to, buf[:])
	}
	return begin, max(begin, end), begin == 0, end == p.len()
}

// scanUp calls visit with the part of each page that lies in a span, until visit
// returns false.
func (c *cursor) scanUp(span Span, visit func(p *page, begin, end int) bool) error {
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
		begin, end, _, more := p.bounds(lo, span.To)
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

func (c *cursor) scanDown(span Span, yield func(Entry, error) bool) error {
	lo := span.first()
	seek := c.seekLast
	if span.To != nil {
		seek = func() error { return c.seek(span.To) }
	}
	if err := seek(); err != nil {
		return err
	}
	var items []Entry
	for {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		p, err := c.load()
		if err != nil {
			return err
		}
		begin, end, more, _ := p.bounds(lo, span.To)
		items = items[:0]
		p.scan(begin, end, func(e Entry, _ error) bool {
			items = append(items, e)
			return true
		})
		for i := len(items) - 1; i >= 0; i-- {
			if !yield(items[i], nil) {
				return nil
			}
		}
		if !more || c.isFirst() {
			return nil
		}
		if err := c.prev(); err != nil {
			return err
		}
	}
}
