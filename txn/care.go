package txn

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/index"
)

// Damage is cared for in three steps, whether the index opens or not:
//
//	              check                heal                              report
//	[DB.Repair]   this database        pages and commits ◀─ checkpoints   RepairReport, quarantine/repair-TIME
//	[Salvage]     index, checkpoints   index ◀─ the best of them,         SalvageReport
//	                                   newer payloads ─▶ lost+found
//
// docs/design/salvage.md has the rules.

var (
	// ErrIndexLost matches every [IndexLostError].
	ErrIndexLost = errors.New("txn: the index is lost or damaged")

	// ErrSound means that there is nothing to salvage: the index opens and a
	// check finds nothing.
	ErrSound = errors.New("txn: the index is sound, there is nothing to salvage")
)

// IndexLostError says that a directory is a database whose index cannot be
// opened. It is [ErrIndexLost] and kv.ErrCorrupt.
type IndexLostError struct {
	Dir string
	Err error
}

// Error implements error; it names the command that helps.
func (e *IndexLostError) Error() string {
	return fmt.Sprintf("%v (%v): \"zarrdb fsck --salvage %s\" restores what can be restored", ErrIndexLost, e.Err, e.Dir)
}

// Is implements the matching that [errors.Is] does.
func (e *IndexLostError) Is(target error) bool {
	return target == ErrIndexLost || fault.Matches(kv.ErrCorrupt, target)
}

// Unwrap returns why the index cannot be opened.
func (e *IndexLostError) Unwrap() error { return e.Err }

// indexIsLost reports whether an error of opening is about what is there, not
// about a lock, a right or a disk.
func indexIsLost(err error) bool {
	return errors.Is(err, kv.ErrCorrupt) || errors.Is(err, index.ErrNotExist) ||
		errors.Is(err, index.ErrNotFound) || errors.Is(err, os.ErrNotExist)
}

// quarantineDir keeps what was found to be damaged. Nothing in it is read or
// removed by this program.
const quarantineDir = "quarantine"

// quarantined returns a new name in the quarantine of a database.
func quarantined(fs index.FS, dir, what string, now time.Time) (string, error) {
	parent := fs.PathJoin(dir, quarantineDir)
	if err := index.MakeDir(fs, parent); err != nil {
		return "", err
	}
	name := fs.PathJoin(parent, what+"-"+now.UTC().Format("20060102T150405Z"))
	path := name
	for i := 2; exists(fs, path); i++ {
		path = fmt.Sprintf("%s.%d", name, i)
	}
	return path, nil
}

// move renames a file or directory. A directory that an overlay has from a lower layer cannot be
// renamed: it is copied under another name, renamed when the copy is complete, and removed then.
func move(fs index.FS, from, to string) error {
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

// setAside moves a file or directory of a database into its quarantine, durably, and
// returns where it is now.
func setAside(fs index.FS, dir, path string, now time.Time) (string, error) {
	kept, err := quarantined(fs, dir, fs.PathBase(path), now)
	if err == nil {
		err = move(fs, path, kept)
	}
	if err != nil {
		return "", err
	}
	return kept, errors.Join(index.SyncDir(fs, fs.PathDir(kept)), index.SyncDir(fs, fs.PathDir(path)))
}
