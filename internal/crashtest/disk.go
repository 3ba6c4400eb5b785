package crashtest

import (
	"io"
	"math/rand/v2"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Disk is a crashable file system whose power can be cut before each change. Writes over an old
// log are changes too.
type Disk struct {
	vfs.FS
	mem *vfs.MemFS

	mu     sync.Mutex
	before func(*Disk, errorfs.Op) error
	off    bool
	gone   map[string]bool // removed, and the directory was not synced
}

// NewDisk returns a disk on mem, which vfs.NewCrashableMem has made. The disk calls before ahead
// of each change, one at a time. The change fails with the error of before.
func NewDisk(mem *vfs.MemFS, before func(*Disk, errorfs.Op) error) *Disk {
	return &Disk{FS: mem, mem: mem, before: before, gone: map[string]bool{}}
}

// On switches the calls of before on, as they are at first, or off.
func (d *Disk) On(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = !on
}

// Cut returns the disk after a power cut: so many percent of the blocks and new names that were
// not synced are there, and so many percent of the removals that were not synced are done. It is
// for the function of [NewDisk]. rng may be nil if each is 0 or 100.
func (d *Disk) Cut(percent, removals int, rng *rand.Rand) *vfs.MemFS {
	fs := Cut(d.mem, percent, rng)
	for path := range d.gone {
		if _, err := d.mem.Stat(path); err == nil || removals < 100 && (removals == 0 || rng.IntN(100) >= removals) {
			continue
		}
		_ = fs.RemoveAll(path) // fails if it is not there
		if dir, err := fs.OpenDir(fs.PathDir(path)); err == nil {
			_ = dir.Sync()
			_ = dir.Close()
		}
	}
	return fs
}

// Cut returns a copy of mem with so many percent of the unsynced data: with 100 as after a kill
// of the process.
func Cut(mem *vfs.MemFS, percent int, rng *rand.Rand) *vfs.MemFS {
	if rng == nil {
		rng = rand.New(rand.NewPCG(1, 1))
	}
	return mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
}

// change makes one change.
func (d *Disk) change(kind errorfs.OpKind, path string, do func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.off {
		if err := d.before(d, errorfs.Op{Kind: kind, Path: path}); err != nil {
			return err
		}
	}
	return do()
}

// open makes a change that opens a file.
func (d *Disk) open(kind errorfs.OpKind, path string, do func() (vfs.File, error)) (f vfs.File, err error) {
	err = d.change(kind, path, func() (err error) {
		f, err = do()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &diskFile{File: f, d: d, path: path}, nil
}

func (d *Disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.open(errorfs.OpCreate, name, func() (vfs.File, error) { return d.mem.Create(name, category) })
}

func (d *Disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.open(errorfs.OpReuseForWrite, newname, func() (vfs.File, error) { return d.mem.ReuseForWrite(oldname, newname, category) })
}

func (d *Disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.mem.OpenReadWrite(name, category, opts...)
	if err != nil {
		return nil, err
	}
	return &diskFile{File: f, d: d, path: name}, nil
}

func (d *Disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.mem.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &diskFile{File: f, d: d, path: name, dir: true}, nil
}

func (d *Disk) Link(oldname, newname string) error {
	return d.change(errorfs.OpLink, newname, func() error { return d.mem.Link(oldname, newname) })
}

func (d *Disk) Remove(name string) error {
	return d.change(errorfs.OpRemove, name, func() error {
		d.gone[name] = true
		return d.mem.Remove(name)
	})
}

func (d *Disk) RemoveAll(name string) error {
	return d.change(errorfs.OpRemoveAll, name, func() error {
		d.gone[name] = true
		return d.mem.RemoveAll(name)
	})
}

func (d *Disk) Rename(oldname, newname string) error {
	return d.change(errorfs.OpRename, newname, func() error { return d.mem.Rename(oldname, newname) })
}

func (d *Disk) MkdirAll(dir string, perm os.FileMode) error {
	return d.change(errorfs.OpMkdirAll, dir, func() error { return d.mem.MkdirAll(dir, perm) })
}

func (d *Disk) Lock(name string) (l io.Closer, err error) {
	err = d.change(errorfs.OpLock, name, func() error {
		l, err = d.mem.Lock(name)
		return err
	})
	return l, err
}

// diskFile is a file of a disk, or a directory.
type diskFile struct {
	vfs.File
	d    *Disk
	path string
	dir  bool
}

func (f *diskFile) Write(p []byte) (n int, err error) {
	err = f.d.change(errorfs.OpFileWrite, f.path, func() error {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (f *diskFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.d.change(errorfs.OpFileWriteAt, f.path, func() error {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	return n, err
}

func (f *diskFile) Sync() error { return f.sync(errorfs.OpFileSync) }

func (f *diskFile) SyncData() error { return f.sync(errorfs.OpFileSyncData) }

func (f *diskFile) sync(kind errorfs.OpKind) error {
	return f.d.change(kind, f.path, func() error {
		for path := range f.d.gone {
			if f.dir && f.d.PathDir(path) == f.d.PathDir(f.d.PathJoin(f.path, "x")) {
				delete(f.d.gone, path)
			}
		}
		return f.File.Sync()
	})
}
