package care

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/zarrdb/zarrdb/kv/index"
)

// quarantineDir keeps what was found to be damaged. Nothing in it is read or
// removed by this program.
const quarantineDir = "quarantine"

// Aside returns the quarantine of a database, "" if nothing is in it.
func Aside(fs index.FS, dir string) string {
	dir = fs.PathJoin(dir, quarantineDir)
	if names, err := fs.List(dir); err != nil || len(names) == 0 {
		return ""
	}
	return dir
}

// Quarantined returns a new name in the quarantine of a database.
func Quarantined(fs index.FS, dir, what string, now time.Time) (string, error) {
	parent := fs.PathJoin(dir, quarantineDir)
	if err := index.MakeDir(fs, parent); err != nil {
		return "", err
	}
	name := fs.PathJoin(parent, what+"-"+now.UTC().Format("20060102T150405Z"))
	path := name
	for i := 2; there(fs, path); i++ {
		path = fmt.Sprintf("%s.%d", name, i)
	}
	return path, nil
}

// Move renames a file or directory. A directory that an overlay has from a lower layer cannot be
// renamed: it is copied under another name, renamed when the copy is complete, and removed then.
func Move(fs index.FS, from, to string) error {
	err := fs.Rename(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	fresh := to + ".tmp"
	if err := errors.Join(fs.RemoveAll(fresh), copyTree(fs, from, fresh)); err != nil {
		return err
	}
	if err := errors.Join(fs.Rename(fresh, to), index.SyncDir(fs, fs.PathDir(to))); err != nil {
		return err
	}
	return fs.RemoveAll(from)
}

// copyTree copies a file, or a directory with all in it, durably but for its own name.
func copyTree(fs index.FS, from, to string) error {
	fi, err := fs.Stat(from)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return index.LinkOrCopy(fs, from, to)
	}
	if err := fs.MkdirAll(to, 0o777); err != nil {
		return err
	}
	names, err := fs.List(from)
	for _, name := range names {
		if err == nil {
			err = copyTree(fs, fs.PathJoin(from, name), fs.PathJoin(to, name))
		}
	}
	return errors.Join(err, index.SyncDir(fs, to))
}

// SetAside moves a file or directory of a database into its quarantine, durably, and
// returns where it is now.
func SetAside(fs index.FS, dir, path string, now time.Time) (string, error) {
	kept, err := Quarantined(fs, dir, fs.PathBase(path), now)
	if err == nil {
		err = Move(fs, path, kept)
	}
	if err != nil {
		return "", err
	}
	return kept, errors.Join(index.SyncDir(fs, fs.PathDir(kept)), index.SyncDir(fs, fs.PathDir(path)))
}

func there(fs index.FS, path string) bool {
	_, err := fs.Stat(path)
	return err == nil
}
