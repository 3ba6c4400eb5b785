package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

// Pebble takes a damaged record of its log, or of its list of tables, for the
// torn end of it, and goes on without what comes behind: acknowledged commits
// are gone, without an error. It only looks for signs that this is no end in
// the blocks of 32 KiB behind, and in the list of tables not at all. So these
// files are gone over before Pebble reads them. What comes behind a damaged
// record shows that it was no end:
//
//	log               a chunk says up to where the log was synced when it was written
//	list of tables    each edit is synced before the next: another begins behind
//
// Pebble then reads the same bytes or gets an error.
//
// In the headers that Pebble writes, the bytes of blocks that were full when they were
// written do not count: of large commits hardly any. So each batch ends with what the
// guard knows of it (syncNote).
const (
	logBlock = 32 << 10

	plainHeader    = 7  // crc, length, kind
	numberedHeader = 11 // and number of the log
	syncedHeader   = 19 // and offset up to which it was synced
)

// logChunk is a piece of a record.
type logChunk struct {
	size   int
	first  bool   // of its record
	synced uint64 // what the log was synced up to, 0 if it does not say
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// parseChunk reads the chunk at the beginning of b, the rest of a block. The
// number of the log is 0 for the list of tables.
func parseChunk(b []byte, number uint32) (c logChunk, ok bool) {
	if len(b) < plainHeader {
		return c, false
	}
	header, kind := plainHeader, b[6]
	switch {
	case kind > 8:
		header, kind = syncedHeader, kind-8
	case kind > 4:
		header, kind = numberedHeader, kind-4
	}
	if len(b) < header || (header > plainHeader) != (number != 0) || number != 0 && binary.LittleEndian.Uint32(b[7:]) != number {
		return c, false
	}
	if header == syncedHeader {
		c.synced = binary.LittleEndian.Uint64(b[11:])
	}
	c.size = header + int(binary.LittleEndian.Uint16(b[4:]))
	if kind < 1 || kind > 4 || c.size > len(b) {
		return c, false
	}
	c.first = kind <= 2
	if number != 0 && (kind == 1 || kind == 4) {
		c.synced = max(c.synced, parseSyncNote(b[header:c.size], number))
	}
	crc := crc32.Checksum(b[6:c.size], castagnoli)
	return c, (crc>>15|crc<<17)+0xa282ead8 == binary.LittleEndian.Uint32(b)
}

// syncNote is the last thing in a batch: up to where a log was synced when the batch
// was handed over. It is data that Pebble writes to its log and reads past.
//
//	"sync"  number of the log, uint32  bytes, uint64    little endian
const (
	syncNote      = "sync"
	syncNoteBytes = len(syncNote) + 4 + 8
)

// appendSyncNote appends the note of a log that was synced so far.
func appendSyncNote(b []byte, l markedLog) []byte {
	b = append(b, syncNote...)
	b = binary.LittleEndian.AppendUint32(b, uint32(l.number))
	return binary.LittleEndian.AppendUint64(b, l.size)
}

// parseSyncNote returns what the note at the end of a record says, 0 if there is none
// or it is about another log.
func parseSyncNote(record []byte, number uint32) uint64 {
	if len(record) < syncNoteBytes {
		return 0
	}
	note := record[len(record)-syncNoteBytes:]
	if string(note[:len(syncNote)]) != syncNote || binary.LittleEndian.Uint32(note[len(syncNote):]) != number {
		return 0
	}
	return binary.LittleEndian.Uint64(note[len(syncNote)+4:])
}

// logScan goes over the blocks of a log.
type logScan struct {
	number  uint32
	at      uint64 // of the block in the file
	ended   bool   // a record could not be read
	end     uint64 // where it begins
	damaged bool   // and that is not the end
	looked  int    // bytes that were compared with checksums since
}

// maxLook bounds the search behind a damaged record, which in a file that was
// made for it would take very long.
const maxLook = 1 << 30

// block goes over the next block.
func (s *logScan) block(b []byte) {
	for i := 0; i < len(b) && !s.damaged && s.looked < maxLook; {
		c, ok := parseChunk(b[i:], s.number)
		if s.ended {
			s.looked += c.size
		}
		switch {
		case !ok && !s.ended && !padding(b[i:]):
			s.ended, s.end = true, s.at+uint64(i)
			i = s.seek(b, i+1)
		case !ok && !s.ended:
			i = len(b)
		case !ok:
			i = s.seek(b, i+1)
		default:
			// The synced end may lie within the header of a chunk that follows.
			s.damaged = s.ended && (s.number != 0 && c.synced > s.end || s.number == 0 && c.first)
			i += c.size
		}
	}
	s.at += uint64(len(b))
}

// read is how much could be read from the beginning.
func (s *logScan) read() uint64 {
	if s.ended {
		return s.end
	}
	return s.at
}

// closed is how long a log that was closed is at least: the last that is written to
// it is a header of the next one.
func (s *logScan) closed() uint64 {
	if s.ended {
		return min(s.at, s.end+numberedHeader)
	}
	return s.at
}

// file goes over a file, and calls each with its blocks.
func (s *logScan) file(f vfs.File, each func(block []byte)) error {
	var buf [logBlock]byte
	for off := int64(0); ; off += logBlock {
		n, err := f.ReadAt(buf[:], off)
		if err != nil && err != io.EOF {
			return err
		}
		if n > 0 {
			s.block(buf[:n])
			each(buf[:n])
		}
		if n < logBlock {
			return nil
		}
	}
}

// seek returns the next place from i on where a chunk may begin: those of a log
// have its number. A log is often written over an old one, of whatever size, and
// most of it is behind the end then.
func (s *logScan) seek(b []byte, i int) int {
	const at = plainHeader // the number comes behind what a plain header has
	if s.number == 0 || i+at >= len(b) {
		return i
	}
	var number [4]byte
	binary.LittleEndian.PutUint32(number[:], s.number)
	next := bytes.Index(b[i+at:], number[:])
	if next < 0 {
		return len(b)
	}
	return i + next
}

// padding reports whether the rest of a block is too short for a chunk.
func padding(b []byte) bool {
	if len(b) >= syncedHeader {
		return false
	}
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// logNumber returns the number of a log of Pebble, 0 for a list of tables. ok is
// false for other files.
func logNumber(name string) (n uint32, ok bool) {
	if isList(name) {
		return 0, true
	}
	digits, ok := strings.CutSuffix(name, ".log")
	digits, _, _ = strings.Cut(digits, "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	return uint32(number), ok && err == nil && uint32(number) != 0
}

// openLog opens a log or list of tables for reading once from the beginning. size
// is how long a log was when it was closed, or the copy of a list is; 0 if nobody
// knows.
func openLog(fs vfs.FS, name string, number uint32, size uint64, opts ...vfs.OpenOption) (_ vfs.File, err error) {
	f, err := fs.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	c := &checkedLog{File: f, name: name}
	s := logScan{number: number}
	err = s.file(f, func(block []byte) { c.sums = append(c.sums, crc32.Checksum(block, castagnoli)) })
	if err != nil {
		return nil, err
	}
	end := s.closed()
	if number == 0 {
		end = s.read()
	}
	if end < size {
		err = fmt.Errorf("%w: %s ends at %d, and had %d bytes", kv.ErrCorrupt, name, end, size)
	} else if s.damaged {
		err = fmt.Errorf("%w: %s: the record at %d is damaged, and others follow", kv.ErrCorrupt, name, s.end)
	}
	if err == nil {
		return c, nil
	}
	if number != 0 {
		err = &lostLog{logFileNumber(fs.PathBase(name)), err}
	}
	return nil, err
}

// checkedLog gives the bytes that were looked at, and nothing else.
type checkedLog struct {
	vfs.File
	name string
	sums []uint32 // of the blocks
	next int      // block
	rest []byte   // of the block before
	buf  [logBlock]byte
}

func (c *checkedLog) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		if c.next == len(c.sums) {
			return 0, io.EOF
		}
		n, err := c.File.ReadAt(c.buf[:], int64(c.next)*logBlock)
		if err != nil && err != io.EOF {
			return 0, err
		}
		if crc32.Checksum(c.buf[:n], castagnoli) != c.sums[c.next] {
			return 0, fmt.Errorf("%w: %s: block %d reads in two ways", kv.ErrCorrupt, c.name, c.next)
		}
		c.next++
		c.rest = c.buf[:n]
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
