package pack

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// The bytes of a pack, format 1. All numbers are little-endian. All offsets
// are logical: from the beginning of the file unless it was rewritten.
//
//	pack    = file header, then records without a gap
//
//	file header, 64 bytes
//	   0   8  magic 89 5a 44 42 50 0d 0a 1a  (".ZDBP\r\n.")
//	   8   4  format number, 1
//	  12   4  flags; 1: rewritten, see extents.go
//	  16  16  ID of the pack
//	  32  28  0, or the place of the extent table
//	  60   4  check: crc32c of bytes 0 to 59
//
//	record at offset R, the end of the bytes before it rounded up to 8
//	   0   4  magic "zrec", or "zskp" for a skip
//	   4   4  H, the distance from R to the payload
//	   8   8  R
//	  16   8  N, the length of the payload
//	  24  16  array ID of the owner
//	  40   2  K, the length of the owner's key
//	  42   2  flags, 0
//	  44   4  check: crc32c of bytes 0 to 43 and the key, xor salt
//	  48   K  the owner's key: coordinates or a document path
//	          0 up to H - 4·B - 4
//	 H-4-4B   B block sums, 4 bytes each; B = N / 64 KiB, rounded up
//	  H-4  4  H once more, to find the header from the payload
//	   H   N  payload
//
//	The payload begins at the first possible multiple of 8, or of 4096 if
//	N ≥ 64 KiB. A skip has H = 48, no key and no sums, and covers bytes that a
//	failed write left; it may reach beyond the end of the file.
//
//	salt          = crc32c of the 16 bytes of the ID
//	sum of block i = crc32c of the block, xor salt, xor bits 32 to 63 of the
//	                 product of its offset and 9e3779b97f4a7c15
//
// Salt and offset make a record that lies in a wrong place or pack a damaged
// one. No check is right for zeros, because the magic is not zero.
//
// A skip also covers a range that was given back, see reclaim.go. A pack that
// was rewritten without such ranges has an extent table from logical offsets to
// offsets in the file, which layout.find reads. A reader refuses flags that it
// does not know.
const (
	// FormatNumber is the newest format of packs that this program reads and writes.
	FormatNumber   = 1
	fileHeaderSize = 64
	fixedSize      = 48
	blockSize      = 64 << 10
	sumSize        = 4
	backSize       = 4

	smallAlign = 8
	largeAlign = 4096
	largeFrom  = 64 << 10

	// maxKeyBytes bounds Owner.Key.
	maxKeyBytes = 16 << 10
	// MaxPayloadBytes bounds a payload.
	MaxPayloadBytes = 1 << 40
)

var (
	fileMagic   = [8]byte{0x89, 'Z', 'D', 'B', 'P', '\r', '\n', 0x1a}
	recordMagic = [4]byte{'z', 'r', 'e', 'c'}
	skipMagic   = [4]byte{'z', 's', 'k', 'p'}

	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

func crc(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func roundUp(n, to uint64) uint64 { return (n + to - 1) &^ (to - 1) }

// blocks is the number of block sums of a payload of n bytes.
func blocks(n uint64) uint64 { return (n + blockSize - 1) / blockSize }

// place returns the offset of the payload of a record at r.
func place(r uint64, keyLen int, n uint64) (payload uint64) {
	align := uint64(smallAlign)
	if n >= largeFrom {
		align = largeAlign
	}
	return roundUp(r+fixedSize+uint64(keyLen)+sumSize*blocks(n)+backSize, align)
}

// blockSum is the sum of one block at an offset.
func blockSum(salt uint32, block []byte, offset uint64) uint32 {
	mix := salt ^ uint32(offset*0x9e3779b97f4a7c15>>32)
	var sum uint32
	next := block[:min(pageSize, len(block))]
	touch(next)
	for len(next) > 0 {
		page := next
		block = block[len(page):]
		next = block[:min(pageSize, len(block))]
		prefetch(next)
		sum = crc32.Update(sum, castagnoli, page)
	}
	return sum ^ mix
}

const pageSize = 4096

// touch brings a page into the processor's cache, and into a map. crc32c works on
// three parts of its input side by side, which the processor does not foresee: of
// memory that is not in the cache it does 6 GB/s, 10 GB/s of pages that were touched
// before, and 13 GB/s where each page is fetched while the one before is summed.
//
//go:noinline
func touch(page []byte) (x byte) {
	for i := 0; i < len(page); i += 64 {
		x ^= page[i]
	}
	return x
}

// appendFileHeader appends the first 64 bytes of a pack.
func appendFileHeader(dst []byte, id ID) []byte {
	start := len(dst)
	dst = append(dst, fileMagic[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, FormatNumber)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = append(dst, id[:]...)
	dst = append(dst, make([]byte, 28)...)
	return binary.LittleEndian.AppendUint32(dst, crc(dst[start:]))
}

// checkFileHeader compares the beginning of a file with the header of pack id.
func checkFileHeader(b []byte, id ID) error {
	switch {
	case len(b) < fileHeaderSize || [8]byte(b[:8]) != fileMagic || crc(b[:60]) != binary.LittleEndian.Uint32(b[60:]):
		return fmt.Errorf("not the header of a pack")
	case binary.LittleEndian.Uint32(b[8:]) > FormatNumber:
		return fmt.Errorf("%w, pack format %d, and this one knows pack formats up to %d; use a version whose \"zarrdb version\" says pack format %[2]d", errFormat, binary.LittleEndian.Uint32(b[8:]), FormatNumber)
	case binary.LittleEndian.Uint32(b[12:])&^flagExtents != 0:
		return fmt.Errorf("%w, flags %#x, which this one does not know; use the newest version", errFormat, binary.LittleEndian.Uint32(b[12:]))
	case ID(b[16:32]) != id:
		return fmt.Errorf("the file is pack %v", ID(b[16:32]))
	}
	return nil
}

// header is the part of a record before its sums.
type header struct {
	skip    bool
	at      uint64 // R
	payload uint64 // file offset of the payload
	length  uint64 // N
	owner   Owner
}

// next is where the record after this one begins.
func (h *header) next() uint64 { return roundUp(h.payload+h.length, smallAlign) }

// putHeader fills dst, which reaches from h.at to the payload, except for the
// sums.
func putHeader(dst []byte, h *header, salt uint32) {
	magic := recordMagic
	if h.skip {
		magic = skipMagic
	}
	copy(dst, magic[:])
	binary.LittleEndian.PutUint32(dst[4:], uint32(len(dst)))
	binary.LittleEndian.PutUint64(dst[8:], h.at)
	binary.LittleEndian.PutUint64(dst[16:], h.length)
	copy(dst[24:40], h.owner.Array[:])
	binary.LittleEndian.PutUint16(dst[40:], uint16(len(h.owner.Key)))
	binary.LittleEndian.PutUint16(dst[42:], 0)
	n := fixedSize + copy(dst[fixedSize:], h.owner.Key)
	binary.LittleEndian.PutUint32(dst[44:], headerCheck(dst[:n], salt))
	if !h.skip {
		clear(dst[n:])
		binary.LittleEndian.PutUint32(dst[len(dst)-backSize:], uint32(len(dst)))
	}
}

func headerCheck(b []byte, salt uint32) uint32 {
	return crc32.Update(crc(b[:44]), castagnoli, b[fixedSize:]) ^ salt
}

// putSums fills the sums of a payload at an offset into dst, which ends where
// the payload begins.
func putSums(dst, payload []byte, offset uint64, salt uint32) {
	sums := dst[len(dst)-backSize-sumSize*int(blocks(uint64(len(payload)))):]
	for i := 0; len(payload) > 0; i++ {
		block := payload[:min(blockSize, len(payload))]
		binary.LittleEndian.PutUint32(sums[sumSize*i:], blockSum(salt, block, offset))
		payload = payload[len(block):]
		offset += uint64(len(block))
	}
}

// parseHeader reads the record header at offset at of a file of size bytes.
// read returns n bytes of the file, or fewer at its end; they are valid until
// the next call. The owner's key is a copy.
func parseHeader(read func(off uint64, n int) ([]byte, error), at, size uint64, salt uint32) (h header, ok bool, err error) {
	b, err := read(at, fixedSize)
	if err != nil || len(b) < fixedSize {
		return h, false, err
	}
	h.skip = [4]byte(b) == skipMagic
	if !h.skip && [4]byte(b) != recordMagic {
		return h, false, nil
	}
	h.at = binary.LittleEndian.Uint64(b[8:])
	h.length = binary.LittleEndian.Uint64(b[16:])
	keyLen := int(binary.LittleEndian.Uint16(b[40:]))
	distance := uint64(binary.LittleEndian.Uint32(b[4:]))
	check := binary.LittleEndian.Uint32(b[44:])
	want := at + fixedSize
	if h.skip && keyLen == 0 {
		h.length = min(h.length, size-want) // at+fixedSize was read
	}
	if h.at != at || h.length > size || binary.LittleEndian.Uint16(b[42:]) != 0 || h.skip && keyLen != 0 {
		return h, false, nil
	}
	if !h.skip {
		want = place(at, keyLen, h.length)
	}
	h.payload = at + distance
	if h.payload != want || h.payload > size || h.length > size-h.payload {
		return h, false, nil
	}
	if b, err = read(at, fixedSize+keyLen); err != nil || len(b) < fixedSize+keyLen {
		return h, false, err
	}
	if headerCheck(b, salt) != check {
		return h, false, nil
	}
	h.owner.Array = [16]byte(b[24:40])
	h.owner.Key = append([]byte{}, b[fixedSize:]...)
	return h, true, nil
}
