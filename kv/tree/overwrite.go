package tree

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// Most edits give an existing key another value of the same weight. Then no cut
// moves and the page keeps its keys, which need not be decoded, compared, hashed
// and coded again. The same holds on the levels above: the page below has a new
// name and the same last key.

// overwrite is a new value of an item of a page.
type overwrite struct {
	i int
	v Value
}

// value returns the new value of a splice of one key, nil if it deletes the key;
// ok is false for other splices.
func (s *splice) value() (v *Value, ok bool) {
	if s.open || s.toEnd || len(s.items) > 1 || !bytes.Equal(s.lo, s.hi) {
		return nil, false
	}
	if len(s.items) == 0 {
		return nil, true
	}
	return &s.items[0].Value, bytes.Equal(s.items[0].Key, s.lo)
}

// overwrite makes the splices that begin in the page at the cursor, if all of
// them overwrite, and goes past them. Otherwise it returns false, and the next
// splice is the first that changes anything.
func (p *pass) overwrite(c *cursor) (done bool, err error) {
	page, err := c.load()
	if err != nil {
		return false, err
	}
	var (
		buf scratchKey
		old Value
	)
	p.over = p.over[:0]
	for p.s != nil {
		i, exact := page.find(p.s.lo, buf[:])
		if i == page.len() && !c.isLast() {
			break // it begins in a later page
		}
		v, ok := p.s.value()
		switch {
		case ok && v == nil && !exact:
			// Deletes a missing key.
		case !ok || v == nil || !exact:
			p.takeBack(page)
			return false, nil
		default:
			page.value(i, &old)
			if !old.Equal(v) {
				if p.height == 0 && !old.weighs(v) {
					p.takeBack(page)
					return false, nil
				}
				p.over = append(p.over, overwrite{i, *v})
			}
		}
		if err := p.advance(); err != nil {
			return false, err
		}
	}
	if len(p.over) == 0 {
		return true, nil
	}
	return true, p.rewrite(c, page)
}

// weighs reports whether two values have the same weight in a leaf.
func (v *Value) weighs(w *Value) bool {
	return v.Kind == w.Kind && (v.Kind != KindInline || len(v.Inline) == len(w.Inline))
}

// takeBack turns the overwrites into splices again, which come before p.s.
func (p *pass) takeBack(page *page) {
	if len(p.over) == 0 {
		return
	}
	items := make([]Entry, len(p.over))
	p.again = make([]splice, len(p.over))
	for k := range p.over {
		key := page.keyAt(p.over[k].i, nil)
		items[k] = Entry{Key: key, Value: p.over[k].v}
		p.again[k] = splice{lo: key, hi: key, items: items[k : k+1]}
	}
	p.after, p.s = p.s, &p.again[0]
	p.again = p.again[1:]
}

// rewrite stores the page at the cursor with the overwrites.
func (p *pass) rewrite(c *cursor, page *page) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	enc := encoderPool.Get().(*pageEncoder)
	raw, root := enc.overwrite(page, p.over)
	enc.release()
	if err := p.t.put(p.ctx, raw, &root, p.keep); err != nil {
		return err
	}
	if p.keep {
		page.used.Store(false) // the new one takes its place in the cache
	}
	edge, err := c.edge()
	if err != nil {
		return err
	}
	edge.Value.Child = root
	items := []Entry{edge}
	if len(c.stack) == 0 {
		p.whole, p.top = true, items
	}
	p.out = append(p.out, splice{lo: edge.Key, hi: edge.Key, items: items})
	return nil
}

// overwrite returns the bytes of a page with other values, and its root.
func (e *pageEncoder) overwrite(p *page, over []overwrite) ([]byte, Root) {
	e.reset(p.self.Height)
	e.keys.buf = append(e.keys.buf, p.codedKeys()...)
	switch {
	case p.kind == KindNative:
		e.overwriteNative(p, over)
	case !p.isLeaf():
		e.overwriteEdges(p, over)
	default:
		e.overwriteAny(p, over)
	}
	return e.finish()
}

func (e *pageEncoder) overwriteAny(p *page, over []overwrite) {
	var (
		buf  scratchKey
		r    itemReader
		item Entry
	)
	r.open(p, 0, buf[:])
	for i := 0; r.next(&item); i++ {
		if len(over) > 0 && over[0].i == i {
			e.addValue(&over[0].v)
			over = over[1:]
			continue
		}
		e.addValue(&item.Value)
	}
}

// overwriteNative is overwriteAny for a leaf of native values. It copies whole
// columns.
func (e *pageEncoder) overwriteNative(p *page, over []overwrite) {
	c, n := &p.native, p.len()
	e.n = n
	e.sums = append(e.sums, p.raw[c.sums:][:n*digest.Size]...)
	e.sum.Entries, e.sum.Flags = uint64(n), HasNative
	e.kinds.addRun(int64(KindNative), uint64(n))
	e.offsets = column(e.offsets, &c.offsets, p.index, n)
	e.native.lengths = column(e.native.lengths, &c.lengths, p.raw, n)
	offsets, lengths := e.offsets, e.native.lengths
	for k := range over {
		i, v := over[k].i, &over[k].v
		copy(e.sums[i*digest.Size:], v.Sum[:])
		offsets[i], lengths[i] = v.Offset, v.Length
	}
	from, to := -1, 0 // numbers of the pack before in the old page and the new one
	next := 0         // of over
	for i, length := range lengths {
		if next < len(over) && over[next].i == i {
			from, to = -1, e.packID(&over[next].v.Pack)
			next++
		} else if entry := c.entry(p.index, i); entry != from {
			from, to = entry, e.packID((*PackID)(p.raw[int(c.dict)+entry*len(PackID{}):]))
		}
		e.native.place(to, offsets[i], length)
		e.sum.Bytes += length
	}
}

// column returns n values of a column in the memory of dst.
func column(dst []uint64, c *packed, b []byte, n int) []uint64 {
	dst = slices.Grow(dst[:0], n)[:n]
	c.values(dst, b)
	return dst
}

// overwriteEdges is overwriteAny for an interior page. It copies whole columns.
func (e *pageEncoder) overwriteEdges(p *page, over []overwrite) {
	c, n, to := &p.child, p.len(), &e.child
	e.n = n
	to.names = append(to.names, p.raw[c.names:][:n*digest.Size]...)
	to.sizes = column(to.sizes, &c.sizes, p.raw, n)
	to.entries = column(to.entries, &c.entries, p.raw, n)
	to.bytes = column(to.bytes, &c.bytes, p.raw, n)
	to.flags = column(to.flags, &c.flags, p.raw, n)
	for k := range over {
		i, r := over[k].i, &over[k].v.Child
		copy(to.names[i*digest.Size:], r.Name[:])
		to.sizes[i], to.entries[i], to.bytes[i], to.flags[i] = uint64(r.Size), r.Entries, r.Bytes, uint64(r.Flags)
	}
	for i := range n {
		e.sum.Entries += to.entries[i]
		e.sum.Bytes += to.bytes[i]
		e.sum.Flags |= Flags(to.flags[i])
	}
}

// codedKeys are the keys as they are in the page.
func (p *page) codedKeys() []byte {
	last := int(p.keys.marks) - 1
	r := keyReader{page: p.raw, pos: int32(p.mark(last, 1))}
	for i := p.markItem(last) + 1; i < p.len(); {
		if _, add := r.token(); add < 0 {
			i += -add
		} else {
			r.pos += int32(add)
			i++
		}
	}
	var n [binary.MaxVarintLen64]byte
	begin := 2 + binary.PutUvarint(n[:], uint64(p.len()))
	return p.raw[begin:r.pos]
}
