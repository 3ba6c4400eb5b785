package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Holder describes the process that has an index open. That process wrote the
// description itself; only the operating system's lock decides which process
// holds the index, so a description left by a crash blocks no other process.
type Holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Boot    string    `json:"boot,omitempty"` // of the machine, which containers share; "" if unknown
	Program string    `json:"program"`
	Since   time.Time `json:"since"`
	// Socket is the path at which the process serves its databases; "" means
	// that it does not.
	Socket string `json:"socket,omitempty"`
}

// Here reports whether the process runs on this machine, perhaps in another container.
func (h *Holder) Here() bool {
	if boot := bootID(); boot != "" && h.Boot != "" {
		return h.Boot == boot
	}
	host, _ := os.Hostname()
	return h.Host == host
}

// bootID identifies the running system on which this process is.
var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})

// LockedError means that the index is open in another process, or already in
// this one. It is [ErrLocked].
type LockedError struct {
	Dir string
	// Holder is zero if the holder did not get to describe itself. Of a reader
	// that may not write, Since is not known.
	Holder Holder
	// Own means that this process itself has the index open.
	Own bool
	// Reader means that the holder has no permission to write. It gives the lock up soon if
	// it was opened by package serve/local.
	Reader bool
}

func (e *LockedError) Error() string {
	h := e.Holder
	switch {
	case e.Own:
		return fmt.Sprintf("index: %s is open in this process (%d) already; share what is open, or close it first", e.Dir, os.Getpid())
	case h.PID == 0 && e.Reader:
		return fmt.Sprintf("index: %s is in use by a reader in another container", e.Dir)
	case h.PID == 0:
		return fmt.Sprintf("index: %s is in use by another process", e.Dir)
	case h.Since.IsZero():
		return fmt.Sprintf("index: %s is in use by %s (process %d on %s)", e.Dir, h.Program, h.PID, h.Host)
	}
	return fmt.Sprintf("index: %s is in use by %s (process %d on %s, since %s)",
		e.Dir, h.Program, h.PID, h.Host, h.Since.Format(time.RFC3339))
}

// Is reports that a LockedError is [ErrLocked].
func (e *LockedError) Is(target error) bool { return errors.Is(ErrLocked, target) }

// Knock asks the holder to let this process in: a reader gives up the lock, and a process that
// serves the index listens in its directory too. The knock lasts until this process has the lock,
// or a few seconds.
func (e *LockedError) Knock() { knock(e.Dir) }

const holderFile = "HOLDER"

// dirLock is the lock of a directory with the holder's description.
type dirLock struct {
	*pebble.Lock
	fs   vfs.FS
	path string // of the description, "" without one
	file fileID // of the locked file
}

// lock takes the lock of dir. The description is best effort: opening works on a
// full disk.
//
// A reader without write permission for the directory shares the lock with other
// such readers (see sharedFS) and leaves no description. So does one of a read-only mount,
// which other processes may write elsewhere. Where a read-only disk has no locks, none is
// needed.
func lock(fs vfs.FS, dir, program, socket string, readOnly bool) (*dirLock, error) {
	path := fs.PathJoin(dir, holderFile)
	shared.Lock()
	defer shared.Unlock()
	var l *pebble.Lock
	err := error(syscall.EAGAIN)
	_, reading := shared.locks[fs.PathJoin(dir, lockFile)]
	var file fileID
	if vfs.Root(fs) == vfs.Default {
		file = lockFileID(fs.PathJoin(dir, lockFile))
	}
	own := shared.own[file]
	if !reading && !own {
		l, err = pebble.LockDirectory(dir, fs)
	}
	if noLocks(err) {
		if !readOnly && os.Getenv(NoLockVariable) == "" {
			return nil, fmt.Errorf("index: lock %s: %w: %w; only reading is possible, unless %s=1 says that no other process uses the database", dir, err, ErrNoLocks, NoLockVariable)
		}
		l, err = pebble.LockDirectory(dir, unlockedFS{fs})
	}
	// A lock that is held gives a bare error number or a bare text; a failure to
	// create or open a file is a path error.
	var pe *os.PathError
	outside := errors.As(err, &pe)
	busy := err != nil && !outside && !own && file != (fileID{}) // perhaps by readers only
	if readOnly && (reading || busy || outside && (errors.Is(err, syscall.EROFS) || errors.Is(err, os.ErrPermission) || isFull(err))) {
		readOnlyDisk := outside && errors.Is(err, syscall.EROFS)
		l, err = pebble.LockDirectory(dir, sharedFS{fs})
		if readOnlyDisk && errors.As(err, &pe) {
			l, err = pebble.LockDirectory(dir, unlockedFS{fs})
		}
		if err == nil {
			endKnock(dir, nil)
			return &dirLock{Lock: l, fs: fs, file: file}, nil
		}
		outside = errors.As(err, &pe)
	}
	host, _ := os.Hostname()
	if outside {
		err = fmt.Errorf("index: lock %s: %w", dir, err)
		if !readOnly && (errors.Is(err, syscall.EROFS) || errors.Is(err, os.ErrPermission)) {
			err = fmt.Errorf("%w; without permission to write, it can be opened for reading only", err)
		}
		return nil, err
	}
	if err != nil {
		var no syscall.Errno
		locked := &LockedError{Dir: dir, Own: own || reading || !errors.As(err, &no)}
		pid := os.Getpid()
		if locked.Reader = reading; !locked.Own {
			pid, locked.Reader = sharedBy(fs, fs.PathJoin(dir, lockFile), err)
		}
		if locked.Reader {
			locked.Holder = Holder{PID: pid, Host: host, Boot: bootID(), Program: "a reader"}
			if !locked.Own && !readOnly && socket != "" {
				locked.Knock() // the readers go on through this process
			}
		} else if b, err := ReadSmall(fs, path); err == nil {
			_ = json.Unmarshal(b, &locked.Holder)
		}
		return nil, locked
	}
	if file != (fileID{}) {
		if now, _ := identify(fs.PathJoin(dir, lockFile)); now != file { // replaced at this moment
			return nil, errors.Join(&LockedError{Dir: dir}, l.Close())
		}
		shared.own[file] = true
	}
	endKnock(dir, nil)
	b, err := json.Marshal(Holder{
		PID: os.Getpid(), Host: host, Boot: bootID(), Program: program, Since: time.Now().UTC().Truncate(time.Second), Socket: socket,
	})
	if err == nil {
		if f, err := fs.Create(path, vfs.WriteCategoryUnspecified); err == nil {
			_, _ = f.Write(append(b, '\n'))
			_ = f.Close()
			describeToReaders(fs, dir, path)
		}
	}
	return &dirLock{Lock: l, fs: fs, path: path, file: file}, nil
}

// describeToReaders lets the users who may list the directory read the description in
// it, whatever the umask of this process is: it names the socket.
func describeToReaders(fs vfs.FS, dir, path string) {
	if vfs.Root(fs) != vfs.Default {
		return
	}
	if fi, err := os.Stat(dir); err == nil {
		_ = os.Chmod(path, 0o600|fi.Mode().Perm()&0o044)
	}
}

var _ io.Closer = (*dirLock)(nil)

// NoLockVariable is the environment variable that has an index opened for writing on a file
// system without locks, such as Lustre without flock. The user who sets it makes sure that no
// other process uses the database.
const NoLockVariable = "ZARRDB_NO_LOCK"

// noLocks reports whether a lock was not taken because the file system has none.
func noLocks(err error) bool {
	return errors.Is(err, syscall.ENOLCK) || errors.Is(err, errors.ErrUnsupported)
}

// unlockedFS grants every lock.
type unlockedFS struct{ vfs.FS }

func (unlockedFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

func (f unlockedFS) Unwrap() vfs.FS { return f.FS }

// Close removes the description and gives up the lock.
func (l *dirLock) Close() error {
	if l.path != "" {
		_ = l.fs.Remove(l.path)
	}
	err := l.Lock.Close()
	shared.Lock()
	defer shared.Unlock()
	delete(shared.own, l.file)
	return err
}

// LockFileOf makes a file, if need be, and locks it for this process alone until Close. It waits for who has it, until ctx ends. On file
// systems without locks it locks nothing.
func LockFileOf(ctx context.Context, fs FS, path string) (io.Closer, error) {
	for {
		l, err := fs.Lock(path)
		var pe *os.PathError
		switch {
		case noLocks(err):
			return io.NopCloser(nil), nil
		case err == nil, errors.As(err, &pe): // a lock that is held gives a bare error
			return l, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("index: %s: %w", path, ctx.Err())
		}
	}
}

// canonical names dir in one way, because the lock against a second Open in
// one process goes by name.
func canonical(fs vfs.FS, dir string) (string, error) {
	if vfs.Root(fs) != vfs.Default {
		return dir, nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}
