package zstd

import (
	"encoding/binary"

	"github.com/klauspost/compress/huff0"
)

// Decoder has the tables of one decoding call after another, about 150 KiB. The zero
// value is ready; it is not safe for concurrent use.
type Decoder struct {
	huffman  *huff0.Scratch
	trees    bool // huffman has the tree of an earlier block of the frame
	literals []byte
	replay   replay
}

// Decode appends the contents of the frame src (RFC 8878) to dst. It never writes beyond
// the capacity of dst, and is faster if that has 32 bytes more than the contents need.
//
// It reports false if src is not one undamaged frame of the common kind, or if dst has too
// little room: then dst is as it was, but bytes up to its capacity may be overwritten.
// The common kind has the size of its contents, which are not longer than its window, no
// dictionary and no checksum. Where Decode reports true, other decoders give the
// same bytes. Without assembly it is always false: the library is faster then.
func (d *Decoder) Decode(dst, src []byte) ([]byte, bool) {
	n, src, ok := readHeader(src)
	if !ok || !hasReplay && !d.replay.plain || n > uint64(cap(dst)-len(dst)) {
		return dst, false
	}
	d.trees = false
	d.replay.begin()
	start, end := len(dst), len(dst)+int(n)
	out := dst
	for last := false; !last; {
		if len(src) < blockHeader {
			return dst, false
		}
		h := uint32(src[0]) | uint32(src[1])<<8 | uint32(src[2])<<16
		src = src[blockHeader:]
		last = h&1 != 0
		size := int(h >> 3)
		room := min(blockBytes, end-len(out))
		switch h >> 1 & 3 {
		case kindRaw:
			if size > len(src) || size > room {
				return dst, false
			}
			out, src = append(out, src[:size]...), src[size:]
		case kindRepeated:
			if len(src) < 1 || size > room {
				return dst, false
			}
			block := out[len(out) : len(out)+size]
			for i := range block {
				block[i] = src[0]
			}
			out, src = out[:len(out)+size], src[1:]
		case kindCompressed:
			if size > len(src) || size > blockBytes {
				return dst, false
			}
			if out, ok = d.block(out, start, room, src[:size]); !ok {
				return dst, false
			}
			src = src[size:]
		default:
			return dst, false
		}
	}
	if len(out) != end || len(src) > 0 {
		return dst, false
	}
	return out, true
}

// slack is the room behind the contents in which Decode copies whole words.
const slack = 32

// maxWindow bounds the window of frames that this decoder takes: other decoders
// refuse larger windows.
const maxWindow = 1 << 31

// readHeader reads the header of a frame of the common kind: the size of the contents, and
// the rest of src.
func readHeader(src []byte) (n uint64, rest []byte, ok bool) {
	if len(src) < 6 || binary.LittleEndian.Uint32(src) != magic {
		return 0, nil, false
	}
	flags := src[4]
	single := flags&(1<<5) != 0
	if flags&0b1111 != 0 { // reserved, checksum, dictionary
		return 0, nil, false
	}
	src = src[5:]
	window := uint64(0)
	if !single {
		log := 10 + src[0]>>3
		window = 1<<log + uint64(src[0]&7)<<log>>3
		src = src[1:]
	}
	size := 1 << (flags >> 6)
	if size == 1 && !single || size > len(src) {
		return 0, nil, false
	}
	var b [8]byte
	copy(b[:], src[:size])
	n = binary.LittleEndian.Uint64(b[:])
	if size == 2 {
		n += 256
	}
	return n, src[size:], single || n <= window && window <= maxWindow
}

// block appends the contents of a compressed block, at most room bytes, to out, whose
// contents from start on belong to the frame.
func (d *Decoder) block(out []byte, start, room int, src []byte) ([]byte, bool) {
	literals, src, ok := d.readLiterals(src)
	if !ok || len(src) < 1 {
		return out, false
	}
	n := int(src[0])
	switch {
	case n < 128:
		src = src[1:]
	case n < 255 && len(src) >= 2:
		n, src = (n-128)<<8|int(src[1]), src[2:]
	case n == 255 && len(src) >= 3:
		n, src = 0x7f00+int(src[1])+int(src[2])<<8, src[3:]
	default:
		return out, false
	}
	if n == 0 {
		if len(src) > 0 || len(literals) > room {
			return out, false
		}
		return append(out, literals...), true
	}
	r := &d.replay
	if src, ok = r.readTables(src); !ok || !r.open(src) {
		return out, false
	}
	return r.run(out, start, room, literals, n)
}

// readLiterals reads the literals section of a block (section 3.1.1.3.1), and returns
// the bytes behind it. The literals have slack bytes of capacity more, and are valid
// until the next call.
func (d *Decoder) readLiterals(src []byte) (literals, rest []byte, ok bool) {
	var first [8]byte
	copy(first[:], src)
	h := binary.LittleEndian.Uint64(first[:])
	kind, form := h&3, h>>2&3
	if kind < kindCompressed {
		header, n := 1, h>>3&(1<<5-1)
		switch form {
		case 1:
			header, n = 2, h>>4&(1<<12-1)
		case 3:
			header, n = 3, h>>4&(1<<20-1)
		}
		size := int(n)
		if kind == kindRepeated {
			size = 1
		}
		if n > blockBytes || header+size > len(src) {
			return nil, nil, false
		}
		b := d.buffer(int(n))
		if kind == kindRaw {
			copy(b, src[header:])
		} else {
			for i := range b {
				b[i] = src[header]
			}
		}
		return b, src[header+size:], true
	}
	header, width := 3, 10
	switch form {
	case 2:
		header, width = 4, 14
	case 3:
		header, width = 5, 18
	}
	n, size := int(h>>4&(1<<width-1)), int(h>>(4+width)&(1<<width-1))
	if n > blockBytes || n == 0 || header+size > len(src) {
		return nil, nil, false
	}
	enc := src[header : header+size]
	var err error
	if kind == kindCompressed {
		if d.huffman, enc, err = huff0.ReadTable(enc, d.huffman); err != nil {
			return nil, nil, false
		}
		d.huffman.MaxDecodedSize = blockBytes
		d.trees = true
	}
	if !d.trees {
		return nil, nil, false
	}
	b := d.buffer(n)
	streams := d.huffman.Decoder().Decompress4X
	if form == 0 {
		streams = d.huffman.Decoder().Decompress1X
	}
	out, err := streams(b[:0:n], enc)
	if err != nil || len(out) != n {
		return nil, nil, false
	}
	return b, src[header+size:], true
}

// buffer returns memory for n literals.
func (d *Decoder) buffer(n int) []byte {
	if d.literals == nil {
		d.literals = make([]byte, blockBytes+slack)
	}
	return d.literals[:n]
}
