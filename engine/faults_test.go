package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

var errBoom = errors.New("boom")

const faultLength = 3000

// faultSpec has three chunks that go to a pack.
func faultSpec() zarr.Spec {
	spec := line(faultLength, 1000)
	spec.Codecs = []byte(`[{"name":"bytes","configuration":{"endian":"little"}}]`)
	return spec
}

// faultHistory makes an array, if there is none, and commits versions of it that
// have their number in every element; made is the last one that was
// acknowledged, 0 if none was.
func faultHistory(db *DB, from, to int) (made int, err error) {
	for i := from; i <= to; i++ {
		_, err := db.Update(bg, "main", fmt.Sprint(i), func(s *Session) error {
			a, err := s.Array(bg, "g/x")
			if errors.Is(err, zarr.ErrNotFound) {
				a, err = s.CreateArray(bg, "g/x", faultSpec())
			}
			if err != nil {
				return err
			}
			data := make([]int32, faultLength)
			for j := range data {
				data[j] = int32(i)
			}
			return zarr.Write(bg, a, zarr.Sel(), data)
		})
		if err != nil {
			return made, err
		}
		made = i
	}
	return made, nil
}

// readFault reads the array of the newest version: 0 if there is none. The
// error may be anything; values that are not of one commit are none.
func readFault(db *DB) (int, error) {
	s, err := db.At(bg, "main")
	if err != nil {
		return 0, err
	}
	defer s.Close()
	a, err := s.Array(bg, "g/x")
	if errors.Is(err, zarr.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	data, _, err := zarr.Read[int32](bg, a, zarr.Sel())
	if err != nil {
		return 0, err
	}
	for _, v := range data {
		if v != data[0] {
			return 0, fmt.Errorf("wrong data: %d and %d in one version", data[0], v)
		}
	}
	return int(data[0]), nil
}

func faultOptions(fs vfs.FS) *Options {
	o := memOptions()
	o.FS, o.CacheBytes = fs, -1
	return o
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

func faultStep() int {
	if testing.Short() {
		return 11
	}
	return 3
}

// The k-th operation of the file system fails, whatever it is, for every k over
// the life of a database: what fails says so, what was acknowledged is there
// after reopening, and no read gives wrong data.
func TestEveryOperationFails(t *testing.T) {
	step := int64(faultStep())
	first := 1 + rand.Int64N(step)
	t.Logf("every %d from %d", step, first)
	for k := first; ; k += step {
		mem := vfs.NewMem()
		var n atomic.Int64
		db, err := Open(bg, "db", faultOptions(mem))
		must.Do(t, err)
		must.Get(faultHistory(db, 1, 1))(t)
		must.Do(t, db.Close())
		fs := faultFS(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if n.Add(1) == k {
				return fmt.Errorf("%v %s: %w", op.Kind, op.Path, errBoom)
			}
			return nil
		}))
		made := 1
		if db, err = Open(bg, "db", faultOptions(fs)); err == nil {
			got, err := readFault(db)
			if err == nil && got != 1 {
				t.Fatalf("operation %d: read %d", k, got)
			}
			made, _ = faultHistory(db, 2, 4)
			made = max(made, 1)
			if got, err := readFault(db); err == nil && got < made {
				t.Fatalf("operation %d: read %d after %d commits", k, got, made)
			}
			_ = db.Close() // may report the fault
		}
		if db, err = Open(bg, "db", faultOptions(mem)); err != nil {
			t.Fatalf("operation %d: open: %v", k, err)
		}
		if got, err := readFault(db); err != nil || got < made || got > 4 {
			t.Fatalf("operation %d: %d commits were acknowledged, read %d, %v", k, made, got, err)
		}
		closeChecked(t, db)
		if t.Failed() {
			t.Fatalf("operation %d", k)
		}
		if n.Load() < k {
			return
		}
	}
}

// flipFS changes one bit of what the k-th read of a file returns.
type flipFS struct {
	vfs.FS
	n, k *atomic.Int64
	read *atomic.Value // the path of the file
}

func (f flipFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return flipFile{file, f, name}, nil
}

// Unwrap implements vfs.FS.
func (f flipFS) Unwrap() vfs.FS { return f.FS }

type flipFile struct {
	vfs.File
	fs   flipFS
	name string
}

func (f flipFile) flip(p []byte) {
	if len(p) > 0 && f.fs.n.Add(1) == f.fs.k.Load() {
		f.fs.read.Store(f.name)
		p[len(p)/2] ^= 0x04
	}
}

func (f flipFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.flip(p[:n])
	return n, err
}

func (f flipFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.flip(p[:n])
	return n, err
}

// A bit of the k-th read is flipped, for every k: an error or the right data,
// and never anything else.
func TestEveryReadFlips(t *testing.T) {
	mem := vfs.NewMem()
	db, err := Open(bg, "db", faultOptions(mem))
	must.Do(t, err)
	must.Get(faultHistory(db, 1, 3))(t)
	if err := db.Checkpoint(bg); err != nil { // so that tables are read too
		t.Fatal(err)
	}
	must.Do(t, db.Close())
	failed := 0
	for k := int64(1); ; k++ {
		fs := flipFS{FS: mem, n: new(atomic.Int64), k: new(atomic.Int64), read: new(atomic.Value)}
		fs.k.Store(k)
		o := faultOptions(fs)
		o.ReadOnly = true
		if db, err = Open(bg, "db", o); err == nil {
			var got int
			if got, err = readFault(db); err == nil && got != 3 {
				t.Errorf("read %d, of %v: read version %d of 3", k, fs.read.Load(), got)
			}
			if err != nil && strings.Contains(err.Error(), "wrong data") {
				t.Errorf("read %d, of %v: %v", k, fs.read.Load(), err)
			}
			if err := db.Close(); err != nil {
				t.Errorf("read %d: close: %v", k, err)
			}
		}
		if err != nil {
			failed++
		}
		if fs.n.Load() < k {
			break
		}
	}
	if failed == 0 {
		t.Error("no flipped bit was noticed")
	}
}

// fullFS has no space for packs while it is on.
type fullFS struct {
	vfs.FS
	on *atomic.Bool
}

func (f fullFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.OpenReadWrite(name, c, opts...)
	if err != nil || !strings.HasSuffix(name, ".pack") {
		return file, err
	}
	return fullFile{file, f.on}, nil
}

// Unwrap implements vfs.FS.
func (f fullFS) Unwrap() vfs.FS { return f.FS }

type fullFile struct {
	vfs.File
	on *atomic.Bool
}

func (f fullFile) WriteAt(p []byte, off int64) (int, error) {
	if f.on.Load() {
		return 0, syscall.ENOSPC
	}
	return f.File.WriteAt(p, off)
}

// A full disk refuses what does not fit and harms nothing: reads go on, the
// session stays, and when there is space the commit is made.
func TestDiskFull(t *testing.T) {
	var on atomic.Bool
	fs := fullFS{vfs.NewMem(), &on}
	db := openDB(t, faultOptions(fs))
	must.Get(faultHistory(db, 1, 1))(t)
	on.Store(true)
	s, err := db.Begin(bg, "main")
	must.Do(t, err)
	defer s.Abort()
	value := []byte(strings.Repeat("too much", 500))
	err = s.Set(bg, "doc", value)
	if err == nil {
		_, err = s.Commit(bg, txn.CommitOptions{})
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("full disk: %v", err)
	}
	if got, err := readFault(db); err != nil || got != 1 {
		t.Errorf("read %d, %v", got, err)
	}
	on.Store(false)
	must.Do(t, s.Set(bg, "doc", value))
	if _, err := s.Commit(bg, txn.CommitOptions{}); err != nil {
		t.Fatalf("with space again: %v", err)
	}
	if b, err := at(t, db, "main").Get(bg, "doc", kv.All()); err != nil || string(b) != string(value) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// A disk that can only be read, and files that may not be: the one opens for
// reading, the other is an error that says what is not allowed.
func TestReadOnlyDisk(t *testing.T) {
	for name, errno := range map[string]syscall.Errno{"read-only": syscall.EROFS, "denied": syscall.EACCES} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			db, err := Open(bg, "db", faultOptions(mem))
			must.Do(t, err)
			must.Get(faultHistory(db, 1, 2))(t)
			must.Do(t, db.Close())
			fs := faultFS(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
					return &os.PathError{Op: "open", Path: op.Path, Err: errno}
				}
				return nil
			}))
			o := faultOptions(fs)
			if _, err := Open(bg, "db", o); !errors.Is(err, errno) || errors.Is(err, txn.ErrIndexLost) {
				t.Errorf("for writing: %v", err)
			}
			o.ReadOnly = true
			db, err = Open(bg, "db", o)
			if errno == syscall.EACCES {
				// Somebody else may write, and files in memory cannot be locked to read.
				if !errors.Is(err, errno) || errors.Is(err, txn.ErrIndexLost) {
					t.Errorf("for reading: %v", err)
				}
				if err == nil {
					db.Close()
				}
				return
			}
			if err != nil {
				t.Fatalf("for reading: %v", err)
			}
			if got, err := readFault(db); err != nil || got != 2 {
				t.Errorf("read %d, %v", got, err)
			}
			if _, err := db.Begin(bg, "main"); !errors.Is(err, kv.ErrReadOnly) {
				t.Errorf("begin: %v", err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// After a failed sync of the index no commit is acknowledged until the database
// is opened again, and what was acknowledged before is there.
func TestFailedSyncStopsCommits(t *testing.T) {
	mem := vfs.NewCrashableMem()
	var on atomic.Bool
	fs := faultFS(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if on.Load() && sync && strings.HasSuffix(op.Path, ".log") {
			return errBoom
		}
		return nil
	}))
	db := must.Get(Open(bg, "db", faultOptions(fs)))(t)
	must.Get(faultHistory(db, 1, 1))(t)
	on.Store(true)
	if made, err := faultHistory(db, 2, 3); made != 0 || !errors.Is(err, errBoom) {
		t.Errorf("%d commits, %v", made, err)
	}
	on.Store(false)
	if made, err := faultHistory(db, 2, 3); made != 0 || err == nil {
		t.Errorf("%d commits after the failure, %v", made, err)
	}
	_ = db.Close() // reports the failure again
	db = must.Get(Open(bg, "db", faultOptions(mem.CrashClone(vfs.CrashCloneCfg{}))))(t)
	if got, err := readFault(db); err != nil || got != 1 {
		t.Errorf("read %d, %v", got, err)
	}
	if made, err := faultHistory(db, 2, 3); made != 3 || err != nil {
		t.Errorf("%d commits after opening again, %v", made, err)
	}
	closeChecked(t, db)
}
