package index

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

// Remove closes the index and removes it with its directory. rest, if not nil,
// removes what else belongs to it. Nobody can open the index meanwhile: the lock
// is given up last. What a crash leaves is a creation that was interrupted, which
// Open with Create takes up. A failure of the index (ErrFailed) does not matter.
func (x *Index) Remove(rest func() error) error {
	if x.ro {
		return kv.ErrReadOnly
	}
	if !x.use.close() {
		return kv.ErrClosed
	}
	_, _ = x.shut() // what could not be written is worth nothing any more
	if err := removeLocked(x.fs, x.dir, x.lock, rest); err != nil {
		return fmt.Errorf("index: remove %s: %w", x.dir, err)
	}
	return nil
}

// removeLocked removes the files of an index that is not open, calls rest, and
// gives up the lock.
func removeLocked(fs vfs.FS, dir string, l *dirLock, rest func() error) error {
	err := removeFiles(fs, dir)
	if err == nil && rest != nil {
		err = rest()
	}
	if err == nil {
		// Who opened this file meanwhile, and locks it when it is free, finds no
		// index beside it.
		err = fs.Remove(fs.PathJoin(dir, lockFile))
	}
	if err = errors.Join(err, l.Close()); err == nil {
		err = fs.Remove(dir)
	}
	return err
}

// removeFiles removes all files of an index but the lock.
func removeFiles(fs vfs.FS, dir string) error {
	// On a disk that is full there may be no room for this one: then a crash at
	// the wrong moment leaves a directory that has to be removed by hand.
	creating := fs.PathJoin(dir, creatingFile)
	_ = writeSmall(fs, creating, nil)
	if err := removeIfThere(fs, fs.PathJoin(dir, formatFile)); err != nil {
		return err
	}
	if err := syncDir(fs, dir); err != nil {
		return err
	}
	if err := wipe(fs, dir); err != nil {
		return err
	}
	return removeIfThere(fs, creating)
}
