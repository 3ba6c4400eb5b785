package index

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

// The format number gates everything durable in the directory: spaces, the
// coding of keys, Pebble's own format. It is kept in a file beside Pebble's
// and read before Pebble touches anything.
const (
	formatNumber = 1
	formatFile   = "FORMAT"
	formatPrefix = "zarrdb index "
)

// creatingFile is there while an index is being made or removed. A crash at that
// time can leave Pebble's files in a state that Pebble does not open; they are
// worth nothing and are removed. The format file comes last, so that its absence
// with tables and without this file is damage.
const creatingFile = "CREATING"

// lockFile is Pebble's name of the file that it locks.
const lockFile = "LOCK"

// prepare leaves a directory that Pebble may open. missing means that there is
// no index yet; finishCreate ends its creation.
func prepare(o *Options, dir string) (missing bool, err error) {
	fs := o.FS
	missing, err = checkFormat(fs, dir)
	if err != nil || o.ReadOnly || missing && !o.Create {
		return missing, err
	}
	if !missing {
		return false, errors.Join(
			removeIfThere(fs, fs.PathJoin(dir, creatingFile)),
			fs.RemoveAll(fs.PathJoin(dir, ingestDir)))
	}
	begun, err := Begun(fs, dir)
	if err != nil {
		return true, err
	}
	if begun {
		return true, wipe(fs, dir)
	}
	err = writeSmall(fs, fs.PathJoin(dir, creatingFile), nil)
	return true, errors.Join(err, SyncDir(fs, dir))
}

// finishCreate makes the new index in dir one that exists.
func finishCreate(fs vfs.FS, dir string) error {
	if err := writeFormat(fs, dir); err != nil {
		return err
	}
	return errors.Join(fs.Remove(fs.PathJoin(dir, creatingFile)), SyncDir(fs, dir))
}

// checkFormat reads the format number of dir. missing means that the file does
// not exist.
func checkFormat(fs vfs.FS, dir string) (missing bool, err error) {
	b, err := ReadSmall(fs, fs.PathJoin(dir, formatFile))
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	digits, ok := strings.CutPrefix(string(b), formatPrefix)
	n, err := strconv.ParseUint(strings.TrimSuffix(digits, "\n"), 10, 64)
	if !ok || err != nil || n == 0 {
		return false, fmt.Errorf("index: %s: %w: not a format file: %q", fs.PathJoin(dir, formatFile), kv.ErrCorrupt, b)
	}
	if n > formatNumber {
		return false, &FormatError{Dir: dir, Have: n, Known: formatNumber}
	}
	return false, nil
}

// writeFormat puts the format file into dir, durably.
func writeFormat(fs vfs.FS, dir string) error {
	return ReplaceSmall(fs, dir, formatFile, fmt.Appendf(nil, "%s%d\n", formatPrefix, formatNumber))
}

// maxSmall bounds the files that are read whole.
const maxSmall = 4 << 10

// ReadSmall reads a file, of which it returns at most 4 KiB.
func ReadSmall(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSmall))
}

// writeSmall creates or replaces a file and syncs it.
func writeSmall(fs vfs.FS, path string, b []byte) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// ReplaceSmall puts a file into dir in the place of another, as a whole and durably.
func ReplaceSmall(fs vfs.FS, dir, name string, b []byte) error {
	path := fs.PathJoin(dir, name)
	if err := writeSmall(fs, path+".tmp", b); err != nil {
		return err
	}
	return errors.Join(fs.Rename(path+".tmp", path), SyncDir(fs, dir))
}

// SyncDir makes the names in a directory durable.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Begun reports whether dir holds an index, or one whose creation was interrupted. Otherwise it is
// empty, or the error is kv.ErrCorrupt for an index without its format file, or os.ErrExist for
// other files.
func Begun(fs FS, dir string) (bool, error) {
	// Another process may be making the index. It makes the file that says so first, and removes it
	// when the format file is there. So list the directory first, and read the format file last.
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	for _, name := range []string{creatingFile, formatFile} {
		if _, err := fs.Stat(fs.PathJoin(dir, name)); err == nil || !errors.Is(err, os.ErrNotExist) {
			return err == nil, err
		}
	}
	for _, name := range names {
		switch {
		case name == lockFile || name == holderFile: // come before all else
		case isOurs(name):
			return false, fmt.Errorf("%w: %s is missing", kv.ErrCorrupt, fs.PathJoin(dir, formatFile))
		default:
			return false, fmt.Errorf("%w: %s is not a file of an index", os.ErrExist, fs.PathJoin(dir, name))
		}
	}
	return false, err
}

// Complete reports whether dir has the format file of an index, which is written
// last.
func Complete(fs FS, dir string) bool {
	missing, err := checkFormat(fs, dir)
	return err == nil && !missing
}

// wipe removes the files of an interrupted creation.
func wipe(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch {
		case name == creatingFile || name == holderFile || name == lockFile || !isOurs(name):
			continue
		case name == ingestDir:
			err = fs.RemoveAll(fs.PathJoin(dir, name))
		default:
			err = fs.Remove(fs.PathJoin(dir, name))
		}
		if err != nil {
			return err
		}
	}
	return SyncDir(fs, dir)
}

var ourNames = regexp.MustCompile(`^(?:` +
	`(?:FORMAT|CLOSED)(?:\.tmp)?|CREATING|HOLDER|RESERVE|ingest|LOCK|` +
	// Files of Pebble.
	`CURRENT|(?:CURRENT|temporary)\.\d+\.dbtmp|(?:MANIFEST|OPTIONS|REMOTE-OBJ-CATALOG)-\d+|` +
	`marker\.[a-z-]+\.\d+\..+|\d+\.(?:sst|blob)|\d+(?:-\d+)?\.log)$`)

// isOurs reports whether a file in the directory of an index is one of an index.
func isOurs(name string) bool { return ourNames.MatchString(name) }

func removeIfThere(fs vfs.FS, path string) error {
	if err := fs.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
