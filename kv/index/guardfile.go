package index

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logFile is a file whose errors Pebble must not see. After the failure it drops
// writes.
type logFile struct {
	vfs.File
	g     *guardFS
	name  string
	named bool // its name is on disk, or need not be

	written atomic.Int64
	closed  bool // g.logMu is held
}

// do runs op unless the index is failed, and turns its error into the failure.
func (f *logFile) do(name string, op func() error) {
	if f.g.isFailed() {
		return
	}
	if err := op(); err != nil {
		if isFull(err) {
			f.g.onFull()
		}
		f.g.fail(name, f.name, err)
	}
}

func (f *logFile) Write(p []byte) (int, error) {
	f.do("write", func() error {
		n, err := f.File.Write(p)
		f.written.Add(int64(n))
		return err
	})
	return len(p), nil
}

// logPart is a log that is copied to a checkpoint, without the bytes of the old log
// over which it is written.
type logPart struct {
	vfs.File
	left int64
}

func (f *logPart) Read(p []byte) (int, error) {
	n, err := (&io.LimitedReader{R: f.File, N: f.left}).Read(p)
	f.left -= int64(n)
	return n, err
}

// Sync makes the file durable, and the name of a list of tables too: a marker may
// name that list before Pebble syncs the directory.
func (f *logFile) Sync() error {
	f.do("sync", f.File.Sync)
	if !f.named {
		f.named = true
		f.do("sync directory of", func() error { return SyncDir(f.g.FS, f.g.dir) })
	}
	return nil
}

func (f *logFile) SyncData() error {
	f.do("sync", f.File.SyncData)
	return nil
}

func (f *logFile) SyncTo(length int64) (full bool, err error) {
	f.do("sync", func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, nil
}

// Stat is asked of a log that may be written over an old one: the length of the
// old one, for statistics.
func (f *logFile) Stat() (vfs.FileInfo, error) {
	if !f.g.isFailed() {
		fi, err := f.File.Stat()
		if err == nil {
			return fi, nil
		}
		f.g.fail("stat", f.name, err)
	}
	return vfs.NewMemFile(nil).Stat()
}

// Preallocate does nothing. Pebble would allocate a tenth more than a memtable
// for each log, which is most of the size of a small database, and it writes
// most logs over old ones anyway.
func (f *logFile) Preallocate(offset, length int64) error { return nil }

func (f *logFile) Close() error {
	err := f.File.Close()
	f.do("close", func() error { return err })
	f.g.logMu.Lock()
	f.closed = true
	f.g.logMu.Unlock()
	if strings.HasPrefix(f.g.FS.PathBase(f.name), "marker.") { // the one before is removed then
		f.do("sync directory of", func() error { return SyncDir(f.g.FS, f.g.dir) })
	}
	return nil
}

// tableFile counts its first error.
type tableFile struct {
	vfs.File
	g      *guardFS
	name   string
	failed bool
}

func (f *tableFile) note(err error) error {
	if err != nil && !f.failed {
		f.failed = true
		f.g.tableDone(f.name, err)
	}
	return err
}

func (f *tableFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.note(err)
}

func (f *tableFile) Sync() error     { return f.note(f.File.Sync()) }
func (f *tableFile) SyncData() error { return f.note(f.File.SyncData()) }

func (f *tableFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.note(err)
}

func (f *tableFile) Close() error {
	err := f.note(f.File.Close())
	if !f.failed {
		f.g.tableDone(f.name, nil)
	}
	return err
}

// guardDir is a directory that Pebble syncs.
type guardDir struct {
	vfs.File
	g    *guardFS
	name string
}

func (d *guardDir) Sync() error {
	if d.name != d.g.dir {
		if err := d.File.Sync(); err != nil {
			d.g.mu.Lock()
			if d.g.outside == nil {
				d.g.outside = fmt.Errorf("sync %s: %w", d.name, err)
			}
			d.g.mu.Unlock()
		}
		return nil
	}
	if !d.g.isFailed() {
		if err := d.File.Sync(); err != nil {
			d.g.fail("sync directory", d.name, err)
		}
	}
	return nil
}
