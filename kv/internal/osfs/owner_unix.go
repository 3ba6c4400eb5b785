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

// ownFS gives new files and directories the rights of the directory in which they lie, whatever the
// umask of this process is, so that a group can share a database. Files that root makes in the
// directory of another user belong to that user, who could not use the database otherwise.
type ownFS struct{ vfs.FS }

func forRoot(fs vfs.FS) vfs.FS { return ownFS{fs} }

// Unwrap lets [vfs.Root] find the file system of the operating system.
func (f ownFS) Unwrap() vfs.FS { return f.FS }

func (f ownFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	if err == nil {
		Give(file.Fd(), name)
	}
	return file, err
}

func (f ownFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.OpenReadWrite(name, c, o...)
	if err == nil {
		Give(file.Fd(), name)
	}
	return file, err
}

func (f ownFS) MkdirAll(dir string, perm os.FileMode) error { return mkdirAll(dir, perm, giveDir) }

// mkdirAll makes a directory and its missing parents, and calls give for each that it made.
func mkdirAll(dir string, perm os.FileMode, give func(dir string)) error {
	var made []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Lstat(d); !errors.Is(err, os.ErrNotExist) {
			break
		}
		made = append(made, d)
	}
	err := os.MkdirAll(dir, perm)
	for _, d := range slices.Backward(made) {
		give(d)
	}
	return err
}

// MkdirTop makes the directory of a database. The umask decides its rights. Files and directories below it get the
// same rights.
func MkdirTop(files vfs.FS, dir string) error {
	if vfs.Root(files) != vfs.Default {
		return files.MkdirAll(dir, 0o777)
	}
	return mkdirAll(dir, 0o777, func(d string) { withDir(d, giveOwner) })
}

func giveDir(dir string) { withDir(dir, Give) }

func withDir(dir string, do func(fd uintptr, name string)) {
	if fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
		do(uintptr(fd), dir)
		_ = unix.Close(fd)
	}
}

// holder is the file whose owner is the user that serves a database.
const holder = "HOLDER"

// Give gives a file or directory that this process has just made, and has open, the rights and
// the group of its directory, and if this is root, the owner. Users outside the group get no right
// to write that the umask denies, as in a directory like /tmp. A file that has contents, or that a
// link leads to, is older, and stays as it is.
func Give(fd uintptr, name string) {
	giveOwner(fd, name)
	var dir, file unix.Stat_t
	if filepath.Base(name) == holder || unix.Stat(filepath.Dir(name), &dir) != nil || unix.Fstat(int(fd), &file) != nil {
		return
	}
	want := uint32(dir.Mode) & 0o777
	switch uint32(file.Mode) & unix.S_IFMT {
	case unix.S_IFDIR:
		want |= uint32(dir.Mode) & unix.S_ISGID
	case unix.S_IFREG:
		want &= 0o666
		if file.Size > 0 || file.Nlink != 1 {
			return // an older file
		}
	default:
		return
	}
	want &^= 0o002 &^ uint32(file.Mode)
	if euid := os.Geteuid(); int(file.Uid) != euid && euid != 0 {
		return
	}
	if file.Gid != dir.Gid && unix.Fchown(int(fd), -1, int(dir.Gid)) != nil {
		want = want&^0o070 | uint32(file.Mode)&0o070 // another group gets no more than the umask gave
	}
	if want != uint32(file.Mode)&(0o777|unix.S_ISGID) {
		_ = unix.Fchmod(int(fd), want)
	}
}

// giveOwner gives a file that root made in the directory of another user to that user.
func giveOwner(fd uintptr, name string) {
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
