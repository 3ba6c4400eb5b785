package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/txn"
	"github.com/zarrdb/zarrdb/zarr"
)

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
		db, err := Open(bg, "db", faultOptions(mem))
		must.Do(t, err)
		must.Get(faultHistory(db, 1, 1))(t)
		must.Do(t, db.Close())
		f := crashtest.Faults{At: k - 1, Once: true}
		made := 1
		if db, err = Open(bg, "db", faultOptions(f.Wrap(mem))); err == nil {
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
		if f.Hits.Load() == 0 {
			return
		}
	}
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
	for k := int64(0); ; k++ {
		f := crashtest.Flips{At: k}
		o := faultOptions(f.Wrap(mem))
		o.ReadOnly = true
		if db, err = Open(bg, "db", o); err == nil {
			var got int
			if got, err = readFault(db); err == nil && got != 3 {
				t.Errorf("read %d, of %v: read version %d of 3", k, f.Path(), got)
			}
			if err != nil && strings.Contains(err.Error(), "wrong data") {
				t.Errorf("read %d, of %v: %v", k, f.Path(), err)
			}
			if err := db.Close(); err != nil {
				t.Errorf("read %d: close: %v", k, err)
			}
		}
		if err != nil {
			failed++
		}
		if f.Path() == nil {
			break
		}
	}
	if failed == 0 {
		t.Error("no flipped bit was noticed")
	}
}

// A full disk refuses what does not fit and harms nothing: reads go on, the
// session stays, and when there is space the commit is made.
func TestDiskFull(t *testing.T) {
	full := crashtest.Faults{Err: syscall.ENOSPC, Match: func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpFileWriteAt && strings.HasSuffix(op.Path, ".pack")
	}}
	full.Off.Store(true)
	db := openDB(t, faultOptions(full.Wrap(vfs.NewMem())))
	must.Get(faultHistory(db, 1, 1))(t)
	full.Off.Store(false)
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
	full.Off.Store(true)
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
			o := faultOptions((&crashtest.Faults{Err: errno, Match: crashtest.IsWrite}).Wrap(mem))
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
	f := crashtest.Faults{Match: func(op errorfs.Op) bool { return crashtest.IsSync(op) && strings.HasSuffix(op.Path, ".log") }}
	f.Off.Store(true)
	db := must.Get(Open(bg, "db", faultOptions(f.Wrap(mem))))(t)
	must.Get(faultHistory(db, 1, 1))(t)
	f.Off.Store(false)
	if made, err := faultHistory(db, 2, 3); made != 0 || !errors.Is(err, errorfs.ErrInjected) {
		t.Errorf("%d commits, %v", made, err)
	}
	f.Off.Store(true)
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
