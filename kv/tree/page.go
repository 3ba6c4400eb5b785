package tree

import (
	"bytes"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// The bytes of a page, format 1. All integers are uvarints unless said
// otherwise; "packed" and "run-length" are described in column.go.
//
//	format (1 byte) · height (1 byte) · n, the number of items
//	keys                       see keys.go
//
// An interior page (height ≥ 1) has n ≥ 2 items, one per child page. A key is
// the last key of the child.
//
//	names                      20 bytes each
//	sizes, entries, bytes, flags of the children, each packed
//
// A leaf page (height 0) has n ≥ 1 items.
//
//	kinds                      run-length
//
// and then, for each kind that occurs, in this order, the values of that kind
// in key order:
//
//	inline    lengths (packed) · the bytes of all values
//	native    dictionary of packs, 16 bytes each, and columns: see refs.go
//	virtual   dictionary of sources: see source.go, and columns: see refs.go
//	child     names, 20 bytes each · heights, sizes, entries, bytes, flags of
//	          the roots, each packed; all zero for the empty map
//
// Every part has one encoding, so equal items make equal bytes.
const pageFormat = 1

const (
	// minPageSize is a leaf with one empty inline value under the empty key:
	// format, height, n, key length, kinds, and two bytes of lengths.
	minPageSize = 7
	// maxPageSize is more than any page has: at most maxPageItems values with
	// a source of MaxURL+MaxValidator bytes each would be less than this.
	maxPageSize = 1 << 27
)

// page is a parsed page. It is immutable but for the mark of its last use.
type page struct {
	self  Root          // name and summary, as the page above must have them
	used  atomic.Bool   // since the cache last looked
	ahead atomic.Uint64 // which pages below were asked for last; see Tree.readAhead
	kind  Kind          // of all values, or mixed

	index   []byte // made by the decoder: entry points into keys and columns
	raw     []byte // the stored bytes, behind index in memory
	keys    keyColumn
	child   rootColumn // of child maps, or of the pages below
	native  refColumn
	virtual refColumn
	sources sourceColumn // of virtual values
	inline  []int32      // where each inline value begins in raw, and the end of the last
	mixed   *mixedKinds  // if kind is mixed
}

const mixed Kind = numKinds

// mixedKinds are the kinds of the values of a page that has several.
type mixedKinds struct {
	kinds []Kind
	ords  []uint16 // how many values of its kind come before each
}

func (p *page) len() int     { return int(p.keys.n) }
func (p *page) name() Name   { return p.self.Name }
func (p *page) isLeaf() bool { return p.self.Height == 0 }

// rootColumn holds roots: of child maps in a leaf, of the pages below in an
// interior page, whose height is known.
type rootColumn struct {
	names                                 int32 // where they are in the page
	heights, sizes, entries, bytes, flags packed
}

func (c *rootColumn) name(raw []byte, i int) Name {
	return Name(raw[int(c.names)+i*digest.Size:])
}

func (c *rootColumn) get(raw []byte, i int) Root {
	return Root{
		Name:    c.name(raw, i),
		Height:  uint8(c.heights.get(raw, i)),
		Flags:   Flags(c.flags.get(raw, i)),
		Size:    uint32(c.sizes.get(raw, i)),
		Entries: c.entries.get(raw, i),
		Bytes:   c.bytes.get(raw, i),
	}
}

// childAt returns the page below, or the child map that is number i of them.
func (p *page) childAt(i int) Root { return p.child.get(p.raw, i) }

// ordinal returns the kind of value i and which of its kind it is.
func (p *page) ordinal(i int) (Kind, int) {
	if p.kind != mixed {
		return p.kind, i
	}
	return p.mixed.kinds[i], int(p.mixed.ords[i])
}

// value sets v to value i of a leaf. Fields of other kinds are left alone.
func (p *page) value(i int, v *Value) {
	kind, o := p.ordinal(i)
	switch kind {
	case KindInline:
		v.Kind, v.Inline = KindInline, p.inlineAt(o)
	case KindNative:
		p.nativeAt(o, v)
	case KindVirtual:
		p.virtualAt(o, v)
	case KindChild:
		v.Kind, v.Child = KindChild, p.childAt(o)
	}
}

func (p *page) inlineAt(o int) []byte {
	return p.raw[p.inline[o]:p.inline[o+1]:p.inline[o+1]]
}

// decodePage parses and validates the bytes of a page, which it copies. The
// caller checks that name is the hash of raw.
func decodePage(name Name, raw []byte) (*page, error) {
	p := &page{}
	s := scratchPool.Get().(*scratch)
	defer scratchPool.Put(s)
	if err := p.decode(name, raw, s); err != nil {
		return nil, err
	}
	// A look-up reads a few lines of each, in random pages: side by side they
	// share entries of the processor's address cache.
	n := len(p.index)
	both := bytes.Join([][]byte{p.index, raw}, nil) // which does not clear what it fills
	p.index, p.raw = both[:n:n], both[n:len(both):len(both)]
	return p, nil
}

// decode sets p, which is zero, to the page with these bytes. It keeps raw, and
// p.index is memory of s.
func (p *page) decode(name Name, raw []byte, s *scratch) error {
	p.raw, p.self = raw, Root{Name: name, Size: uint32(min(len(raw), maxPageSize))}
	d := decoder{b: raw, s: s}
	if len(raw) > maxPageSize {
		d.fail("too large")
	}
	if f := d.byte(); d.err == "" && f != pageFormat {
		return corrupt(name, "format %d, known is %d", f, pageFormat)
	}
	p.self.Height = d.byte()
	if p.self.Height > maxHeight {
		d.fail("too high")
	}
	n := d.size(maxPageItems)
	if n == 0 || n == 1 && p.self.Height > 0 {
		d.fail("too few items")
	}
	d.keys(&p.keys, n)
	if d.err == "" {
		if p.self.Height > 0 {
			p.kind = KindChild
			d.edges(p)
		} else {
			d.values(p)
		}
	}
	if d.err == "" && d.pos != len(raw) {
		d.fail("bytes after the end")
	}
	if d.err != "" {
		return corrupt(name, "%s", d.err)
	}
	p.index = s.index
	return nil
}

// is compares a page with its record in the page above.
func (p *page) is(r *Root) error {
	if p.self != *r {
		return corrupt(r.Name, "it is %+v, but the page above says %+v", p.self, *r)
	}
	return nil
}

// memory is how many bytes the page takes.
func (p *page) memory() int64 {
	n := int(unsafe.Sizeof(*p)) + len(p.raw) + len(p.index) + 4*len(p.inline)
	if p.mixed != nil {
		n += 3 * p.len()
	}
	return int64(n)
}

// scratch is memory that a decoder needs only while it decodes a page.
type scratch struct {
	key               []byte
	marks             []keyMark
	arena             []byte
	lengths, offsets  []uint64
	runs              []refRun
	index             []byte
	url, validator    []byte
	sourceMarks, text []byte
	list              []sourcePlace
	table             []uint16
}

var scratchPool = sync.Pool{New: func() any { return new(scratch) }}

// edges reads the items of an interior page.
func (d *decoder) edges(p *page) {
	n := p.len()
	if int(p.keys.total)+n*weightEdge > maxPageWeight {
		d.fail("too many items")
		return
	}
	c := &p.child
	c.names = d.skip(n * digest.Size)
	c.heights.base = uint64(p.self.Height - 1)
	d.roots(c, n)
	if d.err != "" {
		return
	}
	for i := range n {
		r := p.childAt(i)
		if r.Empty() || !r.valid() {
			d.fail("impossible child page")
			return
		}
		p.self.Entries += r.Entries
		p.self.Bytes += r.Bytes
		p.self.Flags |= r.Flags
	}
}

func (d *decoder) roots(c *rootColumn, n int) {
	c.sizes = d.packed(n, maxPageSize)
	c.entries = d.packed(n, 1<<64-1)
	c.bytes = d.packed(n, 1<<64-1)
	c.flags = d.packed(n, uint64(allFlags))
}

// values reads the items of a leaf.
func (d *decoder) values(p *page) {
	count := d.kinds(p)
	if d.err != "" {
		return
	}
	p.self.Entries = uint64(p.len())
	weight := int(p.keys.total) + count[KindInline]*weightInline + count[KindNative]*weightNative +
		count[KindVirtual]*weightVirtual + count[KindChild]*weightChild
	if n := count[KindInline]; n > 0 {
		weight += d.inlines(p, n)
	}
	if weight > maxPageWeight {
		d.fail("too many items")
		return
	}
	if n := count[KindNative]; n > 0 {
		d.natives(p, n)
	}
	if n := count[KindVirtual]; n > 0 {
		d.virtuals(p, n)
	}
	if n := count[KindChild]; n > 0 {
		d.children(p, n)
	}
}

// kinds reads the kind of each value and returns how many there are of each.
func (d *decoder) kinds(p *page) (count [numKinds]int) {
	n := p.len()
	var r runReader
	for i := 0; i < n && d.err == ""; {
		v, k := d.runs(&r, n-i)
		if v < 0 || v >= numKinds {
			d.fail("unknown kind of value")
			return count
		}
		kind := Kind(v)
		if i == 0 {
			p.kind = kind
		}
		if kind != p.kind && p.kind != mixed {
			p.mixed = newMixedKinds(p.kind, i, n)
			p.kind = mixed
		}
		if p.kind == mixed {
			for j := range k {
				p.mixed.kinds[i+j] = kind
				p.mixed.ords[i+j] = uint16(count[kind] + j)
			}
		}
		count[kind] += k
		i += k
	}
	return count
}

// newMixedKinds has room for n values, of which the first so many have a kind.
func newMixedKinds(kind Kind, first, n int) *mixedKinds {
	m := &mixedKinds{kinds: make([]Kind, n), ords: make([]uint16, n)}
	for i := range first {
		m.kinds[i], m.ords[i] = kind, uint16(i)
	}
	return m
}

// inlines reads n inline values and returns the sum of their lengths.
func (d *decoder) inlines(p *page, n int) int {
	lengths := d.packed(n, maxInline)
	if d.err != "" {
		return 0
	}
	p.inline = make([]int32, 0, n+1)
	total := 0
	for i := range n {
		p.inline = append(p.inline, int32(d.pos+total))
		total += int(lengths.get(d.b, i))
	}
	p.inline = append(p.inline, int32(d.pos+total))
	d.bytes(total)
	p.self.Bytes += uint64(total)
	return total
}

func (d *decoder) natives(p *page, n int) {
	c := &p.native
	c.native = true
	dict := d.size(n)
	c.dict = d.skip(dict * len(PackID{}))
	if dict == 0 {
		d.fail("no packs")
	}
	if d.err == "" && !uniquePacks(d.b[c.dict:d.pos]) {
		d.fail("pack is listed twice")
	}
	if d.err == "" {
		p.self.Bytes += d.refs(c, n, dict)
	}
	c.sums = d.skip(n * digest.Size)
	p.self.Flags |= HasNative
}

func uniquePacks(packs []byte) bool {
	const size = len(PackID{})
	if n := len(packs) / size; n > 8 {
		seen := make(map[PackID]struct{}, n)
		for ; len(packs) > 0; packs = packs[size:] {
			seen[PackID(packs)] = struct{}{}
		}
		return len(seen) == n
	}
	for ; len(packs) > 0; packs = packs[size:] {
		for rest := packs[size:]; len(rest) > 0; rest = rest[size:] {
			if bytes.Equal(rest[:size], packs[:size]) {
				return false
			}
		}
	}
	return true
}

func (d *decoder) virtuals(p *page, n int) {
	dict := d.size(n)
	if dict == 0 {
		d.fail("no sources")
	}
	if d.err == "" {
		d.sources(p, dict)
	}
	if d.err == "" {
		p.self.Bytes += d.refs(&p.virtual, n, dict)
	}
	p.self.Flags |= HasVirtual
}

func (d *decoder) children(p *page, n int) {
	c := &p.child
	c.names = d.skip(n * digest.Size)
	c.heights = d.packed(n, maxHeight)
	d.roots(c, n)
	if d.err != "" {
		return
	}
	p.self.Flags |= HasChild
	for i := range n {
		r := p.childAt(i)
		if !r.valid() {
			d.fail("impossible child map")
			return
		}
		p.self.Flags |= r.Flags
		p.self.Bytes += r.Bytes
	}
}
