package crashtest

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// IsWrite reports whether an operation may change a file system.
func IsWrite(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite }

// IsSync reports whether an operation syncs a file or a directory.
func IsSync(op errorfs.Op) bool {
	return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
}

// Watch returns a file system that calls before ahead of each operation on fs, several at a time.
// The operation fails with the error of before. A log that would be written over an old one is
// made anew, because errorfs does not see writes over an old log.
func Watch(fs vfs.FS, before func(op errorfs.Op) error) vfs.FS {
	return watchFS{errorfs.Wrap(fs, errorfs.InjectorFunc(before)), fs}
}

type watchFS struct {
	vfs.FS
	below vfs.FS
}

// Remove returns an error if there is no such file, unlike errorfs.
func (f watchFS) Remove(name string) error {
	if _, err := f.below.Stat(name); errors.Is(err, os.ErrNotExist) {
		return err
	}
	return f.FS.Remove(name)
}

func (f watchFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.Remove(oldname); err != nil {
		return nil, err
	}
	return f.Create(newname, category)
}

// Faults fails operations. The zero value fails all of them.
type Faults struct {
	Err   error                 // default errorfs.ErrInjected; the cause of an os.PathError
	Match func(errorfs.Op) bool // which operations are counted; nil for all
	At    int64                 // the first of these operations that fails, counted from 0
	Once  bool                  // no later one fails
	Off   atomic.Bool           // no operation is counted

	// Seen counts the operations, and Hits the failed ones.
	Seen, Hits atomic.Int64
}

// Wrap returns a file system on which operations of fs fail, see [Watch].
func (f *Faults) Wrap(fs vfs.FS) vfs.FS { return Watch(fs, f.check) }

func (f *Faults) check(op errorfs.Op) error {
	if f.Off.Load() || f.Match != nil && !f.Match(op) {
		return nil
	}
	if i := f.Seen.Add(1) - 1; i < f.At || f.Once && i > f.At {
		return nil
	}
	f.Hits.Add(1)
	err := f.Err
	if err == nil {
		err = errorfs.ErrInjected
	}
	return &os.PathError{Op: fmt.Sprint("operation ", op.Kind), Path: op.Path, Err: err}
}
