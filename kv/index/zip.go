package index

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

// ZipFS is a zip file as a read-only directory. Files in it are stored, not
// compressed, so that any part can be read in place. It is safe for concurrent
// use.
//
//	ZipFS{"/x/b.zip"}.Open("/x/b.zip/index/CURRENT") ──▶ a range of /x/b.zip
type ZipFS struct {
	vfs.FS // of the zip file; nothing of it is written
	file   vfs.File
	info   vfs.FileInfo
	root   string
	files  map[string]*zip.File
}

// OpenZip opens the zip file called file. Its contents appear below that name.
func OpenZip(fs FS, file string) (*ZipFS, error) {
	f, err := fs.Open(file)
	if err != nil {
		return nil, err
	}
	z := &ZipFS{FS: fs, file: f, root: file, files: map[string]*zip.File{}}
	if err := z.load(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, errors.Join(err, f.Close()))
	}
	return z, nil
}

func (z *ZipFS) load() (err error) {
	if z.info, err = z.file.Stat(); err != nil {
		return err
	}
	// Offsets in the zip may be anything, negative ones too.
	r, err := zip.NewReader(io.NewSectionReader(z.file, 0, z.info.Size()), z.info.Size())
	if err != nil {
		return fmt.Errorf("%w: %w", kv.ErrCorrupt, err)
	}
	for _, e := range r.File {
		if strings.HasSuffix(e.Name, "/") {
			continue // a directory, which its files name too
		}
		switch {
		case !validZipName(e.Name) || z.files[e.Name] != nil:
			return fmt.Errorf("%w: it holds %q", kv.ErrCorrupt, e.Name)
		case e.Method != zip.Store || e.CompressedSize64 != e.UncompressedSize64:
			return fmt.Errorf("%q in it is compressed and cannot be read in place; unzip the file and use the directory: %w", e.Name, errors.ErrUnsupported)
		}
		z.files[e.Name] = e
	}
	return nil
}

// validZipName reports whether a name leads to one place below the zip file.
func validZipName(name string) bool {
	return name != "" && path.Clean("/"+name) == "/"+name && !strings.ContainsAny(name, `\:`)
}

// Names are the files in the zip, with / between their parts, in order.
func (z *ZipFS) Names() []string {
	var names []string
	for name := range z.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Verify compares the whole of a file in the zip with its checksum.
func (z *ZipFS) Verify(ctx context.Context, name string) error {
	e := z.files[name]
	if e == nil {
		return fmt.Errorf("%s: %s: %w", z.root, name, os.ErrNotExist)
	}
	r, err := z.section(e)
	sum, b := crc32.NewIEEE(), make([]byte, 256<<10)
	for err == nil {
		var n int
		if err = ctx.Err(); err == nil {
			n, err = r.Read(b)
		}
		sum.Write(b[:n])
	}
	if err == io.EOF && sum.Sum32() == e.CRC32 {
		return nil
	}
	if err == io.EOF {
		err = fmt.Errorf("%w: its checksum differs", kv.ErrCorrupt)
	}
	return fmt.Errorf("%s: %s: %w", z.root, name, err)
}

// section is where the bytes of a file are.
func (z *ZipFS) section(e *zip.File) (*io.SectionReader, error) {
	at, err := e.DataOffset()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", kv.ErrCorrupt, err)
	}
	size := int64(e.UncompressedSize64)
	if size < 0 || at > z.info.Size() || size > z.info.Size()-at {
		return nil, fmt.Errorf("%w: it ends behind the zip file", kv.ErrCorrupt)
	}
	return io.NewSectionReader(z.file, at, size), nil
}

// Close closes the zip file. Files in it cannot be read any more.
func (z *ZipFS) Close() error { return z.file.Close() }

// name is the name of a path within the zip.
func (z *ZipFS) name(op, path string) (string, error) {
	rest, ok := strings.CutPrefix(path, z.root)
	if !ok {
		return "", &os.PathError{Op: op, Path: path, Err: os.ErrNotExist}
	}
	rest = strings.ReplaceAll(rest, string(os.PathSeparator), "/")
	return strings.Trim(rest, "/"), nil
}

// below returns the direct entries of a directory.
func (z *ZipFS) below(dir string) (names []string) {
	if dir != "" {
		dir += "/"
	}
	for name := range z.files {
		if rest, ok := strings.CutPrefix(name, dir); ok {
			first, _, _ := strings.Cut(rest, "/")
			names = append(names, first)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Open implements vfs.FS.
func (z *ZipFS) Open(path string, _ ...vfs.OpenOption) (vfs.File, error) {
	name, err := z.name("open", path)
	if err != nil {
		return nil, err
	}
	e := z.files[name]
	if e == nil {
		return z.OpenDir(path)
	}
	r, err := z.section(e)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &zipFile{SectionReader: r, info: zipInfo{e.FileInfo(), z.info}}, nil
}

// OpenDir implements vfs.FS.
func (z *ZipFS) OpenDir(path string) (vfs.File, error) {
	info, err := z.Stat(path)
	if err != nil {
		return nil, err
	}
	return &zipFile{SectionReader: io.NewSectionReader(z.file, 0, 0), info: info}, nil
}

// Stat implements vfs.FS.
func (z *ZipFS) Stat(path string) (vfs.FileInfo, error) {
	name, err := z.name("stat", path)
	if err != nil {
		return nil, err
	}
	if e := z.files[name]; e != nil {
		return zipInfo{e.FileInfo(), z.info}, nil
	}
	if len(z.below(name)) == 0 {
		return nil, &os.PathError{Op: "stat", Path: path, Err: os.ErrNotExist}
	}
	dir := zip.FileHeader{Name: name + "/"}
	return zipInfo{dir.FileInfo(), z.info}, nil
}

// List implements vfs.FS. A directory that is not there is an empty one, since a
// zip of files has no other.
func (z *ZipFS) List(path string) ([]string, error) {
	name, err := z.name("list", path)
	if err != nil {
		return nil, err
	}
	return z.below(name), nil
}

func readOnly(op, path string) error {
	return &os.PathError{Op: op, Path: path, Err: syscall.EROFS}
}

// Create implements vfs.FS.
func (z *ZipFS) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, readOnly("create", name)
}

// Link implements vfs.FS.
func (z *ZipFS) Link(oldname, _ string) error { return readOnly("link", oldname) }

// OpenReadWrite implements vfs.FS.
func (z *ZipFS) OpenReadWrite(name string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	return nil, readOnly("open", name)
}

// Remove implements vfs.FS.
func (z *ZipFS) Remove(name string) error { return readOnly("remove", name) }

// RemoveAll implements vfs.FS.
func (z *ZipFS) RemoveAll(name string) error { return readOnly("remove", name) }

// Rename implements vfs.FS.
func (z *ZipFS) Rename(oldname, _ string) error { return readOnly("rename", oldname) }

// ReuseForWrite implements vfs.FS.
func (z *ZipFS) ReuseForWrite(oldname, _ string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, readOnly("rename", oldname)
}

// MkdirAll implements vfs.FS.
func (z *ZipFS) MkdirAll(dir string, _ os.FileMode) error { return readOnly("mkdir", dir) }

// Lock implements vfs.FS.
func (z *ZipFS) Lock(name string) (io.Closer, error) { return nil, readOnly("lock", name) }

// GetDiskUsage implements vfs.FS.
func (z *ZipFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{}, vfs.ErrUnsupported
}

// Unwrap implements vfs.FS. It returns nil: the zip file is no FS.
func (z *ZipFS) Unwrap() vfs.FS { return nil }

// zipFile is a file in a zip, or a directory, which has no bytes.
type zipFile struct {
	*io.SectionReader
	info vfs.FileInfo
}

func (f *zipFile) Close() error                          { return nil }
func (f *zipFile) Write([]byte) (int, error)             { return 0, readOnly("write", f.info.Name()) }
func (f *zipFile) WriteAt([]byte, int64) (int, error)    { return 0, readOnly("write", f.info.Name()) }
func (f *zipFile) Preallocate(int64, int64) error        { return readOnly("write", f.info.Name()) }
func (f *zipFile) Stat() (vfs.FileInfo, error)           { return f.info, nil }
func (f *zipFile) Sync() error                           { return nil }
func (f *zipFile) SyncTo(int64) (fullSync bool, _ error) { return true, nil }
func (f *zipFile) SyncData() error                       { return nil }
func (f *zipFile) Prefetch(int64, int64) error           { return nil }
func (f *zipFile) Fd() uintptr                           { return vfs.InvalidFd }

// zipInfo describes a file in a zip, on the device of that.
type zipInfo struct {
	os.FileInfo
	zip vfs.FileInfo
}

func (i zipInfo) DeviceID() vfs.DeviceID { return i.zip.DeviceID() }

var _ vfs.FS = (*ZipFS)(nil)
