package txn

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/away"
)

// FormatFile is the file that says that a directory is a database. It holds
// one line, "zarrdb N", with the number of the on-disk format.
const FormatFile = "FORMAT"

// Format is the newest on-disk format that this program reads and writes.
const Format = 1

// PackFormat is the format of the packs of a database.
const PackFormat = pack.FormatNumber

// FormatWord is what a FormatFile begins with.
const FormatWord = "zarrdb "

var formatText = fmt.Sprintf("%s%d\n", FormatWord, Format)

// parseFormat reads the contents of a FormatFile. A newer format is an
// *index.FormatError.
func parseFormat(b []byte) (int, error) {
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

func readFormat(fs index.FS, dir string) (err error) {
	defer wrap(&err, "open %s", dir)
	b, err := index.ReadSmall(fs, fs.PathJoin(dir, FormatFile))
	if errors.Is(err, os.ErrNotExist) {
		return ErrNotDatabase
	}
	if err == nil {
		_, err = parseFormat(b)
	}
	return err
}

// prepareDir makes dir. It refuses a directory that holds a database, the remains of a
// database without its index, or other files.
func prepareDir(fs index.FS, dir string) (err error) {
	defer wrap(&err, "create %s", dir)
	if exists(fs, fs.PathJoin(dir, FormatFile)) {
		return ErrExists
	}
	if err := index.MakeTop(fs, dir); err != nil {
		return err
	}
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		if n != indexDir && n != packDir && n != checkpointDir && n != away.File && n != away.File+".tmp" && n != away.Dir && n != FormatFile+".tmp" {
			return fmt.Errorf("%w: the directory is not empty", ErrExists)
		}
	}
	return indexMissing(fs, dir)
}

// indexMissing refuses packs and checkpoints without an index: they are what is left of a
// database. An interrupted creation has none, or an index that says so.
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
	for _, part := range [][2]string{{packDir, "payloads"}, {checkpointDir, "checkpoints"}} {
		names, err := fs.List(fs.PathJoin(dir, part[0]))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if len(names) > 0 {
			return errIsLeft(dir, "there are "+part[1]+" and no index")
		}
	}
	return nil
}

// errIsLeft says that there is something of a database that Open does not open.
func errIsLeft(dir, what string) error {
	return fmt.Errorf("%w: %s: \"zarrdb fsck --salvage %s\" restores what can be restored", ErrExists, what, dir)
}

// writeFormat writes the format file, which is not there. After an error it is not there either: the next
// creation goes on with the directory.
func writeFormat(fs index.FS, dir string) error {
	err := errors.Join(index.ReplaceSmall(fs, dir, FormatFile, []byte(formatText)), index.SyncDir(fs, fs.PathDir(dir)))
	if err != nil {
		_ = fs.Remove(fs.PathJoin(dir, FormatFile))
	}
	return err
}
