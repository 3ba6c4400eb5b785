package parquet

import (
	"encoding/binary"
	"math/bits"
)

// hybrid decodes numbers of a fixed width in bits, stored as runs of one value
// or as packed bits.
type hybrid struct {
	b     []byte
	width uint
	run   int64 // values left in the current run
	// The current run is bits, of which bit is the next, or value repeated.
	packed []byte
	bit    uint64
	value  uint32
}

func newHybrid(b []byte, width uint) (hybrid, error) {
	if width > 32 {
		return hybrid{}, corrupt("numbers of %d bits", width)
	}
	return hybrid{b: b, width: width}, nil
}

// next moves to the next run.
func (h *hybrid) next() error {
	for h.run == 0 {
		head, n := binary.Uvarint(h.b)
		if n <= 0 {
			return corrupt("run lengths end early")
		}
		h.b = h.b[n:]
		if head&1 == 1 {
			groups := min(head>>1, uint64(1)<<40)
			size := groups * uint64(h.width)
			h.run = int64(groups * 8)
			if size > uint64(len(h.b)) { // some writers cut off unused bits
				size = uint64(len(h.b))
				h.run = int64(size * 8 / uint64(h.width))
			}
			h.packed, h.b, h.bit = h.b[:size], h.b[size:], 0
			continue
		}
		size := int(h.width+7) / 8
		if size > len(h.b) {
			return corrupt("run lengths end early")
		}
		h.packed, h.value = nil, 0
		for i := range size {
			h.value |= uint32(h.b[i]) << (8 * i)
		}
		if bits.Len32(h.value) > int(h.width) {
			return corrupt("number %d of %d bits", h.value, h.width)
		}
		h.b, h.run = h.b[size:], int64(min(head>>1, 1<<40))
	}
	return nil
}

// fill decodes len(dst) numbers.
func (h *hybrid) fill(dst []uint32) error {
	for len(dst) > 0 {
		if err := h.next(); err != nil {
			return err
		}
		n := int(min(int64(len(dst)), h.run))
		if h.packed == nil {
			for i := range dst[:n] {
				dst[i] = h.value
			}
		} else {
			h.unpack(dst[:n])
		}
		dst = dst[n:]
		h.run -= int64(n)
	}
	return nil
}

func (h *hybrid) unpack(dst []uint32) {
	mask := uint64(1)<<h.width - 1
	b, bit, width := h.packed, h.bit, uint64(h.width)
	for i := range dst {
		at := bit >> 3
		var v uint64
		if at+8 <= uint64(len(b)) {
			v = binary.LittleEndian.Uint64(b[at:])
		} else {
			for k, c := range b[at:] {
				v |= uint64(c) << (8 * k)
			}
		}
		dst[i] = uint32(v >> (bit & 7) & mask)
		bit += width
	}
	h.bit = bit
}

// span returns a number of one bit and how often it repeats, at most limit
// times.
func (h *hybrid) span(limit int) (value uint32, n int, err error) {
	if err := h.next(); err != nil {
		return 0, 0, err
	}
	limit = int(min(int64(limit), h.run))
	if h.packed == nil {
		h.run -= int64(limit)
		return h.value, limit, nil
	}
	at := func(bit uint64) uint32 { return uint32(h.packed[bit>>3]>>(bit&7)) & 1 }
	value = at(h.bit)
	for n = 1; n < limit && at(h.bit+uint64(n)) == value; n++ {
	}
	h.bit += uint64(n)
	h.run -= int64(n)
	return value, n, nil
}

// delta decodes DELTA_BINARY_PACKED: a first value, then blocks of differences
// in miniblocks of a common width each.
type delta struct {
	b      []byte
	left   int64 // values
	last   int64
	begun  bool // the first value was returned
	minis  int  // miniblocks in a block
	perMin int  // values in a miniblock

	widths []byte // of the miniblocks left in the block
	min    int64
	inMini int // values left in the miniblock
	width  uint
	packed []byte
	bit    uint64
}

func newDelta(b []byte) (delta, error) {
	d := delta{b: b}
	block, err := d.uvarint()
	minis, err2 := d.uvarint()
	total, err3 := d.uvarint()
	first, err4 := d.uvarint()
	for _, err := range []error{err, err2, err3, err4} {
		if err != nil {
			return delta{}, err
		}
	}
	if total == 0 {
		// arrow writes no block sizes if all values of a page are null.
		return d, nil
	}
	if minis == 0 || minis > 1<<10 || block > 1<<20 || block%minis != 0 || block/minis%32 != 0 || block == 0 || total > 1<<31 {
		return delta{}, corrupt("differences in blocks of %d values, %d parts", block, minis)
	}
	d.minis, d.perMin, d.left = int(minis), int(block/minis), int64(total)
	d.last = int64(first>>1) ^ -int64(first&1)
	return d, nil
}

func (d *delta) uvarint() (uint64, error) {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		return 0, corrupt("differences end early")
	}
	d.b = d.b[n:]
	return v, nil
}

// next decodes one value.
func (d *delta) next() (int64, error) {
	if d.left == 0 {
		return 0, corrupt("differences end early")
	}
	d.left--
	if !d.begun {
		d.begun = true
		return d.last, nil
	}
	if d.inMini == 0 {
		if err := d.mini(); err != nil {
			return 0, err
		}
	}
	d.inMini--
	at := d.bit >> 3
	var v uint64
	shift := d.bit & 7
	if at+9 <= uint64(len(d.packed)) {
		v = binary.LittleEndian.Uint64(d.packed[at:])>>shift | uint64(d.packed[at+8])<<(64-shift)
	} else {
		for k, c := range d.packed[at:] {
			if k < 8 {
				v |= uint64(c) << (8 * k) >> shift
			} else {
				v |= uint64(c) << (64 - shift)
			}
		}
	}
	if d.width < 64 {
		v &= 1<<d.width - 1
	}
	d.bit += uint64(d.width)
	d.last += d.min + int64(v) // wraps, as the format has it
	return d.last, nil
}

// mini moves to the next miniblock.
func (d *delta) mini() error {
	if len(d.widths) == 0 {
		m, err := d.uvarint()
		if err != nil {
			return err
		}
		if d.min = int64(m>>1) ^ -int64(m&1); len(d.b) < d.minis {
			return corrupt("differences end early")
		}
		d.widths, d.b = d.b[:d.minis], d.b[d.minis:]
	}
	d.width = uint(d.widths[0])
	d.widths = d.widths[1:]
	if d.width > 64 {
		return corrupt("differences of %d bits", d.width)
	}
	size := d.perMin / 8 * int(d.width)
	if size > len(d.b) {
		return corrupt("differences end early")
	}
	d.packed, d.b, d.bit, d.inMini = d.b[:size], d.b[size:], 0, d.perMin
	return nil
}

// rest returns the bytes behind all values, without decoding them.
func (d delta) rest() ([]byte, error) {
	for left := d.left - 1; left > 0; left -= int64(d.perMin) {
		if err := d.mini(); err != nil {
			return nil, err
		}
	}
	// Miniblocks that hold no value have a width and no bytes.
	return d.b, nil
}
