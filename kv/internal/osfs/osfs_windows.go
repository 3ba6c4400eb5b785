// Package osfs is the file system of the operating system, for stores that remove and
// replace files which they or others have open.
package osfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/windows"
)

// FS is the file system of the operating system. A file that was opened by it can be
// removed and replaced: its name is free at once, and open files read the old bytes.
// Only NTFS and ReFS do this. Elsewhere, as on FAT and on network drives, the name of
// a removed file goes with the last handle, and Rename to the name of an open file
// fails.
var FS vfs.FS = shared{vfs.Default}

// InUse reports whether a file was not removed or replaced because it is open.
func InUse(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
}

// Links returns the number of names of a file, 1 if unknown.
func Links(f vfs.File) uint64 {
	var info windows.ByHandleFileInformation
	if fd := f.Fd(); fd == vfs.InvalidFd || windows.GetFileInformationByHandle(windows.Handle(fd), &info) != nil {
		return 1
	}
	return uint64(info.NumberOfLinks)
}

// shared opens, removes and renames by [os.Root]. That shares files for deletion, and
// removes and renames by the rules of POSIX. [os.OpenFile] and [os.Rename] do neither.
type shared struct{ vfs.FS }

// Unwrap lets [vfs.Root] find the file system of the operating system.
func (s shared) Unwrap() vfs.FS { return s.FS }

// at calls do with the directory and the last element of a path.
func at(name string, do func(dir *os.Root, base string) error) error {
	dir, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	err = do(dir, filepath.Base(name))
	if bad, ok := errors.AsType[*fs.PathError](err); ok {
		bad.Path = name
	}
	return err
}

func open(name string, flag int, opts ...vfs.OpenOption) (vfs.File, error) {
	var f file
	err := at(name, func(dir *os.Root, base string) (err error) {
		f.File, err = dir.OpenFile(base, flag, 0o666)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, o := range opts {
		o.Apply(f)
	}
	return f, nil
}

func (s shared) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	for {
		f, err := open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
		// Not truncated: it may have other names.
		if err := s.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

func (shared) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return open(name, os.O_RDONLY, opts...)
}

func (shared) OpenReadWrite(name string, _ vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return open(name, os.O_RDWR|os.O_CREATE, opts...)
}

func (s shared) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := s.Rename(from, to); err != nil {
		return nil, err
	}
	return s.OpenReadWrite(to, c)
}

func (shared) Remove(name string) error {
	return at(name, func(dir *os.Root, base string) error { return dir.Remove(base) })
}

func (s shared) Rename(from, to string) error {
	if filepath.Dir(from) != filepath.Dir(to) {
		return s.FS.Rename(from, to)
	}
	err := at(from, func(dir *os.Root, base string) error { return dir.Rename(base, filepath.Base(to)) })
	if bad, ok := errors.AsType[*os.LinkError](err); ok {
		bad.Old, bad.New = from, to
	}
	return err
}

// file is an [os.File] with the methods that Pebble wants.
type file struct{ *os.File }

func (file) Prefetch(int64, int64) error    { return nil }
func (file) Preallocate(int64, int64) error { return nil }
func (f file) SyncData() error              { return f.Sync() }

func (f file) SyncTo(int64) (fullSync bool, err error) {
	err = f.Sync()
	return err == nil, err
}

func (f file) Stat() (vfs.FileInfo, error) {
	fi, err := f.File.Stat()
	if err != nil {
		return nil, err
	}
	return fileInfo{fi}, nil
}

type fileInfo struct{ os.FileInfo }

// DeviceID is unknown.
func (fileInfo) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }

// OnDisk returns the size of a file. Its number and its blocks are not known.
func OnDisk(fi os.FileInfo) (device, number uint64, bytes int64) { return 0, 0, fi.Size() }

// giveDir does nothing: a file has the owner that its directory says.
func giveDir(string) {}

// MkdirTop makes the directory of a database.
func MkdirTop(files vfs.FS, dir string) error { return files.MkdirAll(dir, 0o777) }
