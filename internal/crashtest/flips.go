package crashtest

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Flips changes a bit in the result of a read of a file.
type Flips struct {
	At   int64        // the read, counted from 0
	Seen atomic.Int64 // reads
	path atomic.Value // of the file
}

// Path returns the path of the file whose read was changed, or nil before a read was changed.
func (f *Flips) Path() any { return f.path.Load() }

// Wrap returns a file system with the files of fs.
func (f *Flips) Wrap(fs vfs.FS) vfs.FS { return flipFS{fs, f} }

type flipFS struct {
	vfs.FS
	f *Flips
}

func (s flipFS) Unwrap() vfs.FS { return s.FS }

func (s flipFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := s.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return flipFile{file, s.f, name}, nil
}

func (s flipFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := s.FS.OpenReadWrite(name, c, opts...)
	if err != nil {
		return nil, err
	}
	return flipFile{file, s.f, name}, nil
}

type flipFile struct {
	vfs.File
	f    *Flips
	path string
}

func (f flipFile) flip(p []byte) {
	if len(p) > 0 && f.f.Seen.Add(1)-1 == f.f.At {
		f.f.path.Store(f.path)
		p[len(p)/3] ^= 0x10
	}
}

func (f flipFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.flip(p[:n])
	return n, err
}

func (f flipFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.flip(p[:n])
	return n, err
}
