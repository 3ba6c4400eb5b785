package tree

// A page that was read for a look-up is glanced at: where the columns of a leaf of
// payloads are is found out, and keys, dictionary and its numbers are checked, but
// lengths and offsets are left as they are. A look-up wants one of each, and to
// unpack and sum up all of them takes longer than to hash the page.
//
// A page that was glanced at answers [Tree.Get]. Everything else loads the whole
// page, which then takes its place in the cache. Offsets are walked to from the
// beginning of their column, so only pages with a short one are glanced at: most
// payloads follow each other, with some gaps.

// glanceLimit is how many bytes the column of n offsets may take.
func glanceLimit(n int) int { return n/2 + 64 }

// glanceRefs is refs for a look-up in a page that has nothing else than n values of
// one kind, and tail bytes behind their columns. It returns false, and has read
// nothing, if the column of offsets is long.
func (d *decoder) glanceRefs(p *page, c *refColumn, n, dict, tail int) bool {
	at, index := d.pos, len(d.s.index)
	c.own, c.ordered = dict == n && n > 1, true
	c.lengths = d.packedHead(n, MaxExtent)
	if c.own {
		d.ownEntries(n)
	} else {
		c.ordered = d.refEntries(n, dict)
		if dict > 1 && d.err == "" {
			d.indexedEntries(c, d.s.runs, dict)
		}
	}
	if d.err != "" {
		return true
	}
	size := len(d.b) - d.pos - tail
	if size > glanceLimit(n) {
		*c, d.pos, d.s.index = refColumn{native: c.native, dict: c.dict}, at, d.s.index[:index]
		return false
	}
	c.offsets.pos = d.skip(max(size, 0)) // with none the page ends too early, which the tail tells
	p.glanced = true
	return true
}

// get sets v, which is zero, to value i of a leaf. Only what a glance left
// unchecked is an error.
func (p *page) get(i int, v *Value) error {
	if !p.glanced {
		p.value(i, v)
		return nil
	}
	c, end := &p.virtual, len(p.raw)
	if p.kind == KindNative {
		c, end = &p.native, int(p.native.sums)
	}
	length := c.lengths.get(p.raw, i)
	offset, wrong := p.walkOffset(c, end, i)
	if wrong == "" && (length > MaxExtent || offset > MaxExtent) {
		wrong = "length or offset out of bounds"
	}
	if wrong != "" {
		return corrupt(p.name(), "value %d: %s", i, wrong)
	}
	v.Kind, v.Offset, v.Length = p.kind, offset, length
	if p.kind == KindNative {
		p.payloadAt(i, v)
	} else {
		v.Source = p.sourceAt(c.entry(p.index, i))
	}
	return nil
}

// walkOffset returns the offset of value i, or what is wrong with the column of
// offsets, which ends where it says.
func (p *page) walkOffset(c *refColumn, end, i int) (at uint64, wrong string) {
	first := i // of the values up to i that have the same entry
	for !p.beginsRun(c, first) {
		first--
	}
	d, r := decoder{b: p.raw[:end], pos: int(c.offsets.pos)}, runReader{}
	for j := 0; j <= i; {
		off, times := d.runs(&r, p.len()-j)
		if d.err != "" {
			return 0, d.err
		}
		stop := min(j+times, i+1)
		if off == 0 || c.native { // earlier runs do not count
			j = max(j, min(stop, first))
		}
		for ; j < stop; j++ {
			switch {
			case j > first:
				at += c.lengths.get(p.raw, j-1)
				if c.native {
					at = alignRef(at, c.lengths.get(p.raw, j))
				}
				at += uint64(off)
			case p.beginsRun(c, j):
				at += uint64(off)
			}
		}
	}
	return at, ""
}

// beginsRun reports whether a value has another entry of the dictionary than the
// one before.
func (p *page) beginsRun(c *refColumn, i int) bool {
	return i == 0 || c.own || c.entry(p.index, i) != c.entry(p.index, i-1)
}

// is compares a page with what the page above says of it. How many bytes are
// below is not known of a page that was glanced at.
func (p *page) is(r *Root) error {
	self := p.self
	if p.glanced {
		self.Bytes = r.Bytes
	}
	if self != *r {
		return corrupt(r.Name, "it is %+v, but the page above says %+v", self, *r)
	}
	return nil
}
