package pack

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A rewritten pack has only those logical ranges that were live. Its header has
// the position of the extent table:
//
//	  32   8  file offset of the table, which ends the file
//	  40   8  number of extents
//	  48   8  logical size of the pack
//	  56   4  crc32c of the table, xor salt
//
//	extent, 24 bytes: logical offset (8) · length (8) · file offset (8)
//
// Extents ascend by both offsets and do not overlap. Records are copied whole,
// headers included, with their logical offsets, so that every check in them
// still fits.
const (
	flagExtents = 1
	extentSize  = 24
)

// extent is where a logical range is in a file.
type extent struct{ from, n, at uint64 }

// layout is how logical offsets lie in one file. nil is a file as it was
// appended to: they are the same.
type layout struct {
	size    uint64 // logical
	extents []extent
}

// find returns the file offset of a logical range, if the whole range is there
// in one piece.
func (l *layout) find(off, n uint64) (uint64, bool) {
	if l == nil {
		return off, true
	}
	i := sort.Search(len(l.extents), func(i int) bool { return l.extents[i].from > off }) - 1
	if i < 0 {
		return 0, false
	}
	e := &l.extents[i]
	if skip := off - e.from; skip <= e.n && n <= e.n-skip {
		return e.at + skip, true
	}
	return 0, false
}

// after returns the extents that end behind off, for a file of size bytes.
func (l *layout) after(off, size uint64) []extent {
	if l == nil {
		return []extent{{0, size, 0}}
	}
	i := sort.Search(len(l.extents), func(i int) bool { return l.extents[i].from+l.extents[i].n > off })
	return l.extents[i:]
}

// readLayout reads the header of a pack's file, and its extent table if it has
// one.
func readLayout(f vfs.File, id ID, salt uint32) (*layout, error) {
	var head [fileHeaderSize]byte
	n, err := readAt(f, head[:], 0)
	if err == nil || err == io.EOF {
		err = checkFileHeader(head[:n], id)
	}
	if err != nil || binary.LittleEndian.Uint32(head[12:])&flagExtents == 0 {
		return nil, err
	}
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	at := binary.LittleEndian.Uint64(head[32:])
	count := binary.LittleEndian.Uint64(head[40:])
	end := uint64(fi.Size())
	if at < fileHeaderSize || at > end || count != (end-at)/extentSize || (end-at)%extentSize != 0 ||
		count > (at-fileHeaderSize)/fixedSize+1 {
		return nil, fmt.Errorf("extent table of %d entries at %d in a file of %d bytes", count, at, end)
	}
	table := make([]byte, end-at)
	if _, err := readAt(f, table, at); err != nil {
		return nil, err
	}
	if crc(table)^salt != binary.LittleEndian.Uint32(head[56:]) {
		return nil, fmt.Errorf("checksum mismatch of the extent table")
	}
	return parseExtents(table, binary.LittleEndian.Uint64(head[48:]), at)
}

// parseExtents reads a table for a pack of the given logical size, whose data
// ends at file offset end.
func parseExtents(table []byte, size, end uint64) (*layout, error) {
	l := &layout{size: size, extents: make([]extent, 0, len(table)/extentSize)}
	from, at := uint64(0), uint64(fileHeaderSize)
	for ; len(table) >= extentSize; table = table[extentSize:] {
		e := extent{
			binary.LittleEndian.Uint64(table), binary.LittleEndian.Uint64(table[8:]), binary.LittleEndian.Uint64(table[16:]),
		}
		if e.from < from || e.from > size || e.n > size-e.from || e.at < at || e.at > end || e.n > end-e.at {
			return nil, fmt.Errorf("extent %d is out of place", len(l.extents))
		}
		from, at = e.from+e.n, e.at+e.n
		l.extents = append(l.extents, e)
	}
	return l, nil
}

// appendExtentHeader appends the first 64 bytes of a rewritten pack.
func appendExtentHeader(dst []byte, id ID, salt uint32, table []byte, at, size uint64) []byte {
	start := len(dst)
	dst = appendFileHeader(dst, id)
	h := dst[start:]
	binary.LittleEndian.PutUint32(h[12:], flagExtents)
	binary.LittleEndian.PutUint64(h[32:], at)
	binary.LittleEndian.PutUint64(h[40:], uint64(len(table)/extentSize))
	binary.LittleEndian.PutUint64(h[48:], size)
	binary.LittleEndian.PutUint32(h[56:], crc(table)^salt)
	binary.LittleEndian.PutUint32(h[60:], crc(h[:60]))
	return dst
}

// placeExtents lays out live ranges in a new file and returns the extents, their
// table, and where it begins. A range keeps its offset within a page of 4 KiB
// if it may hold a large payload, else modulo 8.
func placeExtents(live []Extent) (extents []extent, table []byte, end uint64) {
	end = fileHeaderSize
	for _, r := range live {
		align := uint64(smallAlign)
		if r.To-r.From >= largeFrom {
			align = largeAlign
		}
		at := end + (r.From-end)&(align-1)
		e := extent{r.From, r.To - r.From, at}
		end = at + e.n
		extents = append(extents, e)
		table = binary.LittleEndian.AppendUint64(table, e.from)
		table = binary.LittleEndian.AppendUint64(table, e.n)
		table = binary.LittleEndian.AppendUint64(table, e.at)
	}
	return slices.Clip(extents), table, roundUp(end, smallAlign)
}
