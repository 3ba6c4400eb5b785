package dirkv

import (
	"cmp"
	"io"
	"io/fs"
	"os"
)

// info distinguishes a file from others and from its earlier versions. Two
// values of equal size, written to one inode within one tick of the file
// system's clock, are not distinguished.
type info struct {
	size     int64
	modified int64 // nanoseconds
	changed  int64 // of the inode, if the system provides it
	links    uint64
	dev, ino uint64
	fi       fs.FileInfo // if dev and ino are unknown
}

// same compares what changes with the bytes of a file. A hard link that was made or removed
// changes the inode and no byte.
func (a info) same(b info) bool {
	if a.size != b.size || a.modified != b.modified || a.dev != b.dev || a.ino != b.ino {
		return false
	}
	if a.changed != b.changed && a.links == b.links {
		return false
	}
	return a.fi == nil || b.fi == nil || os.SameFile(a.fi, b.fi)
}

// sameFile compares only what identifies a file or directory.
func (a info) sameFile(b info) bool {
	if a.fi != nil && b.fi != nil {
		return os.SameFile(a.fi, b.fi)
	}
	return a.dev == b.dev && a.ino == b.ino
}

func fromFileInfo(fi fs.FileInfo) info {
	return info{size: fi.Size(), modified: fi.ModTime().UnixNano(), fi: fi}
}

// openFile is a file that was opened for reading.
type openFile interface {
	io.ReaderAt
	io.Closer
}

// rootSource reads through os.Root, which resolves paths name by name in user
// space.
type rootSource struct {
	root *os.Root
}

func (s rootSource) open(rel string) (openFile, info, error) {
	f, in, err := s.openAs(rel, fs.FileMode.IsRegular)
	if err != nil {
		return nil, info{}, err
	}
	return f, in, nil
}

func (s rootSource) stat(rel string) (info, error) {
	fi, err := s.root.Stat(rel)
	if err != nil {
		return info{}, err
	}
	if !fi.Mode().IsRegular() {
		return info{}, errNotAFile
	}
	return fromFileInfo(fi), nil
}

// openDir opens a directory for listing; "" is the base.
func (s rootSource) openDir(rel string) (*os.File, info, error) {
	return s.openAs(cmp.Or(rel, "."), fs.FileMode.IsDir)
}

// openAs opens what is of a kind; the error of anything else is errNotAFile.
func (s rootSource) openAs(rel string, is func(fs.FileMode) bool) (*os.File, info, error) {
	f, err := s.root.OpenFile(rel, os.O_RDONLY|nonBlock, 0)
	if err != nil {
		return nil, info{}, err
	}
	fi, err := f.Stat()
	if err == nil && !is(fi.Mode()) {
		err = errNotAFile
	}
	if err != nil {
		f.Close()
		return nil, info{}, err
	}
	return f, fromFileInfo(fi), nil
}

func (s rootSource) close() error { return s.root.Close() }
