package tree

import (
	"bytes"
	"context"
	"iter"
)

// Diff yields the keys whose values differ between two maps, in order. Values are compared by
// Value.Equal. It skips pages that both maps have, so its cost grows with the changes and not with
// the maps. An error ends it. For many changes, other goroutines read pages ahead; they end with
// the sequence.
func (t *Tree) Diff(ctx context.Context, a, b Root, span Span) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		d := t.newDiffer(ctx, a, b, &span)
		d.lookAhead()
		defer d.close()
		for {
			change, ok, err := d.next()
			if err != nil {
				yield(Change{}, err)
				return
			}
			if !ok || !yield(change.copy(), nil) {
				return
			}
		}
	}
}

// delta is a Change that is valid until the next one.
type delta struct {
	key      []byte
	old, new *Value
}

func (d *delta) copy() Change {
	c := Change{Key: bytes.Clone(d.key)}
	if c.Key == nil {
		c.Key = []byte{}
	}
	if d.old != nil {
		c.Old = new(*d.old)
	}
	if d.new != nil {
		c.New = new(*d.new)
	}
	return c
}

// side walks over one of the maps. Its position is before an unread page, at an
// item of a leaf, or at the end.
type side struct {
	t     *Tree
	ctx   context.Context
	ahead *ahead // reads leaves before, if not nil
	which int    // of the two maps
	lo    []byte // begin here; only for the first path
	stack []frame
	edge  Root // the page, unless leaf
	leaf  bool
	end   bool
	items itemReader
	item  Entry
	buf   []byte
}

func (t *Tree) side(ctx context.Context, root Root, span *Span) *side {
	return &side{t: t, ctx: ctx, lo: span.first(), edge: root, end: root.Empty(), buf: make([]byte, 0, len(scratchKey{}))}
}

// over goes past the page.
func (s *side) over() {
	s.lo, s.leaf = nil, false
	for n := len(s.stack); n > 0; n-- {
		f := &s.stack[n-1]
		if f.i++; f.i < f.p.len() {
			s.stack = s.stack[:n]
			s.edge = f.p.childAt(f.i)
			return
		}
	}
	s.end = true
}

// into reads the page and goes to its first item.
func (s *side) into() error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	p, err := s.load()
	if err == nil {
		err = checkPlace(s.stack, p)
	}
	if err != nil {
		return err
	}
	i := 0
	if len(s.lo) > 0 {
		i, _ = p.find(s.lo, s.buf)
	}
	if i == p.len() {
		s.over()
		return nil
	}
	if !p.isLeaf() {
		s.stack = append(s.stack, frame{p, i})
		s.edge = p.childAt(i)
		return nil
	}
	s.leaf = true
	s.items.open(p, i, s.buf)
	s.item = Entry{}
	s.items.next(&s.item)
	return nil
}

func (s *side) load() (*page, error) {
	if s.ahead != nil && s.edge.Height == 0 {
		return s.ahead.load(&s.edge, s.which)
	}
	s.t.readAhead(s.ctx, s.stack)
	return s.t.load(s.ctx, &s.edge)
}

// step goes to the next item of the leaf, or past it.
func (s *side) step() {
	if !s.items.next(&s.item) {
		s.over()
	}
}

// lastKey is the last key below the page that s stands before; nil for the
// root page.
func (s *side) lastKey() []byte {
	if n := len(s.stack); n > 0 {
		f := s.stack[n-1]
		return f.p.keyAt(f.i, s.buf)
	}
	return nil
}

// differ walks over two maps and skips the pages that they share.
type differ struct {
	a, b         *side
	to           []byte
	stepA, stepB bool    // the side is at the difference returned last
	both         aligned // leaves that are compared as a whole, if both.a is not nil
	ahead        *ahead  // of both sides, or nil
}

func (t *Tree) newDiffer(ctx context.Context, a, b Root, span *Span) *differ {
	return &differ{a: t.side(ctx, a, span), b: t.side(ctx, b, span), to: span.To}
}

// lookAhead starts goroutines that read pages ahead. The caller must then call
// close.
func (d *differ) lookAhead() {
	if d.to == nil {
		d.ahead = d.a.t.newAhead(d.a.ctx)
		d.a.ahead, d.b.ahead, d.b.which = d.ahead, d.ahead, 1
	}
}

// close waits for the goroutines of lookAhead.
func (d *differ) close() { d.ahead.end() }

// next returns the next difference; false at the end.
func (d *differ) next() (delta, bool, error) {
	if d.stepA {
		d.a.step()
	}
	if d.stepB {
		d.b.step()
	}
	d.stepA, d.stepB = false, false
	for {
		if d.both.a != nil {
			if out, ok := d.both.next(); ok {
				return out, !d.past(out.key), nil
			}
			if d.to != nil && d.past(d.both.a.lastKey()) {
				return delta{}, false, nil
			}
			d.both.a = nil
			d.a.over()
			d.b.over()
		}
		if d.a.end && d.b.end {
			return delta{}, false, nil
		}
		if descended, err := d.descend(); err != nil {
			return delta{}, false, err
		} else if descended {
			continue
		}
		out, ok := d.compare()
		if d.past(out.key) {
			return delta{}, false, nil
		}
		if ok {
			return out, true, nil
		}
		d.a.step()
		d.b.step()
	}
}

// past reports whether a key lies behind the span.
func (d *differ) past(key []byte) bool { return d.to != nil && bytes.Compare(key, d.to) >= 0 }

// descend brings the sides towards items. It returns false if each is at an item
// or at its end.
func (d *differ) descend() (bool, error) {
	a, b := d.a, d.b
	pageA, pageB := !a.end && !a.leaf, !b.end && !b.leaf
	switch {
	case !pageA && !pageB:
		return false, nil
	case pageA && pageB && a.edge == b.edge:
		if d.to != nil {
			if key := a.lastKey(); key != nil && bytes.Compare(key, d.to) >= 0 {
				a.end, b.end = true, true
				return true, nil
			}
		} else {
			skipSame(a, b)
		}
		a.over()
		b.over()
	case pageA && pageB && a.edge.Height > b.edge.Height:
		return true, a.into()
	case pageA && pageB && a.edge.Height < b.edge.Height:
		return true, b.into()
	default:
		if pageA && pageB && a.edge.Height == 0 && d.ahead != nil {
			d.ahead.descend(a.stack, b.stack)
		}
		if pageA {
			if err := a.into(); err != nil {
				return true, err
			}
		}
		if pageB {
			if err := b.into(); err != nil {
				return true, err
			}
		}
		if pageA && pageB && a.leaf && b.leaf {
			d.align()
		}
	}
	return true, nil
}

// skipSame goes past the pages after the ones before which two sides stand, as
// long as they are the same in the two pages above.
func skipSame(a, b *side) {
	n, m := len(a.stack), len(b.stack)
	if n == 0 || m == 0 {
		return
	}
	f, g := &a.stack[n-1], &b.stack[m-1]
	for f.i+1 < f.p.len() && g.i+1 < g.p.len() &&
		f.p.child.name(f.p.raw, f.i+1) == g.p.child.name(g.p.raw, g.i+1) {
		f.i++
		g.i++
	}
}

// compare returns the difference at the items of the two sides, of which one
// may be at its end; false if they are equal.
func (d *differ) compare() (delta, bool) {
	a, b := d.a, d.b
	c := 0
	switch {
	case a.end:
		c = 1
	case b.end:
		c = -1
	default:
		c = bytes.Compare(a.item.Key, b.item.Key)
	}
	switch {
	case c < 0:
		d.stepA = true
		return delta{key: a.item.Key, old: &a.item.Value}, true
	case c > 0:
		d.stepB = true
		return delta{key: b.item.Key, new: &b.item.Value}, true
	case a.item.Value.Equal(&b.item.Value):
		return delta{key: a.item.Key}, false
	}
	d.stepA, d.stepB = true, true
	return delta{key: a.item.Key, old: &a.item.Value, new: &b.item.Value}, true
}
