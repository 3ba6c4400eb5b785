package sockets

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
)

// Listener is the socket of a database.
type Listener struct {
	*net.UnixListener
	// Dir is the directory of the database.
	Dir string
	// Readers means that other users may connect, to read.
	Readers bool

	At   Address
	file fs.FileInfo // of the socket; nil if unknown
}

// Address is where a process serves a database.
type Address struct {
	Dir, Path string
	mode      fs.FileMode
	gid       int
}

// Place returns the socket for serving the database in dir. Only the process that has the
// database open may listen there: a process that was killed may have left a socket in the
// place, which is not in use any more. Close the listener before the database.
func Place(dir string) (Address, error) {
	a, err := clients(dir)
	if err == nil {
		a.Path, err = ownSocket(a.Dir, a.mode)
	}
	return a, err
}

// clients returns which users may connect to the database in dir, which may not exist
// yet: then it is served to this user alone.
func clients(dir string) (Address, error) {
	a := Address{mode: 0o600}
	var err error
	if a.Dir, err = canonical(dir); err == nil {
		a.mode, a.gid = audience(a.Dir)
	} else if errors.Is(err, fs.ErrNotExist) {
		a.Dir, err = filepath.Abs(dir)
	}
	return a, err
}

// InsideName is the name of the socket in the directory of the index.
const InsideName = "SOCKET"

// IsInside reports whether a socket is in the directory of its database.
func IsInside(socket string) bool { return filepath.Base(socket) == InsideName }

// Inside is the socket in the directory of a database, for processes that have other
// directories for temporary files. It is made when such a process knocks, or when the other
// socket has no place, and not always: many programs that copy directories stop at sockets.
func Inside(dir string) (Address, error) {
	a, err := clients(dir)
	a.Path = filepath.Join(a.Dir, "index", InsideName)
	return a, err
}

// Listen makes the socket, and its folder if that was removed.
func (a Address) Listen() (*Listener, error) {
	var err error
	if !IsInside(a.Path) {
		_, err = ownSocket(a.Dir, a.mode)
	}
	var l *net.UnixListener
	if err == nil {
		l, err = listen(a.Path, a.mode, a.gid)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", a.Dir, err)
	}
	file, _ := os.Lstat(a.Path)
	return &Listener{UnixListener: l, Dir: a.Dir, Readers: a.Readers(), At: a, file: file}, nil
}

func (a Address) Readers() bool { return a.mode&0o066 != 0 }

// listen makes a socket under a name of its own, gives it its mode, and puts it in
// the place of the one that is there. It replaces nothing else.
func listen(path string, mode fs.FileMode, gid int) (*net.UnixListener, error) {
	if fi, err := os.Lstat(path); err == nil && fi.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("%s is not a socket; remove it", path)
	}
	fresh := path + "." + strconv.Itoa(os.Getpid())
	_ = os.Remove(fresh)
	short, done := Short(fresh)
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if mode&0o060 != 0 {
		_ = os.Chown(fresh, -1, gid) // without effect if this user is not in the group
	}
	err = os.Chmod(fresh, mode)
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(fresh))
	}
	return l, nil
}

// Short returns a name of a socket that the system takes until done is called: paths of
// sockets must have less than about 100 bytes. Only Linux has such names.
func Short(path string) (short string, done func()) {
	if len(path) < 100 || runtime.GOOS != "linux" {
		return path, func() {}
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return path, func() {}
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { _ = dir.Close() }
}

// Path is where the socket is.
func (l *Listener) Path() string { return l.At.Path }

// InPlace reports whether the socket has not been removed or replaced.
func (l *Listener) InPlace() bool {
	now, gone := os.Lstat(l.Path())
	return l.file == nil || gone == nil && os.SameFile(now, l.file) && now.ModTime().Equal(l.file.ModTime())
}

// Close removes the socket, unless the one of another process is in its place, which has
// a database at the same path. Connections go on.
func (l *Listener) Close() error {
	var err error
	if l.InPlace() {
		err = os.Remove(l.Path())
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.UnixListener.Close())
}

// Of are the places where a process may serve the database in dir, the more
// likely first: a socket of this user, or of the user of that process. Folders of
// other users are left out: a server there is not trusted. The last place is the directory
// itself, which only users who may change the database can put a socket in.
func Of(dir string) ([]string, error) {
	dir, err := canonical(dir)
	if err != nil {
		return nil, err
	}
	var list []string
	add := func(folder string, user int) {
		if uid, ok := OwnerOf(folder); !ok || uid == user {
			list = append(list, socketIn(folder, dir))
		}
	}
	for _, folder := range append(privateFolders(), sharedFolder(os.Getuid())) {
		add(folder, os.Getuid())
	}
	holder := filepath.Join(dir, "index", "HOLDER")
	if uid, ok := OwnerOf(holder); ok {
		if uid != os.Getuid() {
			add(sharedFolder(uid), uid)
		}
		// The holder may have another directory for temporary files.
		var h struct{ Socket string }
		text, _ := os.ReadFile(holder)
		if json.Unmarshal(text, &h) == nil && h.Socket != "" && !IsInside(h.Socket) && !slices.Contains(list, h.Socket) {
			if owner, ok := OwnerOf(filepath.Dir(h.Socket)); ok && owner == uid {
				list = append(list, h.Socket)
			}
		}
	}
	in, err := Inside(dir)
	return append(list, in.Path), err
}

// canonical names a directory in one way.
func canonical(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	return abs, err
}

// socketIn is the name of the socket of a database in a folder.
func socketIn(folder, dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(folder, hex.EncodeToString(sum[:10]))
}

// privateFolders are folders that other users cannot reach.
func privateFolders() []string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return []string{filepath.Join(dir, "zarrdb")}
	}
	return nil
}

// sharedFolder is where the sockets are that other users find too.
func sharedFolder(uid int) string {
	return filepath.Join(os.TempDir(), "zarrdb-"+strconv.Itoa(uid))
}

// ownSocket is where this process makes the socket of a database, in a folder that
// other users cannot change.
func ownSocket(dir string, mode fs.FileMode) (string, error) {
	folder, perm := sharedFolder(os.Getuid()), fs.FileMode(0o700)
	if private := privateFolders(); mode&0o066 == 0 && len(private) > 0 {
		folder = private[0]
	}
	if mode&0o066 != 0 {
		perm = 0o711
	}
	if err := os.Mkdir(folder, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	fi, err := os.Lstat(folder)
	if err != nil {
		return "", err
	}
	if uid, ok := OwnerOf(folder); !fi.IsDir() || ok && uid != os.Getuid() || fi.Mode().Perm()&0o022 != 0 && ok {
		return "", fmt.Errorf("%s is not a directory that this user alone may change; remove it", folder)
	}
	if fi.Mode().Perm()|perm != fi.Mode().Perm() {
		if err := os.Chmod(folder, fi.Mode().Perm()|perm); err != nil {
			return "", err
		}
	}
	return socketIn(folder, dir), nil
}
