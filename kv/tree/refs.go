package tree

import (
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
func (s *refState) expect(native bool, entry int, length uint64) uint64 {
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

// move goes past a value.
func (s *refState) move(entry int, offset, length uint64) {
	if !s.any || entry != s.entry {
		s.start = offset
	}
	s.entry, s.end, s.any = entry, offset+length, true
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
	e.state.move(entry, offset, length)
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
	lengths packed // in the page
	offsets packed // in the index
	entries packed // in the index
	dict    int32  // native: where the dictionary is in the page
	sums    int32  // native: where the hashes are in the page
}

// refs reads the columns after the dictionary of n > 0 values.
func (d *decoder) refs(c *refColumn, n, dict int) {
	c.lengths = d.packed(n, MaxExtent)
	entries, offsets := d.s.entries[:0], d.s.offsets[:0]
	if dict > 1 {
		entries = d.refEntries(entries, n, dict)
	}
	var (
		s refState
		r runReader
	)
	entry := 0
	for i := 0; i < n && d.err == ""; i++ {
		if dict > 1 {
			entry = int(entries[i])
		}
		length := c.lengths.get(d.b, i)
		offset := int64(s.expect(c.native, entry, length)) + d.run(&r, n-i)
		if offset < 0 || offset > MaxExtent {
			d.fail("offset out of bounds")
		}
		s.move(entry, uint64(offset), length)
		offsets = append(offsets, uint64(offset))
	}
	if d.err == "" {
		c.offsets = d.indexed(offsets)
		if dict > 1 {
			c.entries = d.indexed(entries)
		}
	}
	d.s.entries, d.s.offsets = entries[:0], offsets[:0]
}

// refEntries reads which entries of the dictionary n values use.
func (d *decoder) refEntries(out []uint64, n, dict int) []uint64 {
	var r runReader
	entry, seen := int64(0), int64(0)
	for i := range n {
		step := d.run(&r, n-i)
		if step < -maxPageItems || step > maxPageItems {
			step = maxPageItems
		}
		entry += step
		if entry < 0 || entry > seen || entry >= int64(dict) {
			d.fail("dictionary entry out of bounds")
			return out
		}
		seen = max(seen, entry+1)
		out = append(out, uint64(entry))
	}
	if seen != int64(dict) {
		d.fail("dictionary has unused entries")
	}
	return out
}

// indexed packs values into the index of the page.
func (d *decoder) indexed(vals []uint64) packed {
	lo, width := bounds(vals)
	p := packed{base: lo, width: width, pos: int32(len(d.s.index))}
	d.s.index = appendBits(d.s.index, vals, lo, width)
	return p
}

// nativeAt sets v to native value i.
func (p *page) nativeAt(i int, v *Value) {
	c := &p.native
	v.Kind = KindNative
	v.Offset, v.Length = c.offsets.get(p.index, i), c.lengths.get(p.raw, i)
	v.Sum = digest.Sum(p.raw[int(c.sums)+i*digest.Size:])
	v.Pack = PackID(p.raw[int(c.dict)+int(c.entries.get(p.index, i))*len(PackID{}):])
}

// virtualAt sets v to virtual value i.
func (p *page) virtualAt(i int, v *Value) {
	c := &p.virtual
	v.Kind = KindVirtual
	v.Offset, v.Length = c.offsets.get(p.index, i), c.lengths.get(p.raw, i)
	v.Source = p.sources.get(int(c.entries.get(p.index, i)))
}
