package zipkv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
)

// member is the index record of a member: 48 bytes, beside its name.
type member struct {
	name   uint32 // offset in Reader.names
	len    uint16 // of the name
	rawLen uint16 // of the name as stored
	crc    uint32
	flags  uint16
	method uint16
	packed int64
	size   int64
	offset int64  // of the local header in the archive
	head   uint32 // length of the local header once it was read, with rawName; atomic
}

// outside is the offset of a member that does not lie in the archive.
const outside = -1

// rawName means that the stored name is the key.
const rawName = 1 << 31

// end has the contents of the records at the end of an archive.
type end struct {
	at      int64 // where the directory ends
	entries uint64
	count16 bool // entries is only known modulo 65536
	size    int64
	offset  int64 // of the directory, as declared
}

// maxTail is the largest distance of the end record from the end of the archive.
const maxTail = lenEnd + max16

// maxCandidates bounds how many end records are tried: all but one are part of a
// comment, and each may cost a parse of the directory.
const maxCandidates = 8

// readIndex finds and parses the directory.
func (r *Reader) readIndex(ctx context.Context) error {
	total := r.archive.Size()
	// The zip64 records lie before the end record.
	tailLen := int64(maxTail + lenLocator64 + lenEnd64)
	if r.Gathers(ctx, "") {
		gap, _ := r.Spacing() // a directory within it needs no request of its own
		tailLen = max(tailLen, gap)
	}
	tailLen = min(tailLen, total)
	tail, err := kv.ReadValue(ctx, r.archive, kv.Last(tailLen))
	if err != nil {
		return err
	}
	tailAt := total - tailLen
	r.tail = kv.Held(r.archive, tailAt, tail)
	defer func() { r.tail = nil }()
	var first error
	tried := 0
	for i := len(tail) - lenEnd; i >= max(0, len(tail)-maxTail) && tried < maxCandidates; i-- {
		if le.Uint32(tail[i:]) != sigEnd || int(le.Uint16(tail[i+20:])) > len(tail)-i-lenEnd {
			continue
		}
		tried++
		e, err := r.parseEnd(ctx, tail[:i+lenEnd], tailAt)
		if err == nil {
			err = r.parseDirectory(ctx, e)
		}
		if err == nil || !errors.Is(err, kv.ErrCorrupt) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		first = fmt.Errorf("%w (%w: no end record in the last %d of %d bytes)", errFormat, kv.ErrCorrupt, tailLen, total)
	}
	return first
}

// parseEnd reads the end record that tail, which begins at tailAt in the
// archive, ends with, and the zip64 records before it.
func (r *Reader) parseEnd(ctx context.Context, tail []byte, tailAt int64) (end, error) {
	i := len(tail) - lenEnd
	b := tail[i:]
	e := end{at: tailAt + int64(i), entries: uint64(le.Uint16(b[10:])), count16: true}
	size, offset := uint64(le.Uint32(b[12:])), uint64(le.Uint32(b[16:]))
	disk, dirDisk, here := uint32(le.Uint16(b[4:])), uint32(le.Uint16(b[6:])), uint64(le.Uint16(b[8:]))

	if loc := i - lenLocator64; loc >= 0 && le.Uint32(tail[loc:]) == sigLocator64 {
		rec, at, err := r.findEnd64(ctx, tail[loc:i], tailAt+int64(loc))
		if err != nil {
			return end{}, err
		}
		if rec != nil {
			e.at, e.count16 = at, false
			e.entries, here = le.Uint64(rec[32:]), le.Uint64(rec[24:])
			size, offset = le.Uint64(rec[40:]), le.Uint64(rec[48:])
			disk, dirDisk = le.Uint32(rec[16:]), le.Uint32(rec[20:])
		}
	}
	switch {
	case disk != 0 || dirDisk != 0 || here != e.entries:
		return end{}, corrupt("an archive in several parts")
	case size > uint64(e.at) || offset > uint64(e.at):
		return end{}, corrupt("a directory of %d bytes at %d, which must end at %d", size, offset, e.at)
	case e.entries > size/lenCentral:
		return end{}, corrupt("%d members in a directory of %d bytes", e.entries, size)
	}
	e.size, e.offset = int64(size), int64(offset)
	return e, nil
}

// findEnd64 returns the end record of zip64 that a locator points to. Bytes
// before the archive shift it; then it is searched directly before the locator.
// If it is not there, the locator's signature was part of other data.
func (r *Reader) findEnd64(ctx context.Context, locator []byte, at int64) (rec []byte, recAt int64, err error) {
	declared := le.Uint64(locator[8:])
	for _, try := range []int64{int64(min(declared, math.MaxInt64)), at - lenEnd64} {
		if try < 0 || try > at-lenEnd64 {
			continue
		}
		rec, err := kv.ReadValue(ctx, r.tail, kv.Span(try, lenEnd64))
		if err != nil {
			return nil, 0, err
		}
		if le.Uint32(rec) == sigEnd64 {
			return rec, try, nil
		}
	}
	return nil, 0, nil
}

// parseDirectory reads all records of the directory into the index.
func (r *Reader) parseDirectory(ctx context.Context, e end) error {
	// Bytes before the archive shift everything. A few writers leave a gap
	// behind the directory instead.
	starts := []int64{e.at - e.size}
	if e.offset != starts[0] && e.offset+e.size <= e.at {
		starts = append(starts, e.offset)
	}
	var first error
	for _, start := range starts {
		err := r.parseRecords(ctx, e, start)
		if err == nil || !errors.Is(err, kv.ErrCorrupt) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func (r *Reader) parseRecords(ctx context.Context, e end, start int64) error {
	r.names, r.refused, r.dataEnd = "", nil, start
	shift := start - e.offset
	// The numbers agree with the length of the archive, but a file with holes
	// can have any length.
	var names strings.Builder
	names.Grow(int(min(e.size-int64(e.entries)*lenCentral, 64<<20)))
	r.members = make([]member, 0, min(e.entries, 1<<20))
	section := io.NewSectionReader(kv.ReaderAt(ctx, r.tail), start, e.size)
	piece := int64(1 << 20)
	if r.Gathers(ctx, "") {
		piece = 8 << 20 // a request each
	}
	in := bufio.NewReaderSize(section, int(min(max(e.size, 1<<10), piece)))
	var n uint64
	for left := e.size; left > 0; {
		// The longest record fits into the buffer, unless the directory ends
		// before.
		b, err := in.Peek(int(min(left, lenCentral+3*max16)))
		if err != nil && err != io.EOF && err != bufio.ErrBufferFull {
			return err
		}
		if len(b) >= 4 && le.Uint32(b) == sigSignature {
			break // a digital signature ends the directory
		}
		h, err := parseHeader(b)
		if err == errShort {
			err = corrupt("directory record %d is cut off", n)
		}
		if err != nil {
			return err
		}
		if err := r.add(h, shift, &names); err != nil {
			return err
		}
		if _, err := in.Discard(h.recSize); err != nil {
			return err
		}
		left -= int64(h.recSize)
		n++
	}
	if n != e.entries && !(e.count16 && n&max16 == e.entries) {
		return corrupt("%d members in the directory, %d declared", n, e.entries)
	}
	r.names = names.String()
	r.sort()
	return nil
}

// maxRefused bounds the list of refused names.
const maxRefused = 100

// add puts a member into the index.
func (r *Reader) add(h header, shift int64, names *strings.Builder) error {
	if dir, ok := strings.CutSuffix(h.name, "/"); ok && refused(dir) == "" {
		return nil
	}
	if refused(h.name) != "" {
		if len(r.refused) < maxRefused {
			r.refused = append(r.refused, h.name)
		}
		return nil
	}
	if len(h.name) > max16 || uint64(names.Len())+uint64(len(h.name)) > math.MaxUint32 {
		return corrupt("names of %d bytes", uint64(names.Len())+uint64(len(h.name)))
	}
	offset := h.offset + shift
	if offset < 0 || offset > r.dataEnd-lenLocal || h.packed > r.dataEnd-lenLocal-offset {
		offset = outside // an error when it is read; other members are readable
	}
	m := member{
		name: uint32(names.Len()), len: uint16(len(h.name)), rawLen: h.rawLen, crc: h.crc, flags: h.flags, method: h.method,
		packed: h.packed, size: h.size, offset: offset,
	}
	if h.raw {
		m.head = rawName
	}
	names.WriteString(h.name)
	r.members = append(r.members, m)
	return nil
}

// sort orders the index by name and drops all but the last of equal names.
func (r *Reader) sort() {
	slices.SortFunc(r.members, func(a, b member) int {
		if c := strings.Compare(r.name(&a), r.name(&b)); c != 0 {
			return c
		}
		if a.name > b.name { // equal names stay in the order of the directory
			return -1
		}
		return 1
	})
	r.members = slices.CompactFunc(r.members, func(a, b member) bool { return r.name(&a) == r.name(&b) })
	r.members = slices.Clip(r.members)
}
