package index

import (
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

// FS is the file system interface that a whole database lives on, so that
// packages which are not to know Pebble can pass one through.
type FS = vfs.FS

// DefaultFS is the operating system's.
var DefaultFS = osfs.FS

// MemFS returns an empty file system in memory.
func MemFS() FS { return vfs.NewMem() }

// MakeTop makes the directory of a database. The umask decides its rights. Files and directories below it get the
// same rights. It is not an error if the directory exists.
func MakeTop(fs FS, dir string) error { return osfs.MkdirTop(fs, dir) }

// WriteCategory is the category of files outside the index.
const WriteCategory = vfs.WriteCategoryUnspecified

// LinkOrCopy makes to a second name of the file from, or a synced copy where
// the file system has no links.
func LinkOrCopy(fs FS, from, to string) error { return vfs.LinkOrCopy(linkFS{fs}, from, to) }

// linkFS is a file system without permission errors of Link: FAT and exFAT answer
// EPERM because they have no links, and [vfs.LinkOrCopy] copies after other errors only.
type linkFS struct{ vfs.FS }

func (fs linkFS) Link(oldname, newname string) error {
	err := fs.FS.Link(oldname, newname)
	if errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("link %s: %w", newname, errors.ErrUnsupported)
	}
	return err
}

// FileKey tells files apart: device and number. Zero is an unknown file.
type FileKey struct{ Device, Number uint64 }

// OnDisk returns which file this is, and the bytes of its blocks on disk; its size where
// the system tells no blocks.
func OnDisk(fi os.FileInfo) (FileKey, int64) {
	device, number, bytes := osfs.OnDisk(fi)
	return FileKey{device, number}, bytes
}

// Clone makes a second index of one that is not open, such as a checkpoint.
// Tables, which never change, are linked where that is possible, all else is
// copied. to must not exist. It is complete and durable if the error is nil.
func Clone(fs FS, from, to string) error {
	err := error(os.ErrExist)
	if _, there := fs.Stat(to); errors.Is(there, os.ErrNotExist) {
		if err = clone(fs, from, to); err != nil {
			err = errors.Join(err, fs.RemoveAll(to))
		}
	}
	if err != nil {
		return fmt.Errorf("index: clone %s to %s: %w", from, to, err)
	}
	return nil
}

func clone(fs FS, from, to string) error {
	if _, err := checkFormat(fs, from); err != nil {
		return err
	}
	if err := fs.MkdirAll(to, 0o755); err != nil {
		return err
	}
	names, err := fs.List(from)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := fs.PathJoin(from, name)
		fi, err := fs.Stat(path)
		switch {
		case err != nil:
			return err
		case fi.IsDir(), name == lockFile, name == holderFile, name == reserveFile, name == formatFile:
			continue
		case isTable(name):
			err = LinkOrCopy(fs, path, fs.PathJoin(to, name))
		default:
			err = vfs.Copy(fs, path, fs.PathJoin(to, name))
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(writeFormat(fs, to), SyncDir(fs, fs.PathDir(to)))
}
