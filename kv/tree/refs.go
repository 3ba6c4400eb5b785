package tree

import (
	"math/bits"
	"slices"

	"github.com/zarrdb/zarrdb/kv/digest"
)

// Native and virtual values of a page are columns of their own:
//
//	entries of the dictionary (uvarint) · dictionary
//	lengths      packed
//	which entry  run-length: distance to the entry before; left out if there is
//	             only one. New entries are used in the order of the dictionary
//	offsets      run-length: distance from the expected offset
//	hashes       20 bytes each (native only)
//
// A value that uses the same dictionary entry as the one before is expected at
// its end, which for native payloads is rounded up to 8 bytes, and to 4 KiB if
// the payload has 64 KiB or more. Otherwise it is expected at 0 (native), or
// where the values of the entry before began (virtual): files of a series are
// laid out alike.
const (
	refAlign      = 8
	refAlignLarge = 4 << 10
	refLarge      = 64 << 10
)

// refState is what the next offset depends on.
type refState struct {
	entry int    // of the dictionary
	start uint64 // offset of the first value in this run of one entry
	end   uint64 // of the value before
	any   bool
}

// expect returns where a value of the entry with this length is expected.
func (s refState) expect(native bool, entry int, length uint64) uint64 {
	switch {
	case !s.any:
		return 0
	case entry != s.entry:
		if native {
			return 0
		}
		return s.start
	case !native:
		return s.end
	case length >= refLarge:
		return (s.end + refAlignLarge - 1) &^ (refAlignLarge - 1)
	}
	return (s.end + refAlign - 1) &^ (refAlign - 1)
}

// after returns the state behind a value.
func (s refState) after(entry int, offset, length uint64) refState {
	if !s.any || entry != s.entry {
		s.start = offset
	}
	return refState{entry: entry, start: s.start, end: offset + length, any: true}
}

type refEncoder struct {
	native  bool
	n       int
	state   refState
	lengths []uint64
	entries runEncoder
	offsets runEncoder
}

func (e *refEncoder) reset(native bool) {
	e.native, e.n, e.state, e.lengths = native, 0, refState{}, e.lengths[:0]
	e.entries.reset()
	e.offsets.reset()
}

func (e *refEncoder) add(entry int, offset, length uint64) {
	e.n++
	e.lengths = append(e.lengths, length)
	e.entries.add(int64(entry - e.state.entry))
	e.offsets.add(int64(offset - e.state.expect(e.native, entry, length)))
	e.state = e.state.after(entry, offset, length)
}

// appendTo appends the columns after the dictionary, which has dict entries.
func (e *refEncoder) appendTo(dst []byte, dict int) []byte {
	dst = appendPacked(dst, e.lengths)
	if dict > 1 {
		e.entries.flush()
		dst = append(dst, e.entries.buf...)
	}
	e.offsets.flush()
	return append(dst, e.offsets.buf...)
}

// refColumn is what the decoder keeps of the columns. Offsets and dictionary
// entries are packed anew in page.index, where each can be read by itself.
type refColumn struct {
	native  bool
	own     bool   // each value has the dictionary entry of its own number
	ordered bool   // no value has an entry before that of the value before
	lengths packed // in the page
	offsets packed // in the index
	entries packed // in the index, unless own
	dict    int32  // native: where the dictionary is in the page
	sums    int32  // native: where the hashes are in the page
}

// entry returns which dictionary entry value i uses.
func (c *refColumn) entry(index []byte, i int) int {
	if c.own {
		return i
	}
	return int(c.entries.get(index, i))
}

// refs reads the columns after the dictionary of n > 0 values, and returns the
// sum of their lengths.
func (d *decoder) refs(c *refColumn, n, dict int) (total uint64) {
	c.lengths, total = d.packedSum(n, MaxExtent)
	c.own, c.ordered = dict == n && n > 1, true
	var entries []uint64
	switch {
	case c.own:
		d.ownEntries(n)
	case dict > 1:
		d.s.entries = slices.Grow(d.s.entries[:0], n)[:n]
		entries = d.s.entries
		c.ordered = d.refEntries(entries, dict)
	}
	if d.err == "" {
		c.offsets = d.offsets(c, n, entries)
	}
	if len(entries) > 0 && d.err == "" {
		c.entries = d.indexed(entries, 0, uint64(dict-1)) // all are used
	}
	return total
}

// offsets reads where n values begin. The entries are nil if own says them, or
// if there is only one.
func (d *decoder) offsets(c *refColumn, n int, entries []uint64) packed {
	if c.own && !c.native {
		if offset, ok := d.sameOffset(n); ok {
			return packed{base: offset}
		}
	}
	d.s.lengths = c.lengths.values(d.s.lengths, d.b, n)
	d.s.offsets = slices.Grow(d.s.offsets[:0], n)[:n]
	var (
		s       refState
		r       runReader
		entry   int
		out     = d.s.offsets
		lengths = d.s.lengths[:len(out)]
		lo, hi  = uint64(MaxExtent), uint64(0)
	)
	for i := 0; i < n && d.err == ""; {
		off, times := d.runs(&r, n-i)
		for end := i + times; i < end; i++ {
			switch {
			case c.own:
				entry = i
			case entries != nil:
				entry = int(entries[i])
			}
			offset := s.expect(c.native, entry, lengths[i]) + uint64(off)
			if offset > MaxExtent { // or less than 0
				d.fail("offset out of bounds")
				return packed{}
			}
			s = s.after(entry, offset, lengths[i])
			out[i] = offset
			lo, hi = min(lo, offset), max(hi, offset)
		}
	}
	if d.err != "" {
		return packed{}
	}
	return d.indexed(out, lo, hi)
}

// sameOffset reads where n values of as many sources begin if all begin at the
// same place, as the only chunks of files do. Otherwise it reads nothing.
func (d *decoder) sameOffset(n int) (offset uint64, ok bool) {
	var r runReader
	start := d.pos
	off, times := d.runs(&r, n)
	ok = off >= 0 && off <= MaxExtent && (times == 1 || off == 0)
	for left := n - times; ok && left > 0; {
		next, times := d.runs(&r, left)
		ok = next == 0
		left -= times
	}
	if d.err == "" && !ok {
		d.pos = start
	}
	return uint64(off), ok
}

// ownEntries reads which entries of the dictionary n values use if there are as
// many: the first value the first, and each the next one.
func (d *decoder) ownEntries(n int) {
	var r runReader
	for i := 0; i < n && d.err == ""; {
		step, times := d.runs(&r, n-i)
		if i == 0 && (step != 0 || times != 1) || i > 0 && step != 1 {
			d.fail("dictionary entry out of bounds")
		}
		i += times
	}
}

// refEntries reads which entries of the dictionary values use, and returns
// whether they never go back.
func (d *decoder) refEntries(out []uint64, dict int) (ordered bool) {
	var r runReader
	entry, seen := int64(0), int64(0)
	ordered = true
	for i := 0; i < len(out); {
		step, times := d.runs(&r, len(out)-i)
		ordered = ordered && step >= 0
		step = min(max(step, -maxPageItems), maxPageItems)
		for end := i + times; i < end; i++ {
			entry += step
			if entry < 0 || entry > seen || entry >= int64(dict) {
				d.fail("dictionary entry out of bounds")
			}
			if d.err != "" {
				return false
			}
			seen = max(seen, entry+1)
			out[i] = uint64(entry)
		}
	}
	if seen != int64(dict) {
		d.fail("dictionary has unused entries")
	}
	return ordered
}

// indexed packs values from lo to hi into the index of the page.
func (d *decoder) indexed(vals []uint64, lo, hi uint64) packed {
	p := packed{base: lo, width: uint8(bits.Len64(hi - lo)), pos: int32(len(d.s.index))}
	d.s.index = appendBits(d.s.index, vals, p.base, p.width)
	return p
}

// nativeAt sets v to native value i.
func (p *page) nativeAt(i int, v *Value) {
	c := &p.native
	v.Kind = KindNative
	v.Offset, v.Length = c.offsets.get(p.index, i), c.lengths.get(p.raw, i)
	v.Sum = digest.Sum(p.raw[int(c.sums)+i*digest.Size:])
	v.Pack = PackID(p.raw[int(c.dict)+c.entry(p.index, i)*len(PackID{}):])
}

// virtualAt sets v to virtual value i.
func (p *page) virtualAt(i int, v *Value) {
	c := &p.virtual
	v.Kind = KindVirtual
	v.Offset, v.Length = c.offsets.get(p.index, i), c.lengths.get(p.raw, i)
	v.Source = p.sourceAt(c.entry(p.index, i))
}
