package txn

import (
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// crashFS calls before each operation of a crashable file system that may
// change it, never two at a time, so that it can be cloned there.
//
// Two things of the file systems below need care: a link or a lock must not be
// made beside a clone, because they take one lock twice; and files that are used
// again are not watched, so that new ones are made instead.
func crashFS(mem *vfs.MemFS, before func(op errorfs.Op) error) vfs.FS {
	mu := new(sync.Mutex)
	watch := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		return before(op)
	})
	return faultFS(linkFS{mem, mu}, watch)
}

type linkFS struct {
	vfs.FS
	mu *sync.Mutex
}

func (f linkFS) Link(oldname, newname string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.FS.Link(oldname, newname)
}

func (f linkFS) Lock(name string) (io.Closer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.FS.Lock(name)
}

// faultFS tells an injector of every operation. errorfs alone does not see what
// is done to a log that is written over an old one.
func faultFS(fs vfs.FS, inject errorfs.Injector) vfs.FS { return noReuseFS{errorfs.Wrap(fs, inject)} }

type noReuseFS struct{ vfs.FS }

func (f noReuseFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.Remove(oldname); err != nil {
		return nil, err
	}
	return f.Create(newname, category)
}
