package lzma

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/crc64"

	"github.com/ulikunitz/xz/lzma"
)

// Checksums of a block, by their number in the stream flags.
const (
	checkNone   = 0
	checkCRC32  = 1
	CheckCRC64  = 4
	checkSHA256 = 10
)

const (
	filterDelta = 0x03
	filterLZMA2 = 0x21

	streamHeader = 12 // magic, flags, CRC-32 of the flags
	streamFooter = 12 // CRC-32, size of the index, flags, magic
)

var (
	headerMagic = []byte{0xfd, '7', 'z', 'X', 'Z', 0}
	footerMagic = []byte{'Y', 'Z'}
	crc64Table  = crc64.MakeTable(crc64.ECMA)
)

// checkSize returns the length of a checksum.
func checkSize(check byte) int {
	return [...]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}[check&15]
}

// appendCheck appends the checksum of p. It reports false for a number that has
// no meaning yet.
func appendCheck(dst []byte, check byte, p []byte) ([]byte, bool) {
	switch check {
	case checkNone:
	case checkCRC32:
		dst = binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(p))
	case CheckCRC64:
		dst = binary.LittleEndian.AppendUint64(dst, crc64.Checksum(p, crc64Table))
	case checkSHA256:
		sum := sha256.Sum256(p)
		dst = append(dst, sum[:]...)
	default:
		return dst, false
	}
	return dst, true
}

// IsXZ reports whether src begins as .xz data do.
func IsXZ(src []byte) bool { return bytes.HasPrefix(src, headerMagic) }

// DecodeXZ appends the contents of .xz data, at most max bytes, to dst, and
// verifies all checksums. src is one stream or several, with only padding
// between and behind them. Errors are as for [DecodeAlone], or
// ErrUnsupported.
func DecodeXZ(dst, src []byte, max int64) ([]byte, error) {
	x := &xzReader{src: src, out: dst, base: len(dst), max: max}
	for first := true; first || len(x.src) > x.pos; first = false {
		if err := x.stream(); err != nil {
			return dst, err
		}
		x.zeros()
		if x.pos%4 != 0 {
			return dst, corrupt("padding of %d bytes", x.pos)
		}
	}
	return x.out, nil
}

// xzReader reads the parts of .xz data.
type xzReader struct {
	src     []byte
	pos     int
	out     []byte // the result
	base    int    // where it begins
	max     int64  // its longest length
	check   byte
	records []byte // of the blocks so far, as the index has them
	blocks  uint64
}

// next returns the next n bytes.
func (x *xzReader) next(n int) ([]byte, error) {
	if n > len(x.src)-x.pos {
		return nil, corrupt("it ends early")
	}
	b := x.src[x.pos : x.pos+n]
	x.pos += n
	return b, nil
}

// zeros skips zeros and returns their number.
func (x *xzReader) zeros() (n int) {
	for x.pos < len(x.src) && x.src[x.pos] == 0 {
		x.pos++
		n++
	}
	return n
}

// stream reads a stream: header, blocks, index, footer.
func (x *xzReader) stream() error {
	h, err := x.next(streamHeader)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(h, headerMagic) {
		return corrupt("no .xz header: % x", h[:6])
	}
	flags := h[6:8]
	if binary.LittleEndian.Uint32(h[8:]) != crc32.ChecksumIEEE(flags) {
		return corrupt("the checksum of the header is wrong")
	}
	if flags[0] != 0 || flags[1] > 15 {
		return corrupt("flags % x", flags)
	}
	x.check, x.records, x.blocks = flags[1], x.records[:0], 0
	for {
		size, err := x.next(1)
		if err != nil {
			return err
		}
		if size[0] == 0 {
			return x.index(flags)
		}
		if err := x.block((int(size[0]) + 1) * 4); err != nil {
			return err
		}
	}
}

// index reads the index, behind its first byte, and the footer.
func (x *xzReader) index(flags []byte) error {
	start := x.pos - 1
	want := append(binary.AppendUvarint(nil, x.blocks), x.records...)
	got, err := x.next(len(want))
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return corrupt("the index does not list the blocks")
	}
	if err := x.pad(x.pos - start); err != nil {
		return err
	}
	size := x.pos - start
	sum, err := x.next(4)
	if err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(sum) != crc32.ChecksumIEEE(x.src[start:start+size]) {
		return corrupt("the checksum of the index is wrong")
	}
	f, err := x.next(streamFooter)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(f[10:], footerMagic) || !bytes.Equal(f[8:10], flags):
		return corrupt("no footer")
	case binary.LittleEndian.Uint32(f) != crc32.ChecksumIEEE(f[4:10]):
		return corrupt("the checksum of the footer is wrong")
	case (uint64(binary.LittleEndian.Uint32(f[4:]))+1)*4 != uint64(size+4):
		return corrupt("the footer has another size of the index")
	}
	return nil
}

// pad reads the zeros that make n a multiple of four.
func (x *xzReader) pad(n int) error {
	for ; n%4 != 0; n++ {
		b, err := x.next(1)
		if err != nil {
			return err
		}
		if b[0] != 0 {
			return corrupt("padding that is not zero")
		}
	}
	return nil
}

// block reads a block whose header has size bytes, the first of which is read.
func (x *xzReader) block(size int) error {
	start := x.pos - 1
	if _, err := x.next(size - 1); err != nil {
		return err
	}
	h := x.src[start:x.pos]
	if binary.LittleEndian.Uint32(h[size-4:]) != crc32.ChecksumIEEE(h[:size-4]) {
		return corrupt("the checksum of a block header is wrong")
	}
	b, err := parseBlock(h[1 : size-4])
	if err != nil {
		return err
	}
	from := len(x.out)
	in := bytes.NewReader(x.src[x.pos:])
	if x.out, err = decodeLZMA2(x.out, in, b.dict, x.max-int64(from-x.base)); err != nil {
		return err
	}
	n := int(in.Size()) - in.Len()
	x.pos += n
	data := x.out[from:]
	if b.packed >= 0 && b.packed != int64(n) || b.size >= 0 && b.size != int64(len(data)) {
		return corrupt("a block whose header has other sizes")
	}
	for i := len(b.deltas) - 1; i >= 0; i-- {
		undelta(data, b.deltas[i])
	}
	if err := x.pad(n); err != nil {
		return err
	}
	stored, err := x.next(checkSize(x.check))
	if err != nil {
		return err
	}
	if sum, ok := appendCheck(nil, x.check, data); ok && !bytes.Equal(sum, stored) {
		return corrupt("the checksum of a block is wrong")
	}
	x.blocks++
	x.records = binary.AppendUvarint(x.records, uint64(size+n+checkSize(x.check)))
	x.records = binary.AppendUvarint(x.records, uint64(len(data)))
	return nil
}

// blockHeader has the sizes of a block header, -1 where it leaves them out.
type blockHeader struct {
	packed, size int64
	deltas       []int // distances, in the order of encoding
	dict         int64 // size of the dictionary
}

// parseBlock parses a block header without its size and checksum.
func parseBlock(h []byte) (blockHeader, error) {
	b := blockHeader{packed: -1, size: -1}
	bad := corrupt("a block header that cannot be read")
	flags := h[0]
	h = h[1:]
	if flags&0x3c != 0 {
		return b, bad
	}
	number := func(v *int64) bool {
		n, rest, ok := readVLI(h)
		*v, h = int64(n), rest
		return ok
	}
	if flags&0x40 != 0 && !number(&b.packed) || flags&0x80 != 0 && !number(&b.size) {
		return b, bad
	}
	filters := int(flags&3) + 1
	for i := range filters {
		var id, n int64
		if !number(&id) || !number(&n) || n > int64(len(h)) {
			return b, bad
		}
		props := h[:n]
		h = h[n:]
		last := i == filters-1
		switch {
		case id == filterDelta && n == 1 && !last:
			b.deltas = append(b.deltas, int(props[0])+1)
		case id == filterLZMA2 && n == 1 && last && props[0] <= 40:
			b.dict, _ = lzma.DecodeDictCap(props[0])
		case id != filterDelta && id != filterLZMA2:
			return b, fmt.Errorf("%w: %#x", ErrUnsupported, id)
		default:
			return b, bad
		}
	}
	for _, c := range h {
		if c != 0 {
			return b, bad
		}
	}
	return b, nil
}

// readVLI reads a number of seven bits a byte, lowest first, nine bytes at
// most, in its shortest form.
func readVLI(p []byte) (v uint64, rest []byte, ok bool) {
	for i := range min(9, len(p)) {
		v |= uint64(p[i]&0x7f) << (7 * i)
		if p[i] < 0x80 {
			return v, p[i+1:], i == 0 || p[i] != 0
		}
	}
	return 0, p, false
}

// undelta adds to every byte the one dist before it.
func undelta(p []byte, dist int) {
	for i := dist; i < len(p); i++ {
		p[i] += p[i-dist]
	}
}
