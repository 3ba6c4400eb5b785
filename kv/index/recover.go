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
// because files of it are gone or damaged: its format file, its options, the markers
// of its format and of its list of tables, or the list, of which there is a copy.
// Tables that are gone, or have another size, are taken from copies, which are
// checkpoints of the index. If a log is gone or damaged, the new index ends there: it
// is in the state that the other had then, and ends says why. It is nil if nothing was
// left out. from and copies stay as they are, and from must not be open. Tables are
// linked where that is possible.
//
// Errors: kv.ErrCorrupt if more is lost, [FormatError], [ErrNotExist], os.ErrExist
// and those of the file system. to is not there then.
func Recover(fs FS, from, to string, copies ...string) (ends, err error) {
	r := recovery{fs: fs, from: from, to: to, copies: copies}
	err = os.ErrExist
	if _, there := fs.Stat(to); errors.Is(there, os.ErrNotExist) {
		if err = r.run(); err != nil {
			err = errors.Join(err, fs.RemoveAll(to))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("index: recover %s: %w", from, err)
	}
	return r.ends, nil
}

type recovery struct {
	fs       vfs.FS
	from, to string
	copies   []string

	tables tableSource
	// The log that the new index ends in, 0 if it has all of them, and why.
	last uint64
	ends error
}

// tableSource says which tables the new index gets.
type tableSource int

const (
	tablesOfIndex    tableSource = iota // and no others
	tablesThenCopies                    // of copies those that are gone in the index
	copiesThenTables                    // of the index those that are in no copy
)

// run makes the new index. What is not there can be told by opening it only, and is
// then made up for.
func (r *recovery) run() error {
	for {
		err := r.make()
		var lost *lostLog
		switch {
		case errors.As(err, &lost) && lost.number > 0 && (r.last == 0 || lost.number < r.last):
			r.last, r.ends = lost.number, err
		case errors.Is(err, kv.ErrCorrupt) && len(r.copies) > 0 && r.tables < copiesThenTables:
			r.tables++
		default:
			return err
		}
		if err := r.fs.RemoveAll(r.to); err != nil {
			return err
		}
	}
}

// make makes the new index and opens it.
func (r *recovery) make() error {
	fs, to := r.fs, r.to
	if _, err := checkFormat(fs, r.from); err != nil && !errors.Is(err, kv.ErrCorrupt) {
		return err
	}
	names, err := fs.List(r.from)
	if errors.Is(err, os.ErrNotExist) {
		return ErrNotExist
	}
	if err != nil {
		return err
	}
	if r.ends == nil {
		r.ends = logsUnknown(names, r.from)
	}
	list, err := currentList(names)
	if err != nil {
		return err
	}
	edits, err := soundList(fs, fs.PathJoin(r.from, list))
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
	if err := r.linkTables(); err != nil {
		return err
	}
	if err := r.copyLogs(names); err != nil {
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

// linkTables gives the new index its tables. A number is given to one table only, so
// that tables of a checkpoint have the names that they have in the index. Those that
// the list does not name are of no harm.
func (r *recovery) linkTables() error {
	from := append([]string{r.from}, r.copies...)
	switch r.tables {
	case tablesOfIndex:
		from = from[:1]
	case copiesThenTables:
		from = append(slices.Clone(r.copies), r.from)
	}
	have := map[string]bool{}
	for _, dir := range from {
		names, err := r.fs.List(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			if !isTable(name) || have[name] {
				continue
			}
			if err := LinkOrCopy(r.fs, r.fs.PathJoin(dir, name), r.fs.PathJoin(r.to, name)); err != nil {
				return err
			}
			have[name] = true
		}
	}
	return nil
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

// copyLogs copies the logs up to the last one, with the mark that names them if that
// is all.
func (r *recovery) copyLogs(names []string) error {
	fs := r.fs
	var marks logMarks
	marks.find(names)
	for _, l := range logsIn(names) {
		from, to := fs.PathJoin(r.from, l.name()), fs.PathJoin(r.to, l.name())
		var err error
		switch {
		case r.last == 0 || l.number < r.last:
			err = vfs.Copy(fs, from, to)
		case l.number == r.last:
			err = copyLog(fs, from, to, uint32(l.number))
		}
		if err != nil {
			return err
		}
	}
	if marks.path == "" || r.last > 0 {
		return nil
	}
	return writeSmall(fs, fs.PathJoin(r.to, marks.path), nil)
}

// copyLog copies a log up to its first record that cannot be read.
func copyLog(fs vfs.FS, from, to string, number uint32) error {
	f, err := fs.Open(from)
	if err != nil {
		return err
	}
	s := logScan{number: number}
	err = s.file(f, func([]byte) {})
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return vfs.LimitedCopy(fs, from, to, int64(s.read()))
}
