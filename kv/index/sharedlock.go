package index

import (
	"errors"
	"io"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A process that may not write an index has no right to take the lock of a writer,
// which creates a file. It locks that file for reading instead: the operating system
// lets any number of processes do so, and no writer meanwhile.
//
// A process owns such locks as a whole: closing any descriptor of the file
// releases all of them. So the openers of one process share one descriptor.

// shared are the locks for reading that this process has, by the name of the file. own
// are the files that this process has locked for itself: the operating system would give
// it such a lock again, under the new name of a directory that was moved.
// Its mutex is held while any lock of an index is taken or a shared one given up.
var shared = struct {
	sync.Mutex
	locks map[string]*sharedLock
	own   map[fileID]bool
}{locks: map[string]*sharedLock{}, own: map[fileID]bool{}}

type sharedLock struct {
	name string
	file vfs.File
	refs int
}

// sharedFS shares locks where another file system would give them to one.
type sharedFS struct{ vfs.FS }

// Lock locks a file for reading. shared is locked by the caller. A missing file
// means that no writer has opened the index: a writer creates it first.
func (f sharedFS) Lock(name string) (io.Closer, error) {
	if l := shared.locks[name]; l != nil {
		l.refs++
		return l, nil
	}
	file, err := f.FS.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return io.NopCloser(nil), nil
	}
	if err != nil {
		return nil, err
	}
	if err := lockToRead(file, name); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	l := &sharedLock{name: name, file: file, refs: 1}
	shared.locks[name] = l
	return l, nil
}

func (f sharedFS) Unwrap() vfs.FS { return f.FS }

func (l *sharedLock) Close() error {
	shared.Lock()
	defer shared.Unlock()
	if l.refs--; l.refs > 0 {
		return nil
	}
	delete(shared.locks, l.name)
	return l.file.Close()
}
