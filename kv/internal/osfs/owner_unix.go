//go:build !windows

package osfs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// ownerFS is for root at work in a directory of another user: what it makes belongs to
// the owner of the directory, who could not use the database otherwise.
type ownerFS struct{ vfs.FS }

func forRoot(fs vfs.FS) vfs.FS {
	if os.Geteuid() != 0 {
		return fs
	}
	return ownerFS{fs}
}

// Unwrap lets [vfs.Root] find the file system of the operating system.
func (f ownerFS) Unwrap() vfs.FS { return f.FS }

func (f ownerFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	if err == nil {
		Give(file.Fd(), name)
	}
	return file, err
}

func (f ownerFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.OpenReadWrite(name, c, o...)
	if err == nil {
		Give(file.Fd(), name)
	}
	return file, err
}

func (f ownerFS) MkdirAll(dir string, perm os.FileMode) error {
	var made []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Lstat(d); !errors.Is(err, os.ErrNotExist) {
			break
		}
		made = append(made, d)
	}
	err := f.FS.MkdirAll(dir, perm)
	for _, d := range slices.Backward(made) {
		giveDir(d)
	}
	return err
}

func giveDir(dir string) {
	if fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
		Give(uintptr(fd), dir)
		_ = unix.Close(fd)
	}
}

// holder is the file that tells others by its owner which user serves a database.
const holder = "HOLDER"

// Give makes a file that this process has just made, and has open, one of the owner of
// its directory. Only root can. A file of root that has contents, or that a link leads to,
// was not made here, and stays root's.
func Give(fd uintptr, name string) {
	var dir, file, named unix.Stat_t
	if os.Geteuid() != 0 || filepath.Base(name) == holder || unix.Stat(filepath.Dir(name), &dir) != nil || dir.Uid == 0 ||
		unix.Fstat(int(fd), &file) != nil || unix.Lstat(name, &named) != nil {
		return
	}
	fresh := file.Mode&unix.S_IFMT == unix.S_IFDIR || file.Nlink == 1 && file.Size == 0
	if fresh && file.Uid == 0 && file.Dev == named.Dev && file.Ino == named.Ino {
		_ = unix.Fchown(int(fd), int(dir.Uid), int(dir.Gid))
	}
}
