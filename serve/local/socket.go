package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// Listener is the socket of a database.
type Listener struct {
	*net.UnixListener
	// Dir is the directory of the database.
	Dir string
	// Readers means that other users may connect, to read.
	Readers bool

	mode fs.FileMode // of the socket
	gid  int
	file fs.FileInfo // of the socket; nil if unknown
}

// Listen makes the socket of the database in dir. Only the process that has the
// database open may do so: a socket that is there is one that a process left when
// it was killed. Close it before the database.
func Listen(dir string) (*Listener, error) {
	at, err := place(dir)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", dir, err)
	}
	return at.listen()
}

// at is where a process serves a database.
type at struct {
	dir, path string
	mode      fs.FileMode
	gid       int
}

// place returns the socket for serving the database in dir, which may not exist
// yet: then it is served to this user alone.
func place(dir string) (at, error) {
	a := at{mode: 0o600}
	var err error
	if a.dir, err = canonical(dir); err == nil {
		a.mode, a.gid = audience(a.dir)
	} else if errors.Is(err, fs.ErrNotExist) {
		a.dir, err = filepath.Abs(dir)
	}
	if err == nil {
		a.path, err = ownSocket(a.dir, a.mode)
	}
	return a, err
}

func (a at) listen() (*Listener, error) {
	l, err := listen(a.path, a.mode, a.gid)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", a.dir, err)
	}
	file, _ := os.Lstat(a.path)
	return &Listener{UnixListener: l, Dir: a.dir, Readers: a.mode&0o066 != 0, mode: a.mode, gid: a.gid, file: file}, nil
}

// listen makes a socket under a name of its own, gives it its mode, and puts it in
// the place of the one that is there.
func listen(path string, mode fs.FileMode, gid int) (*net.UnixListener, error) {
	fresh := path + "." + strconv.Itoa(os.Getpid())
	_ = os.Remove(fresh)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
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

// Path is where the socket is.
func (l *Listener) Path() string { return socketIn(filepath.Dir(l.Addr().String()), l.Dir) }

// inPlace reports whether the socket has not been removed or replaced.
func (l *Listener) inPlace() bool {
	now, gone := os.Lstat(l.Path())
	return l.file == nil || gone == nil && os.SameFile(now, l.file) && now.ModTime().Equal(l.file.ModTime())
}

// renew makes the socket again.
func (l *Listener) renew() (*Listener, error) {
	path, err := ownSocket(l.Dir, l.mode)
	if err != nil {
		return nil, err
	}
	return at{l.Dir, path, l.mode, l.gid}.listen()
}

// Close removes the socket, unless the one of another process is in its place, which has
// a database at the same path. Connections go on.
func (l *Listener) Close() error {
	var err error
	if l.inPlace() {
		err = os.Remove(l.Path())
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.UnixListener.Close())
}

// Sockets are the places where a process may serve the database in dir, the more
// likely first: a socket of this user, or of the user of that process. Folders of
// other users are left out: a server there is not trusted.
func Sockets(dir string) ([]string, error) {
	dir, err := canonical(dir)
	if err != nil {
		return nil, err
	}
	var list []string
	add := func(folder string, user int) {
		if uid, ok := ownerOf(folder); !ok || uid == user {
			list = append(list, socketIn(folder, dir))
		}
	}
	for _, folder := range append(privateFolders(), sharedFolder(os.Getuid())) {
		add(folder, os.Getuid())
	}
	if uid, ok := ownerOf(filepath.Join(dir, "index", "HOLDER")); ok && uid != os.Getuid() {
		add(sharedFolder(uid), uid)
	}
	return list, nil
}

// canonical names a directory in one way.
func canonical(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	return abs, err
}

// socketIn is the name of the socket of a database in a folder. It is short, as
// paths of sockets must have less than about 100 bytes.
func socketIn(folder, dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(folder, hex.EncodeToString(sum[:10]))
}

// privateFolders are folders that other users cannot reach.
func privateFolders() []string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && len(dir) <= longestFolder {
		return []string{filepath.Join(dir, "zarrdb")}
	}
	return nil
}

// longestFolder is the length in bytes up to which a path leaves room for the names of a socket:
// all in all, systems allow about 100 bytes.
const longestFolder = 56

// sharedFolder is where the sockets are that other users find too.
func sharedFolder(uid int) string {
	dir := os.TempDir()
	if len(dir) > longestFolder && runtime.GOOS != "windows" {
		dir = "/tmp"
	}
	return filepath.Join(dir, "zarrdb-"+strconv.Itoa(uid))
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
	if uid, ok := ownerOf(folder); !fi.IsDir() || ok && uid != os.Getuid() || fi.Mode().Perm()&0o022 != 0 && ok {
		return "", fmt.Errorf("%s is not a directory that this user alone may change; remove it", folder)
	}
	if fi.Mode().Perm()|perm != fi.Mode().Perm() {
		if err := os.Chmod(folder, fi.Mode().Perm()|perm); err != nil {
			return "", err
		}
	}
	return socketIn(folder, dir), nil
}
