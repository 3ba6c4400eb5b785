package index

import (
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

// Remove closes the index and removes its files, and the directory if nothing is
// left in it: other files stay. No process can open the index meanwhile: the
// lock is given up last. What a crash leaves is a creation that was interrupted,
// which Open with Create takes up. A failure of the index (ErrFailed) does not
// matter.
//
// Like Close it waits for calls that are running, ends open snapshots, and may be
// called at any time; whichever of the two comes first counts. It returns
// kv.ErrClosed after that, kv.ErrReadOnly if the index was opened read-only, which
// leaves it open, and otherwise errors of the file system: the index is closed
// then, the lock given up, and some of the files may be gone.
func (x *Index) Remove() error {
	if x.ro {
		return kv.ErrReadOnly
	}
	if !x.use.close() {
		return kv.ErrClosed
	}
	_, _ = x.shut() // what could not be written is worth nothing any more
	if err := removeLocked(x.fs, x.dir, x.lock); err != nil {
		return fmt.Errorf("index: remove %s: %w", x.dir, err)
	}
	return nil
}

// removeLocked removes the files of an index that is not open, and gives up the
// lock.
func removeLocked(fs vfs.FS, dir string, l *dirLock) error {
	err := removeFiles(fs, dir)
	if err == nil {
		// A process that opened this file meanwhile, and locks it when it is free,
		// finds no index beside it.
		err = fs.Remove(fs.PathJoin(dir, lockFile))
	}
	if err = errors.Join(err, l.Close()); err == nil {
		err = RemoveEmpty(fs, dir)
	}
	return err
}

// removeFiles removes all files of an index but the lock.
func removeFiles(fs vfs.FS, dir string) error {
	// One step makes what is there worth nothing, and takes no space on a disk
	// that may be full.
	creating := fs.PathJoin(dir, creatingFile)
	err := fs.Rename(fs.PathJoin(dir, formatFile), creating)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := SyncDir(fs, dir); err != nil {
		return err
	}
	if err := wipe(fs, dir); err != nil {
		return err
	}
	return removeIfThere(fs, creating)
}

// wipe removes what an interrupted creation or removal left.
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
	// Those of Pebble.
	`CURRENT|(?:CURRENT|temporary)\.\d+\.dbtmp|(?:MANIFEST|OPTIONS|REMOTE-OBJ-CATALOG)-\d+|` +
	`marker\.[a-z-]+\.\d+\..+|\d+\.(?:sst|blob)|\d+(?:-\d+)?\.log)$`)

// isOurs reports whether a file in the directory of an index is one of an index.
func isOurs(name string) bool { return ourNames.MatchString(name) }

// RemoveEmpty removes a directory unless it is gone or holds something, which is no
// error; errors are those of fs.
func RemoveEmpty(fs FS, dir string) error {
	err := fs.Remove(dir)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if names, lerr := fs.List(dir); lerr == nil && len(names) > 0 {
		return nil
	}
	return err
}

func removeIfThere(fs vfs.FS, path string) error {
	if err := fs.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
