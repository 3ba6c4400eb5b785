package index

import (
	"io"
	"math/rand/v2"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// cutFS is a crashable file system that can be looked at between any two operations
// which change it, those on logs that are written over old ones among them.
type cutFS struct {
	vfs.FS
	mem *vfs.MemFS

	mu     sync.Mutex
	before func() // an operation, with mu held
	gone   map[string]bool
}

func newCutFS(mem *vfs.MemFS, before func(*cutFS)) *cutFS {
	c := &cutFS{FS: mem, mem: mem, gone: map[string]bool{}}
	c.before = func() { before(c) }
	return c
}

// image is what a power cut leaves now: of what was not synced, so many percent
// of the blocks and new names, and of the removals that many percent. mu is held.
func (c *cutFS) image(percent, removals int, rng *rand.Rand) *vfs.MemFS {
	fs := c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
	for path := range c.gone {
		if _, err := c.mem.Stat(path); err == nil || rng.IntN(100) >= removals {
			continue
		}
		// Errors: of what is not there.
		_ = fs.RemoveAll(path)
		_ = SyncDir(fs, fs.PathDir(path))
	}
	return fs
}

// change makes one operation.
func (c *cutFS) change(op func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before()
	return op()
}

// file makes an operation that opens a file.
func (c *cutFS) file(op func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	err := c.change(func() (err error) {
		f, err = op()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &cutFile{File: f, c: c}, nil
}

func (c *cutFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return c.file(func() (vfs.File, error) { return c.mem.Create(name, category) })
}

func (c *cutFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return c.file(func() (vfs.File, error) { return c.mem.ReuseForWrite(oldname, newname, category) })
}

func (c *cutFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return c.file(func() (vfs.File, error) { return c.mem.OpenReadWrite(name, category, opts...) })
}

func (c *cutFS) OpenDir(name string) (vfs.File, error) {
	f, err := c.mem.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &cutFile{File: f, c: c, dir: name}, nil
}

func (c *cutFS) Link(oldname, newname string) error {
	return c.change(func() error { return c.mem.Link(oldname, newname) })
}

func (c *cutFS) Remove(name string) error {
	return c.change(func() error {
		c.gone[name] = true
		return c.mem.Remove(name)
	})
}

func (c *cutFS) RemoveAll(name string) error {
	return c.change(func() error {
		c.gone[name] = true
		return c.mem.RemoveAll(name)
	})
}

func (c *cutFS) Rename(oldname, newname string) error {
	return c.change(func() error { return c.mem.Rename(oldname, newname) })
}

func (c *cutFS) MkdirAll(dir string, perm os.FileMode) error {
	return c.change(func() error { return c.mem.MkdirAll(dir, perm) })
}

func (c *cutFS) Lock(name string) (l io.Closer, err error) {
	err = c.change(func() error {
		l, err = c.mem.Lock(name)
		return err
	})
	return l, err
}

// cutFile is a file of it, or a directory that is synced.
type cutFile struct {
	vfs.File
	c   *cutFS
	dir string
}

func (f *cutFile) Write(p []byte) (n int, err error) {
	err = f.c.change(func() error {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (f *cutFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.c.change(func() error {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	return n, err
}

func (f *cutFile) Sync() error {
	return f.c.change(func() error {
		for path := range f.c.gone {
			if f.dir != "" && f.c.PathDir(path) == f.c.PathDir(f.c.PathJoin(f.dir, "x")) {
				delete(f.c.gone, path)
			}
		}
		return f.File.Sync()
	})
}

func (f *cutFile) SyncData() error { return f.Sync() }
