package tree

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"

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

// refState is the state from which the next offset is predicted.
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
	}
	return alignRef(s.end, length)
}

// alignRef is where a native payload of a length is expected behind another one.
func alignRef(end, length uint64) uint64 {
	if length >= refLarge {
		return (end + refAlignLarge - 1) &^ (refAlignLarge - 1)
	}
	return (end + refAlign - 1) &^ (refAlign - 1)
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
	e.lengths = append(e.lengths, length)
	e.place(entry, offset, length)
}

// place is add for a value whose length is there already.
func (e *refEncoder) place(entry int, offset, length uint64) {
	e.n++
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

// refColumn gives access to the decoded columns. Offsets and dictionary entries
// are packed anew in page.index, for random access.
type refColumn struct {
	native  bool
	own     bool   // each value has the dictionary entry of its own number
	ordered bool   // the dictionary entries of consecutive values never descend
	lengths packed // in the page
	offsets packed // in the index
	entries packed // in the index, unless own: of each value, or where runs end
	runs    int32  // if not 0: run i of so many has entry i
	n       int32  // values
	dict    int32  // native: where the dictionary is in the page
	sums    int32  // native: where the hashes are in the page
}

// entry returns which dictionary entry value i uses.
func (c *refColumn) entry(index []byte, i int) int {
	switch {
	case c.own:
		return i
	case c.runs > 0:
		return c.run(index, i)
	}
	return int(c.entries.get(index, i))
}

// run returns the number of the run of value i. It first tries the position that
// runs of equal length would give, as most files have equally many chunks.
func (c *refColumn) run(index []byte, i int) int {
	end := func(run int) int { return int(binary.LittleEndian.Uint16(index[int(c.entries.pos)+2*run:])) }
	at := i * int(c.runs) / int(c.n)
	for range 4 {
		switch {
		case end(at) <= i:
			at++
		case at > 0 && end(at-1) > i:
			at--
		default:
			return at
		}
	}
	return sort.Search(int(c.runs), func(run int) bool { return end(run) > i })
}

// refs reads the columns after the dictionary of n > 0 values, and returns the
// sum of their lengths.
func (d *decoder) refs(c *refColumn, n, dict int) (total uint64) {
	c.own, c.ordered = dict == n && n > 1, true
	d.s.lengths = slices.Grow(d.s.lengths[:0], n)[:n]
	if c.own && !c.native { // lengths are seldom needed
		c.lengths, total = d.packedSum(n, MaxExtent, nil)
		d.ownEntries(n)
		if offset, ok := d.sameOffset(n); ok {
			c.offsets = packed{base: offset}
			return total
		}
		c.lengths.values(d.s.lengths, d.b)
	} else {
		c.lengths, total = d.packedSum(n, MaxExtent, d.s.lengths)
		if c.own {
			d.ownEntries(n)
		} else {
			c.ordered = d.refEntries(n, dict)
		}
	}
	if d.err != "" {
		return 0
	}
	if c.own {
		d.s.runs = d.s.runs[:0]
		for i := range n {
			d.s.runs = append(d.s.runs, refRun{i, i + 1})
		}
	}
	c.offsets = d.offsets(c.native, d.s.runs)
	if !c.own && dict > 1 && d.err == "" {
		d.indexedEntries(c, d.s.runs, dict)
	}
	return total
}

// Tokens of the values 1 and 0 in a run-length column.
const stepOne, stepNone = 2 << 1, 0

// refRun is a run of values that use the same entry of the dictionary, up to a
// value.
type refRun struct{ entry, end int }

// offsets reads where the values begin whose lengths were read.
func (d *decoder) offsets(native bool, runs []refRun) packed {
	n := len(d.s.lengths)
	d.s.offsets = slices.Grow(d.s.offsets[:0], n)[:n]
	var (
		w     = offsetWalk{native: native, lengths: d.s.lengths, offsets: d.s.offsets, lo: MaxExtent}
		r     runReader
		off   int64
		times int // values that lie off
		i     int
	)
	for _, run := range runs {
		for first := true; i < run.end; first = false {
			if times == 0 {
				off, times = d.runs(&r, n-i)
			}
			end := i + 1
			ok := true
			if first {
				ok = w.first(i, uint64(off))
			} else {
				end = min(run.end, i+times)
				ok = w.more(i, end, uint64(off))
			}
			if !ok {
				d.fail("offset out of bounds")
			}
			if d.err != "" {
				return packed{}
			}
			times -= end - i
			i = end
		}
	}
	return d.indexed(d.s.offsets, w.lo, w.hi)
}

// offsetWalk computes the offsets of values from their distances to the expected
// offsets.
type offsetWalk struct {
	native           bool
	lengths, offsets []uint64
	lo, hi           uint64 // of the offsets that were set
	start, end       uint64 // of the run of one entry so far
}

// first sets the offset of value i, the first one of a run; false if it is
// impossible.
func (w *offsetWalk) first(i int, off uint64) bool {
	if w.native {
		w.start = 0
	}
	w.start += off
	w.offsets[i] = w.start
	w.end = w.start + w.lengths[i]
	w.lo, w.hi = min(w.lo, w.start), max(w.hi, w.start)
	return w.start <= MaxExtent // and not less than 0
}

// more goes on with the values from i up to end.
func (w *offsetWalk) more(i, end int, off uint64) bool {
	lengths := w.lengths[i:end]
	offsets := w.offsets[i:][:len(lengths)]
	at, lo, hi := w.end, w.lo, w.hi
	for j, length := range lengths {
		if w.native {
			at = alignRef(at, length)
		}
		at += off
		if at > MaxExtent {
			return false
		}
		offsets[j] = at
		lo, hi = min(lo, at), max(hi, at)
		at += length
	}
	w.end, w.lo, w.hi = at, lo, hi
	return true
}

// sameOffset reads the common offset of n values with a source each, as in files
// of one chunk. If the offsets differ it reads nothing.
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

// ownEntries reads the entries of n values with a dictionary of n entries: value
// i uses entry i.
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

// refEntries reads the dictionary entries of n values, and reports whether they
// never decrease.
func (d *decoder) refEntries(n, dict int) (ordered bool) {
	runs := d.s.runs[:0]
	if dict == 1 {
		d.s.runs = append(runs, refRun{0, n})
		return true
	}
	var r runReader
	entry, seen := 0, 0
	ordered = true
	for i := 0; i < n && d.err == ""; {
		// Files of some chunks each: an entry more than before, and that again.
		for r.last == 0 && i > 0 && n-i > 2 {
			b := d.b[d.pos:]
			if len(b) < 3 || b[0] != stepOne || b[1] != stepNone || b[2]&0x81 != 1 {
				break
			}
			times := 2 + int(b[2]>>1) + 1
			if entry+1 > seen || entry+1 >= dict || times > n-i {
				break
			}
			entry++
			seen = max(seen, entry+1)
			i += times
			runs = append(runs, refRun{entry, i})
			d.pos += 3
			r.repeat = true
		}
		if i == n {
			break
		}
		step, times := d.runs(&r, n-i)
		if step == 0 {
			if i == 0 {
				runs, seen = append(runs, refRun{}), 1
			}
			i += times
			runs[len(runs)-1].end = i
			continue
		}
		ordered = ordered && step >= 0
		step = min(max(step, -maxPageItems), maxPageItems)
		for end := i + times; i < end; {
			entry += int(step)
			if entry < 0 || entry > seen || entry >= dict {
				d.fail("dictionary entry out of bounds")
				return false
			}
			seen = max(seen, entry+1)
			i++
			runs = append(runs, refRun{entry, i})
		}
	}
	if seen != dict {
		d.fail("dictionary has unused entries")
	}
	d.s.runs = runs
	return ordered
}

// indexedEntries writes the dictionary entries of the values into the index of
// the page: the ends of the runs if each run uses the next entry, otherwise the
// entry of each value, in one or two bytes.
func (d *decoder) indexedEntries(c *refColumn, runs []refRun, dict int) {
	n := runs[len(runs)-1].end
	c.n = int32(n)
	c.entries = packed{width: 16, pos: int32(len(d.s.index))}
	if c.ordered {
		c.runs = int32(len(runs))
		for _, run := range runs {
			d.s.index = binary.LittleEndian.AppendUint16(d.s.index, uint16(run.end))
		}
		return
	}
	if dict <= 1<<8 {
		c.entries.width = 8
	}
	i := 0
	for _, run := range runs {
		for ; i < run.end; i++ {
			if dict <= 1<<8 {
				d.s.index = append(d.s.index, byte(run.entry))
			} else {
				d.s.index = binary.LittleEndian.AppendUint16(d.s.index, uint16(run.entry))
			}
		}
	}
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
