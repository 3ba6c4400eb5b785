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

// refEvery is how many values lie between two marks.
const refEvery = 32

// refReader reads the columns in order.
type refReader struct {
	state   refState
	entries runReader
	offsets runReader
}

// refColumn is what the decoder keeps of the columns: places to enter them.
type refColumn struct {
	native  bool
	dict    int // entries of the dictionary
	lengths packed
	marks   []refReader // before value 0, refEvery, 2·refEvery, …
	sums    []byte      // native: the hashes
	packs   []byte      // native: the dictionary
	sources sourceList  // virtual: the dictionary
}

// next reads value i, which follows the one read before.
func (c *refColumn) next(r *refReader, page []byte, i int) (entry int, offset, length uint64) {
	entry = r.state.entry
	if c.dict > 1 {
		entry += int(r.entries.next(page))
	}
	length = c.lengths.get(i)
	offset = r.state.expect(c.native, entry, length) + uint64(r.offsets.next(page))
	r.state.move(entry, offset, length)
	return entry, offset, length
}

// enter returns a reader that stands before value i.
func (c *refColumn) enter(page []byte, i int) refReader {
	if len(c.marks) == 0 {
		return refReader{}
	}
	m := i / refEvery
	if m == len(c.marks) { // past the last value
		return refReader{}
	}
	r := c.marks[m]
	for j := m * refEvery; j < i; j++ {
		c.next(&r, page, j)
	}
	return r
}

// set makes v value i, with what next returned.
func (c *refColumn) set(v *Value, i, entry int, offset, length uint64) {
	v.Offset, v.Length = offset, length
	if c.native {
		v.Kind = KindNative
		v.Sum = digest.Sum(c.sums[i*digest.Size:])
		v.Pack = PackID(c.packs[entry*len(PackID{}):])
		return
	}
	v.Kind = KindVirtual
	v.Source = c.sources.get(entry)
}

// refs reads the columns after the dictionary of n > 0 values.
func (d *decoder) refs(c *refColumn, n int) {
	c.lengths = d.packed(n, MaxExtent)
	var entries []int16
	c.marks = make([]refReader, 0, (n+refEvery-1)/refEvery)
	if c.dict > 1 {
		entries = d.refEntries(c, n)
	}
	var r refReader
	r.offsets.pos = int32(d.pos)
	for i := range n {
		if i%refEvery == 0 {
			m := i / refEvery
			if m == len(c.marks) {
				c.marks = append(c.marks, refReader{})
			}
			c.marks[m].state, c.marks[m].offsets = r.state, r.offsets
		}
		entry := 0
		if entries != nil {
			entry = int(entries[i])
		}
		length := c.lengths.get(i)
		offset := int64(r.state.expect(c.native, entry, length)) + d.run(&r.offsets, n-i)
		if offset < 0 || offset > MaxExtent {
			d.fail("offset out of bounds")
		}
		if d.err != "" {
			return
		}
		r.state.move(entry, uint64(offset), length)
	}
}

// refEntries reads which entries of the dictionary n values use, and notes
// where the marks are.
func (d *decoder) refEntries(c *refColumn, n int) []int16 {
	out := make([]int16, n)
	r := runReader{pos: int32(d.pos)}
	entry, seen := 0, 0
	for i := range n {
		if i%refEvery == 0 {
			c.marks = append(c.marks, refReader{entries: r})
		}
		step := d.run(&r, n-i)
		if step < -maxPageItems || step > maxPageItems {
			d.fail("dictionary entry out of bounds")
			return nil
		}
		entry += int(step)
		if entry < 0 || entry > seen || entry >= c.dict {
			d.fail("dictionary entry out of bounds")
			return nil
		}
		seen = max(seen, entry+1)
		out[i] = int16(entry)
	}
	if seen != c.dict {
		d.fail("dictionary has unused entries")
	}
	return out
}
