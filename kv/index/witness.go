package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

// Pebble treats a damaged record of its log, or of its list of tables, as the
// torn end of that file, and opens without the records behind it: acknowledged
// commits are lost without an error. It does not notice a deleted log either. So
// Close, and Checkpoint in the copy, increment a number in the index as the last
// write, and then write the same number to a file, with the checksum of the list
// of tables, to which Pebble only appends:
//
//	index     key 0x00 ──▶ 12                     synced first
//	CLOSED    zarrdb index closed 12
//	          MANIFEST-000001 87 1f3a90c2         name, bytes, crc32c
//
// An index whose number is lower than the number in the file has lost a part of
// its log. A list of tables with another beginning is damaged; a missing list
// was replaced by a new one. So the file stays true after later writes, and
// needs no update when the index is opened. It does not cover writes since the
// last Close: an index that was killed, and whose log is then damaged before it
// is opened again, may lose its last commits silently.
const (
	witnessFile   = "CLOSED"
	witnessPrefix = "zarrdb index closed "
)

// witnessKey is in no space.
var witnessKey = []byte{0}

// count returns the number in the index, 0 without one.
func (x *Index) count() (uint64, error) {
	b, closer, err := x.db.Get(witnessKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, readError("read the count of closes", err)
	}
	defer closer.Close()
	if len(b) != 8 {
		return 0, fmt.Errorf("index: %w: the count of closes has %d bytes", kv.ErrCorrupt, len(b))
	}
	return binary.BigEndian.Uint64(b), nil
}

// countUp writes the next number to the index, durably, behind all writes before.
func (x *Index) countUp() (uint64, error) {
	n, err := x.count()
	if err == nil {
		n++
		err = x.db.Set(witnessKey, binary.BigEndian.AppendUint64(nil, n), pebble.Sync)
	}
	return n, errors.Join(err, x.guard.err())
}

// witness counts up if something was written since Open. Without the file the
// next Open misses nothing, so failures are not reported.
func (x *Index) witness() {
	if x.ro || !x.wrote.Load() || x.guard.isFailed() {
		return
	}
	if x.disk.enter("close", 0, false) != nil {
		return // nearly full: the log must not fail now
	}
	defer x.disk.leave(0)
	if n, err := x.countUp(); err == nil {
		_ = writeWitness(x.fs, x.dir, n)
	}
}

// writeWitness puts the file into dir, durably.
func writeWitness(fs vfs.FS, dir string, n uint64) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	b := fmt.Appendf(nil, "%s%d\n", witnessPrefix, n)
	for _, name := range names {
		if !isList(name) {
			continue
		}
		// Twice: a bit that flips in a read would make a sound list look damaged.
		sum, size, err := checksum(fs, fs.PathJoin(dir, name), math.MaxInt64)
		again, _, err2 := checksum(fs, fs.PathJoin(dir, name), size)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		if sum == again {
			b = fmt.Appendf(b, "%s %d %08x\n", name, size, sum)
		}
	}
	return ReplaceSmall(fs, dir, witnessFile, b)
}

// isList reports whether a file is a list of tables.
func isList(name string) bool { return strings.HasPrefix(name, "MANIFEST-") }

// checksum returns the CRC-32C of the first n bytes of a file, and the number of
// bytes read.
func checksum(fs vfs.FS, path string, n int64) (sum uint32, size int64, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return 0, 0, err
	}
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	size, err = io.Copy(h, io.LimitReader(f, n))
	return h.Sum32(), size, errors.Join(err, f.Close())
}

// checkLists compares the lists of tables with the file, before Pebble reads them.
func checkLists(fs vfs.FS, dir string) error {
	_, lists, err := readWitness(fs, dir)
	for _, line := range lists {
		var name string
		var want int64
		var sum uint32
		if n, _ := fmt.Sscanf(line, "%s %d %x", &name, &want, &sum); n != 3 || !isList(name) {
			continue
		}
		path := fs.PathJoin(dir, name)
		switch have, size, err := checksum(fs, path, want); {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return err
		case size < want || have != sum:
			return fmt.Errorf("%w: %s: its first %d bytes, the list of tables, differ from the list with which the index was closed", kv.ErrCorrupt, path, want)
		}
	}
	return err
}

// checkCount compares the number in the index with the file.
func (x *Index) checkCount() error {
	want, _, err := readWitness(x.fs, x.dir)
	if err != nil {
		return err
	}
	have, err := x.count()
	if err == nil && have < want {
		err = fmt.Errorf("%w: commits are missing: the index was closed %d times, and its log ends before close %d", kv.ErrCorrupt, want, have+1)
	}
	return err
}

// readWitness returns the contents of the file, empty if it is missing or
// malformed.
func readWitness(fs vfs.FS, dir string) (count uint64, lists []string, err error) {
	b, err := ReadSmall(fs, fs.PathJoin(dir, witnessFile))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	lines := strings.Split(string(b), "\n")
	digits, ok := strings.CutPrefix(lines[0], witnessPrefix)
	count, err = strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil {
		return 0, nil, nil
	}
	return count, lines[1:], nil
}
