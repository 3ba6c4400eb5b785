package tree

import (
	"bytes"
	"context"
	"fmt"
	"slices"
)

// A splice replaces the items of one level whose keys are in a range by other items.
type splice struct {
	lo    []byte  // first key
	hi    []byte  // last key
	open  bool    // hi itself stays
	toEnd bool    // without hi, to the end
	items []Entry // ascending; no item that stays lies between them
}

// covers reports whether a key that is not less than s.lo is replaced.
func (s *splice) covers(key []byte) bool {
	if s.toEnd {
		return true
	}
	c := bytes.Compare(key, s.hi)
	return c < 0 || c == 0 && !s.open
}

// splices yields splices in order; nil at the end. A splice is valid until the
// next call.
type splices func() (*splice, error)

// Apply applies edits, which must be in strictly ascending order of keys, to a
// map. The result equals the map that Build makes of the resulting entries.
// Pages without edits below them are shared; one edit writes about three pages.
// Several goroutines apply many edits. The new pages go into the cache for the
// next edits and readers.
func (t *Tree) Apply(ctx context.Context, root Root, edits []Edit) (Root, error) {
	for i := range edits {
		e := Entry{Key: edits[i].Key}
		if !edits[i].Delete {
			e.Value = edits[i].Value
		}
		if err := e.check(); err != nil {
			return Root{}, err
		}
		if i > 0 && bytes.Compare(edits[i-1].Key, e.Key) >= 0 {
			return Root{}, fmt.Errorf("%w: edit %s after %s", errOrder, quoteKey(e.Key), quoteKey(edits[i-1].Key))
		}
	}
	if root.Empty() {
		return t.buildSplices(ctx, editSplices(edits))
	}
	p := &pass{ctx: ctx, t: t, root: root, keep: true}
	err := p.runList(&spliceList{
		n:    len(edits),
		lo:   func(i int) []byte { return edits[i].Key },
		from: func(i int) splices { return editSplices(edits[i:]) },
	})
	if err != nil {
		return Root{}, err
	}
	return p.climb()
}

// editSplices makes splices of edits.
func editSplices(edits []Edit) splices {
	var s splice
	var item [1]Entry
	return func() (*splice, error) {
		if len(edits) == 0 {
			return nil, nil
		}
		e := &edits[0]
		edits = edits[1:]
		s = splice{lo: e.Key, hi: e.Key}
		if !e.Delete {
			item[0] = Entry{Key: e.Key, Value: e.Value}
			s.items = item[:]
		}
		return &s, nil
	}
}

// DeleteRange makes the map without the keys of a span. It reads and writes
// pages at the two ends of the span only.
func (t *Tree) DeleteRange(ctx context.Context, root Root, span Span) (Root, error) {
	s := &splice{lo: span.first(), hi: span.To, open: true, toEnd: span.To == nil}
	if !s.toEnd && bytes.Compare(s.lo, s.hi) >= 0 {
		return root, nil
	}
	return t.splice(ctx, root, true, func() (*splice, error) {
		out := s
		s = nil
		return out, nil
	})
}

// first returns the least key in the span, without regard to To.
func (s *Span) first() []byte {
	if s.After && s.From != nil {
		return append(slices.Clip(s.From), 0) // no key lies between
	}
	return s.From
}

// splice applies splices of entries. With keep, new pages go into the cache.
func (t *Tree) splice(ctx context.Context, root Root, keep bool, in splices) (Root, error) {
	if root.Empty() {
		return t.buildSplices(ctx, in)
	}
	p := pass{ctx: ctx, t: t, root: root, in: in, keep: keep}
	if err := p.run(); err != nil {
		return Root{}, err
	}
	return p.climb()
}

// climb applies the changes level by level: changed pages of one level are
// splices of the level above.
func (p *pass) climb() (Root, error) {
	for {
		switch {
		case p.whole:
			return p.raise()
		case len(p.out) == 0:
			return p.root, nil
		}
		out := p.out
		p = &pass{ctx: p.ctx, t: p.t, root: p.root, height: p.height + 1, keep: p.keep}
		err := p.runList(&spliceList{
			n:    len(out),
			lo:   func(i int) []byte { return out[i].lo },
			from: func(i int) splices { return sliceSplices(out[i:]) },
		})
		if err != nil {
			return Root{}, err
		}
	}
}

func (t *Tree) buildSplices(ctx context.Context, in splices) (Root, error) {
	b := t.NewBuilder(ctx)
	for {
		s, err := in()
		if err != nil {
			return Root{}, err
		}
		if s == nil {
			return b.Finish()
		}
		for _, e := range s.items {
			if err := b.Add(&e); err != nil {
				return Root{}, err
			}
		}
	}
}

func sliceSplices(list []splice) splices {
	return func() (*splice, error) {
		if len(list) == 0 {
			return nil, nil
		}
		s := &list[0]
		list = list[1:]
		return s, nil
	}
}

// pass applies splices to one level.
//
// It works in regions. A region begins at the page where the next splice begins:
// all pages before it are unchanged, so a page begins there in the new map as
// well. A region ends where a page of the new map and one of the old map end at
// the same key and the next old page has no splice, or belongs to another pass:
// from there on both maps have the same cuts.
type pass struct {
	ctx    context.Context
	t      *Tree
	root   Root
	height uint8
	in     splices

	stop []byte // splices from this key on belong to the next pass, unless a region included some

	s     *splice // the next one; nil at the end
	again []splice
	after *splice // the splice to return after s, if not nil
	over  []overwrite
	out   []splice
	keep  bool // new pages go into the cache
	// whole: the level was cut anew from end to end, and top holds all its
	// pages, or its only item.
	whole bool
	top   []Entry
}

func (p *pass) advance() (err error) {
	switch {
	case len(p.again) > 0:
		p.s, p.again = &p.again[0], p.again[1:]
	case p.after != nil:
		p.s, p.after = p.after, nil
	default:
		p.s, err = p.in()
	}
	return err
}

func (p *pass) run() error {
	if err := p.advance(); err != nil {
		return err
	}
	c := p.t.cursor(p.ctx, p.root, p.height)
	for p.s != nil && !p.stopped() {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		if err := c.seek(p.s.lo); err != nil {
			return err
		}
		if done, err := p.overwrite(c); err != nil {
			return err
		} else if done {
			continue
		}
		if err := p.region(c); err != nil {
			return err
		}
	}
	return nil
}

// stopped reports whether the next splice belongs to the next pass.
func (p *pass) stopped() bool { return p.stop != nil && bytes.Compare(p.s.lo, p.stop) >= 0 }

// region is the state of a region.
type region struct {
	*pass
	c     *cursor
	w     *pageWriter
	old   []Entry // pages that were read; splices may have removed pages between them
	edges []Entry // pages that replace them
	items itemReader
	item  Entry
	have  bool // item is the next one of the old page
}

func (p *pass) region(c *cursor) error {
	start := c.clone()
	r := region{pass: p, c: c}
	r.w = p.t.newPageWriter(p.ctx, p.height, func(e Entry) error {
		r.edges = append(r.edges, e)
		return nil
	})
	r.w.keep = p.keep
	defer r.w.close()
	atEnd := false
	for {
		if err := r.open(); err != nil {
			return err
		}
		if err := r.page(); err != nil {
			return err
		}
		if atEnd = c.isLast(); atEnd {
			break
		}
		next := c.clone()
		if err := next.next(); err != nil {
			return err
		}
		if r.w.clean() {
			key, err := next.key()
			if err != nil {
				return err
			}
			if p.s == nil || bytes.Compare(p.s.lo, key) > 0 || p.stopped() {
				break
			}
		}
		*c = *next
	}
	if atEnd && p.height > 0 && r.w.enc.n == 1 {
		if start.isFirst() {
			p.whole, p.top = true, []Entry{*r.w.only}
			return nil
		}
		if err := r.joinBefore(start); err != nil {
			return err
		}
	} else if err := r.w.finish(); err != nil {
		return err
	}
	if p.whole = atEnd && start.isFirst(); p.whole {
		p.top = r.edges
	}
	p.out = append(p.out, splice{lo: r.old[0].Key, hi: r.old[len(r.old)-1].Key, items: r.edges})
	return nil
}

// open begins to read the page at the cursor.
func (r *region) open() error {
	page, err := r.c.load()
	if err != nil {
		return err
	}
	edge, err := r.c.edge()
	if err != nil {
		return err
	}
	r.old = append(r.old, edge)
	r.w.known = r.old
	r.items.open(page, 0, r.items.keys.key)
	r.item = Entry{}
	r.step()
	return nil
}

func (r *region) step() { r.have = r.items.next(&r.item) }

// page merges the page with the splices that begin in it. A splice that ends in
// a later page moves the cursor there.
func (r *region) page() error {
	for {
		s := r.s
		if s == nil || bytes.Compare(s.lo, r.old[len(r.old)-1].Key) > 0 && !r.c.isLast() {
			break
		}
		for r.have && bytes.Compare(r.item.Key, s.lo) < 0 {
			if err := r.w.add(&r.item); err != nil {
				return err
			}
			r.step()
		}
		for i := range s.items {
			if err := r.w.add(&s.items[i]); err != nil {
				return err
			}
		}
		if err := r.skip(s); err != nil {
			return err
		}
		if err := r.advance(); err != nil {
			return err
		}
	}
	for r.have {
		if err := r.w.add(&r.item); err != nil {
			return err
		}
		r.step()
	}
	return nil
}

// skip leaves out the items that a splice replaces.
func (r *region) skip(s *splice) error {
	for r.have && s.covers(r.item.Key) {
		r.step()
	}
	if r.c.isLast() || !s.toEnd && bytes.Compare(s.hi, r.old[len(r.old)-1].Key) <= 0 {
		return nil // it ends in this page
	}
	if s.toEnd {
		if err := r.c.seekLast(); err != nil {
			return err
		}
		edge, err := r.c.edge()
		r.old = append(r.old, edge)
		return err
	}
	if err := r.c.seek(s.hi); err != nil {
		return err
	}
	if err := r.open(); err != nil {
		return err
	}
	for r.have && s.covers(r.item.Key) {
		r.step()
	}
	return nil
}

// joinBefore joins the one item that would be alone in the last page to the
// page before the region.
func (r *region) joinBefore(start *cursor) error {
	if r.t.held != nil {
		return errAlone
	}
	only := r.w.only
	r.w.start()
	if err := start.prev(); err != nil {
		return err
	}
	page, err := start.load()
	if err != nil {
		return err
	}
	edge, err := start.edge()
	if err != nil {
		return err
	}
	r.old = slices.Insert(r.old, 0, edge)
	if n := len(r.out); n > 0 && bytes.Equal(r.out[n-1].hi, edge.Key) {
		// It was overwritten.
		if page, err = r.t.load(r.ctx, &r.out[n-1].items[0].Value.Child); err != nil {
			return err
		}
		r.out = r.out[:n-1]
	}
	r.items.open(page, 0, nil)
	r.item = Entry{}
	for r.step(); r.have; r.step() {
		if err := r.w.add(&r.item); err != nil {
			return err
		}
	}
	if err := r.w.add(only); err != nil {
		return err
	}
	return r.w.finish()
}

// raise makes the levels above a level that was cut anew from end to end.
func (p *pass) raise() (Root, error) {
	edges := p.top
	for height := p.height + 1; len(edges) > 1; height++ {
		var err error
		if edges, err = p.level(height, edges); err != nil {
			return Root{}, err
		}
	}
	if len(edges) == 0 {
		return Root{}, nil
	}
	return edges[0].Value.Child, nil
}

// level makes the pages of a level and returns the items of the one above.
func (p *pass) level(height uint8, items []Entry) (above []Entry, err error) {
	w := p.t.newPageWriter(p.ctx, height, func(e Entry) error {
		above = append(above, e)
		return nil
	})
	w.keep = p.keep
	defer w.close()
	for i := range items {
		if err := w.add(&items[i]); err != nil {
			return nil, err
		}
	}
	err = w.finish()
	return above, err
}
