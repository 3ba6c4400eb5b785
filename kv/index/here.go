package index

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrMoved is matched by every [MovedError].
var ErrMoved = errors.New("index: moved")

// MovedError means that the directory of an open index was moved, removed or replaced.
// The index accepts no more writes, and changes nothing under the old path. It is
// [ErrMoved] and [ErrFailed].
type MovedError struct {
	// Dir is the path at which the index was opened.
	Dir string
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("index: %s was moved, removed or replaced while it was open; close it, and open it at its new path", e.Dir)
}

// Is reports that a MovedError is [ErrMoved] and [ErrFailed].
func (e *MovedError) Is(target error) bool { return target == ErrMoved || target == ErrFailed }

// fileID is the identity of a file on this machine: no two files that exist have the
// same one. The zero value means unknown.
type fileID struct{ dev, ino uint64 }

// LockFile returns the identity of the lock file in dir on this machine, or "" if it is
// unknown. Existing directories have different identities. A moved directory keeps its
// identity, a copy gets another. The file is not opened: closing any descriptor of it
// would release a lock that this process holds.
func LockFile(dir string) string {
	id, _ := identify(dir + string(os.PathSeparator) + lockFile)
	return id.String()
}

func (id fileID) String() string {
	if id == (fileID{}) {
		return ""
	}
	return fmt.Sprintf("%d:%d", id.dev, id.ino)
}

// LockFile is [LockFile] of the file that this process has locked.
func (x *Index) LockFile() string { return x.guard.lock.String() }

// Here returns nil while the directory of the index is at the path at which it was
// opened, else a [MovedError], now and in all later calls. The cost is that of two stats.
func (x *Index) Here() error { return x.guard.here() }

// PartOf names a file that exists as long as the database. If it is missing, the directory is being
// removed, and the index fails.
func (x *Index) PartOf(file string) {
	g := x.guard
	if dir, err := canonical(g.FS, g.FS.PathDir(file)); err == nil { // the process may change its directory
		file = g.FS.PathJoin(dir, g.FS.PathBase(file))
		g.whole.Store(&file)
	}
}

// here compares the lock file at the path with the locked file. The locked file
// is open, so that no other file gets its identity meanwhile. If the two differ, or if the file
// of [Index.PartOf] is missing, the index fails: see [guardFS]. An error of the file system other than a missing file
// proves nothing.
func (g *guardFS) here() error {
	if err := g.err(); errors.Is(err, ErrMoved) {
		return err
	}
	going := false
	if file := g.whole.Load(); file != nil {
		_, err := g.FS.Stat(*file)
		going = errors.Is(err, fs.ErrNotExist)
	}
	if !going && (g.lock == (fileID{}) || isAt(g.FS.PathJoin(g.dir, lockFile), g.lock.String())) {
		return nil
	}
	moved := &MovedError{Dir: g.dir}
	g.fail("find", g.dir, moved)
	return moved
}

// isAt reports whether a path leads to the file with an identity, as far as that is known.
func isAt(path, file string) bool {
	id, err := identify(path)
	return id.String() == file || err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.ESTALE)
}

// HereOf is [Index.Here] for the index in dir whose lock file has an identity; see [LockFile]. It is nil
// for "".
func HereOf(dir, file string) error {
	if file == "" || isAt(dir+string(os.PathSeparator)+lockFile, file) {
		return nil
	}
	return &MovedError{Dir: dir}
}

// FS returns the file system of the index for other files of the same database. It makes,
// renames and removes no file after the directory was moved: another database may be at
// the path by then.
func (x *Index) FS() FS { return x.fs }

type hereFS struct {
	vfs.FS
	g *guardFS
}

func (f hereFS) Unwrap() vfs.FS { return f.FS }

// ifHere calls op if the directory is where it was opened.
func ifHere[T any](f hereFS, op func() (T, error)) (out T, err error) {
	if err := f.g.here(); err != nil {
		return out, err
	}
	return op()
}

func (f hereFS) do(op func() error) error {
	_, err := ifHere(f, func() (none struct{}, err error) { return none, op() })
	return err
}

func (f hereFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return ifHere(f, func() (vfs.File, error) { return f.FS.Create(name, c) })
}

func (f hereFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return ifHere(f, func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, o...) })
}

func (f hereFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return ifHere(f, func() (vfs.File, error) { return f.FS.ReuseForWrite(from, to, c) })
}

func (f hereFS) Link(from, to string) error {
	return f.do(func() error { return f.FS.Link(from, to) })
}

func (f hereFS) Rename(from, to string) error {
	return f.do(func() error { return f.FS.Rename(from, to) })
}

func (f hereFS) MkdirAll(dir string, perm os.FileMode) error {
	return f.do(func() error { return f.g.mkdirAll(dir, perm) })
}

func (f hereFS) Remove(name string) error { return f.do(func() error { return f.FS.Remove(name) }) }

func (f hereFS) RemoveAll(name string) error {
	return f.do(func() error { return f.FS.RemoveAll(name) })
}
