package dirkv

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/zarrdb/zarrdb/kv/internal/temp"
)

// fsys is the file system operations of writing. Paths are relative to the base
// directory. Tests inject failures.
type fsys interface {
	// writeFile makes a new file and calls fill to write it; with sync it is
	// synced.
	writeFile(rel string, sync bool, fill func(io.Writer) error) error
	// rename replaces newRel if it is a file.
	rename(oldRel, newRel string) error
	// remove removes a file or link, or an empty directory.
	remove(rel string) error
	// rmdir removes an empty directory and nothing else.
	rmdir(rel string) error
	// removeAll removes a directory with its contents.
	removeAll(rel string) error
	mkdir(rel string) error
	// mkdirs makes directories, one in another, in a directory that exists. Directories
	// that exist already are fine.
	mkdirs(rel string, names []string, sync bool) error
	// syncDir makes the names in a directory durable; "." is the base.
	syncDir(rel string) error
	// tryLock takes the lock of a file of the base directory; errLocked if another has it.
	tryLock(rel string) (unlock func(), err error)
	lstat(rel string) (fs.FileInfo, error)
	stat(rel string) (fs.FileInfo, error)
}

// rootFS is the real one. os.Root refuses paths that lead out.
type rootFS struct {
	root *os.Root
	dir  string
}

// openRoot opens a directory such that other programs may rename or remove it meanwhile.
// Windows allows that for a handle that was opened through another handle.
func openRoot(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil || runtime.GOOS != "windows" {
		return root, err
	}
	defer root.Close()
	return root.OpenRoot(".")
}

func (r rootFS) writeFile(rel string, sync bool, fill func(io.Writer) error) error {
	f, err := r.root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil && sync {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

func (r rootFS) rename(oldRel, newRel string) error    { return r.root.Rename(oldRel, newRel) }
func (r rootFS) remove(rel string) error               { return r.root.Remove(rel) }
func (r rootFS) removeAll(rel string) error            { return r.root.RemoveAll(rel) }
func (r rootFS) mkdir(rel string) error                { return r.root.Mkdir(rel, 0o777) }
func (r rootFS) lstat(rel string) (fs.FileInfo, error) { return r.root.Lstat(rel) }
func (r rootFS) stat(rel string) (fs.FileInfo, error)  { return r.root.Stat(rel) }

// mkdirs descends once: separate calls would each resolve the path from the
// base, in quadratic time for a long path.
func (r rootFS) mkdirs(rel string, names []string, sync bool) error {
	at, err := r.root.OpenRoot(rel)
	for _, name := range names {
		if err != nil {
			return err
		}
		if err = at.Mkdir(name, 0o777); err == nil && sync {
			err = rootFS{root: at}.syncDir(".")
		}
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		below := at
		if err == nil {
			below, err = at.OpenRoot(name)
		}
		at.Close()
		at = below
	}
	if err == nil {
		err = at.Close()
	}
	return err
}

// rmdir must not be remove: between two calls an empty directory may have become
// a key of another writer. os.Root has no call that removes only directories.
// The path was just resolved below the base; at worst an empty directory
// elsewhere is removed.
func (r rootFS) rmdir(rel string) error { return syscall.Rmdir(filepath.Join(r.dir, rel)) }

func (r rootFS) syncDir(rel string) error {
	f, err := r.root.Open(rel)
	if err != nil {
		return err
	}
	err = temp.SyncDir(f)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
