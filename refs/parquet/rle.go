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
