package txn

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
)

// FormatFile is the file that says that a directory is a database. It holds
// one line, "zarrdb N", with the number of the on-disk format.
const FormatFile = "FORMAT"

// Format is the newest on-disk format that this program reads and writes.
const Format = 1

// FormatWord is what a FormatFile begins with.
const FormatWord = "zarrdb "

var formatText = fmt.Sprintf("%s%d\n", FormatWord, Format)

func fsOf(fs index.FS) index.FS {
	if fs == nil {
		return index.DefaultFS
	}
	return fs
}

// ParseFormat reads the contents of a FormatFile. A newer format is an
// *index.FormatError.
func ParseFormat(b []byte) (int, error) {
	word, ok := strings.CutPrefix(strings.TrimRight(string(b), "\n"), FormatWord)
	n, err := strconv.Atoi(word)
	if !ok || err != nil || n < 1 {
		return 0, fmt.Errorf("%w: %s is not understood", ErrNotDatabase, FormatFile)
	}
	if n > Format {
		return n, &index.FormatError{Have: uint64(n), Known: Format}
	}
	return n, nil
}

func readFormat(fs index.FS, dir string) error {
	f, err := fs.Open(fs.PathJoin(dir, FormatFile))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("open %s: %w", dir, ErrNotDatabase)
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 64))
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	if _, err := ParseFormat(b); err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	return nil
}

// prepareDir makes dir and refuses one that holds a database, what is left of one
// that lost its index, or other files. It returns the directories that were
// missing, the innermost first.
func prepareDir(fs index.FS, dir string) (made []string, err error) {
	if _, err := fs.Stat(fs.PathJoin(dir, FormatFile)); err == nil {
		return nil, fmt.Errorf("create %s: %w", dir, ErrExists)
	}
	for d := dir; ; {
		if _, err := fs.Stat(d); !errors.Is(err, os.ErrNotExist) {
			break
		}
		made = append(made, d)
		up := fs.PathDir(d)
		if up == d {
			break
		}
		d = up
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create %s: %w", dir, err)
	}
	names, err := fs.List(dir)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", dir, err)
	}
	for _, n := range names {
		if n != indexDir && n != packDir && n != FormatFile+".tmp" {
			return nil, fmt.Errorf("create %s: %w: the directory is not empty", dir, ErrExists)
		}
	}
	if err := indexMissing(fs, dir); err != nil {
		return nil, fmt.Errorf("create %s: %w", dir, err)
	}
	return made, nil
}

// indexMissing refuses packs without an index: they are what is left of a
// database. An interrupted creation or removal has none, or an index that says so.
func indexMissing(fs index.FS, dir string) error {
	begun, err := index.Begun(fs, fs.PathJoin(dir, indexDir))
	switch {
	case errors.Is(err, kv.ErrCorrupt):
		return errIsLeft(dir, err.Error())
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("%w: the directory is not empty: %w", ErrExists, err)
	case begun || err != nil:
		return err
	}
	names, err := fs.List(fs.PathJoin(dir, packDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if len(names) > 0 {
		return errIsLeft(dir, "there are payloads and no index")
	}
	return err
}

// errIsLeft says that there is something of a database that Open does not open.
func errIsLeft(dir, what string) error {
	return fmt.Errorf("%w: %s: \"zarrdb fsck --salvage %s\" restores what can be restored", ErrExists, what, dir)
}

func writeFormat(fs index.FS, dir string) error {
	if err := putFile(fs, fs.PathJoin(dir, FormatFile), []byte(formatText)); err != nil {
		return err
	}
	return syncDir(fs, fs.PathDir(dir))
}

// putFile puts a file in its place, durably and as a whole.
func putFile(fs index.FS, path string, b []byte) error {
	tmp := path + ".tmp"
	f, err := fs.Create(tmp, index.WriteCategory)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(fs, fs.PathDir(path))
}

func syncDir(fs index.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
