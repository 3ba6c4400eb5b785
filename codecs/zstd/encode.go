package zstd

import (
	"encoding/binary"
	"errors"

	"github.com/klauspost/compress/huff0"
)

const (
	magic = 0xfd2fb528
	// MaxBytes bounds the input of a frame, which is its window: every decoder
	// must accept windows up to 8 MiB.
	MaxBytes = 8 << 20

	blockBytes  = 128 << 10
	blockHeader = 3
)

// Kinds of blocks and of literals.
const (
	kindRaw = iota
	kindRepeated
	kindCompressed
)

// Encoder has the tables of one encoding call after another, one to two MiB. The
// zero value is ready; it is not safe for concurrent use.
type Encoder struct {
	find     finder
	seqs     []sequence
	literals []byte
	block    []byte
	huffman  huff0.Scratch

	codes               []code
	lits, offs, matches codes

	plain bool // no assembly
}

// Encode appends a frame (RFC 8878) that holds src to dst, and returns it;
// neither is kept. src has at most MaxBytes and does not overlap dst. The frame
// has the size of src, no checksum, and is at most 9 bytes plus 3 for each begun
// 128 KiB longer than src.
func (e *Encoder) Encode(dst, src []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, magic)
	const single = 1 << 5
	switch n := len(src); {
	case n < 256:
		dst = append(dst, single, byte(n))
	case n < 256+1<<16:
		dst = binary.LittleEndian.AppendUint16(append(dst, 1<<6|single), uint16(n-256))
	default:
		dst = binary.LittleEndian.AppendUint32(append(dst, 2<<6|single), uint32(n))
	}
	e.find.reset(len(src))
	for from := 0; ; from += blockBytes {
		to := min(from+blockBytes, len(src))
		e.encodeBlock(src[:to], from, to == len(src))
		dst = append(dst, e.block...)
		if to == len(src) {
			return dst
		}
	}
}

func putBlockHeader(b []byte, kind, n int, last bool) {
	h := uint32(kind<<1 | n<<3)
	if last {
		h |= 1
	}
	b[0], b[1], b[2] = byte(h), byte(h>>8), byte(h>>16)
}

// encodeBlock makes the block of src that begins at from: e.block.
func (e *Encoder) encodeBlock(src []byte, from int, last bool) {
	raw := src[from:]
	n := len(raw)
	b := append(e.block[:0], make([]byte, blockHeader)...)
	if n > 2 && raw[0] == raw[n-1] && repeated(raw) {
		putBlockHeader(b, kindRepeated, n, last)
		e.block = append(b, raw[0])
		return
	}
	before := e.find.recent
	e.search(src, from)
	b = e.appendSequences(e.appendLiterals(b))
	kind, size := kindCompressed, len(b)-blockHeader
	if size >= n {
		// The reader will not hear of the distances in it.
		e.find.recent = before
		b = append(b[:blockHeader], raw...)
		kind, size = kindRaw, n
	}
	putBlockHeader(b, kind, size, last)
	e.block = b
}

// repeated reports whether all bytes are the first.
func repeated(b []byte) bool {
	return string(b[1:]) == string(b[:len(b)-1])
}

// appendLiterals writes the literals section of a block (section 3.1.1.3.1).
func (e *Encoder) appendLiterals(dst []byte) []byte {
	lits := e.literals
	n := len(lits)
	// Input this short does not get smaller with the predefined table.
	if n < 32 {
		return append(appendSimple(dst, kindRaw, n), lits...)
	}
	e.huffman.Reuse = huff0.ReusePolicyNone
	e.huffman.WantLogLess = 6
	streams := huff0.Compress4X
	if n < 256 {
		streams = huff0.Compress1X
	}
	out, _, err := streams(lits, &e.huffman)
	switch {
	case errors.Is(err, huff0.ErrUseRLE):
		return append(appendSimple(dst, kindRepeated, n), lits[0])
	case err != nil || len(out) >= n:
		return append(appendSimple(dst, kindRaw, n), lits...)
	}
	var h [8]byte
	switch m := len(out); {
	case n < 256:
		binary.LittleEndian.PutUint32(h[:], uint32(kindCompressed|n<<4|m<<14))
		dst = append(dst, h[:3]...)
	case n < 1<<10:
		binary.LittleEndian.PutUint32(h[:], uint32(kindCompressed|1<<2|n<<4|m<<14))
		dst = append(dst, h[:3]...)
	case n < 1<<14:
		binary.LittleEndian.PutUint32(h[:], uint32(kindCompressed|2<<2|n<<4|m<<18))
		dst = append(dst, h[:4]...)
	default:
		binary.LittleEndian.PutUint64(h[:], uint64(kindCompressed|3<<2)|uint64(n)<<4|uint64(m)<<22)
		dst = append(dst, h[:5]...)
	}
	return append(dst, out...)
}

// appendSimple writes the header of literals that are not compressed.
func appendSimple(dst []byte, kind, n int) []byte {
	switch {
	case n < 1<<5:
		return append(dst, byte(kind|n<<3))
	case n < 1<<12:
		return binary.LittleEndian.AppendUint16(dst, uint16(kind|1<<2|n<<4))
	default:
		h := uint32(kind | 3<<2 | n<<4)
		return append(dst, byte(h), byte(h>>8), byte(h>>16))
	}
}
