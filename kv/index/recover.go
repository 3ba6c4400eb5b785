package index

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

// Recover makes an index in to, which must not exist, of one that does not open
// because small files of it are gone or damaged: its format file, its options, the
// markers of its format and of its list of tables, or the list, of which there is
// a copy. If a log is gone or damaged, the new index ends there: it is in the state
// that the other had then. from stays as it is, and must not be open. Tables are
// linked where that is possible.
//
// Errors: kv.ErrCorrupt if more is lost, [FormatError], [ErrNotExist], os.ErrExist
// and those of the file system. to is not there then.
func Recover(fs FS, from, to string) error {
	err := error(os.ErrExist)
	if _, there := fs.Stat(to); errors.Is(there, os.ErrNotExist) {
		err = recoverTo(fs, from, to, false)
		if errors.Is(err, kv.ErrCorrupt) {
			if err = fs.RemoveAll(to); err == nil {
				err = recoverTo(fs, from, to, true)
			}
		}
		if err != nil {
			err = errors.Join(err, fs.RemoveAll(to))
		}
	}
	if err != nil {
		return fmt.Errorf("index: recover %s: %w", from, err)
	}
	return nil
}

// recoverTo makes the new index and opens it. cut leaves out the logs from the first
// one on that is gone or damaged.
func recoverTo(fs vfs.FS, from, to string, cut bool) error {
	if _, err := checkFormat(fs, from); err != nil && !errors.Is(err, kv.ErrCorrupt) {
		return err
	}
	names, err := fs.List(from)
	if errors.Is(err, os.ErrNotExist) {
		return ErrNotExist
	}
	if err != nil {
		return err
	}
	list, err := currentList(names)
	if err != nil {
		return err
	}
	edits, err := soundList(fs, fs.PathJoin(from, list))
	if err != nil {
		return err
	}
	if err := fs.MkdirAll(to, 0o755); err != nil {
		return err
	}
	files := map[string][]byte{
		list:                             edits,
		"marker.manifest.000001." + list: nil,
		"marker.format-version.000001." + formatOf(names): nil,
	}
	for name, b := range files {
		if err := writeSmall(fs, fs.PathJoin(to, name), b); err != nil {
			return err
		}
	}
	for _, name := range names {
		if isTable(name) {
			if err := LinkOrCopy(fs, fs.PathJoin(from, name), fs.PathJoin(to, name)); err != nil {
				return err
			}
		}
	}
	if err := recoverLogs(fs, from, to, names, cut); err != nil {
		return err
	}
	if err := errors.Join(writeFormat(fs, to), syncDir(fs, fs.PathDir(to))); err != nil {
		return err
	}
	x, err := Open(to, &Options{FS: fs, ReadOnly: true})
	if err != nil {
		return err
	}
	return x.Close()
}

// currentList returns the list of tables that counts: the one that the marker names,
// else the newest, of which there may be no more than the copy.
func currentList(names []string) (list string, err error) {
	marked, newest := uint64(0), uint64(0)
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, "marker.manifest.")
		digits, value, _ := strings.Cut(rest, ".")
		iter, err := strconv.ParseUint(digits, 10, 63)
		if ok && err == nil && iter >= marked && isList(value) {
			marked, list = iter+1, value
		}
	}
	if list != "" {
		return list, nil
	}
	for _, name := range names {
		name = strings.TrimSuffix(name, copySuffix)
		digits, _ := strings.CutPrefix(name, "MANIFEST-")
		if n, err := strconv.ParseUint(digits, 10, 63); err == nil && isList(name) && n >= newest {
			newest, list = n, name
		}
	}
	if list == "" {
		return "", fmt.Errorf("%w: there is no list of tables", kv.ErrCorrupt)
	}
	return list, nil
}

// formatOf returns the number of the format of Pebble's files: the newest one if the
// marker is lost, because whoever opens an index for writing brings it there.
func formatOf(names []string) string {
	format := pebble.FormatMinSupported
	for _, name := range names {
		if rest, ok := strings.CutPrefix(name, "marker.format-version."); ok {
			_, value, _ := strings.Cut(rest, ".")
			if n, err := strconv.ParseUint(value, 10, 32); err == nil {
				format = max(format, pebble.FormatMajorVersion(n))
			}
		}
	}
	if format == pebble.FormatMinSupported {
		format = pebble.FormatNewest
	}
	return format.String()
}

// recoverLogs copies the logs, with the mark that names them.
func recoverLogs(fs vfs.FS, from, to string, names []string, cut bool) error {
	var marks logMarks
	marks.find(names)
	numbers := slices.Collect(func(yield func(uint64) bool) {
		for _, name := range names {
			if n := logFileNumber(name); n > 0 && !yield(n) {
				return
			}
		}
		for _, m := range marks.missing {
			if !yield(m.number) {
				return
			}
		}
	})
	slices.Sort(numbers)
	for _, n := range numbers {
		name := markedLog{number: n}.name()
		path := fs.PathJoin(from, name)
		if cut {
			if marks.isMissing(name) {
				return nil
			}
			whole, err := copyLog(fs, path, fs.PathJoin(to, name), uint32(n), marks.closed[name])
			if err != nil || !whole {
				return err
			}
			continue
		}
		if marks.isMissing(name) {
			continue
		}
		if err := vfs.Copy(fs, path, fs.PathJoin(to, name)); err != nil {
			return err
		}
	}
	if marks.path == "" || cut {
		return nil
	}
	return writeSmall(fs, fs.PathJoin(to, marks.path), nil)
}

// copyLog copies a log up to its first record that is damaged, which ends it. whole
// says that there is none.
func copyLog(fs vfs.FS, from, to string, number uint32, size uint64) (whole bool, err error) {
	f, err := fs.Open(from)
	if err != nil {
		return false, err
	}
	s := logScan{number: number}
	err = s.file(f, func([]byte) {})
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	if !s.damaged && s.closed() >= size {
		return true, vfs.Copy(fs, from, to)
	}
	return false, vfs.LimitedCopy(fs, from, to, int64(s.read()))
}
