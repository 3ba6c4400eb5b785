package txn

import (
	"errors"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/race"
)

// carrying is a way to bring the versions of the database "src" to "copy", for
// tests in which it does not end well.
type carrying struct {
	name string
	// before makes what the run finds, besides src.
	before func(t *testing.T, src *DB)
	run    func(fs vfs.FS) error
}

// withSrc opens src, for reading alone unless writable is set.
func withSrc(fs vfs.FS, writable bool, fn func(db *DB) error) error {
	o := testOptions(fs)
	o.ReadOnly = !writable
	db, err := Open("src", o)
	if err != nil {
		return err
	}
	return errors.Join(fn(db), db.Close())
}

func withCopy(fs vfs.FS, fn func(db *DB) error) error {
	db, err := Open("copy", testOptions(fs))
	if err != nil {
		return err
	}
	return errors.Join(fn(db), db.Close())
}

func carryings() []carrying {
	nothing := func(*testing.T, *DB) {}
	cloned := func(t *testing.T, src *DB) {
		must.Get(src.Clone(bg, "copy", TransferOptions{}))(t)
	}
	backedUp := func(t *testing.T, src *DB) {
		must.Get(src.Backup(bg, "copy", TransferOptions{}))(t)
	}
	clone := func(o TransferOptions) func(fs vfs.FS) error {
		return func(fs vfs.FS) error {
			return withSrc(fs, false, func(db *DB) error {
				_, err := db.Clone(bg, "copy", o)
				return err
			})
		}
	}
	backup := func(fs vfs.FS) error {
		return withSrc(fs, true, func(db *DB) error {
			_, err := db.Backup(bg, "copy", TransferOptions{})
			return err
		})
	}
	return []carrying{
		{"clone", nothing, clone(TransferOptions{})},
		{"shallow clone", nothing, clone(TransferOptions{Branch: "main", Depth: 2})},
		{"first backup", nothing, backup},
		{"next backup", backedUp, backup},
		{"push", cloned, func(fs vfs.FS) error {
			return withSrc(fs, false, func(db *DB) error {
				return withCopy(fs, func(to *DB) error {
					_, err := db.Push(bg, to, TransferOptions{AllBranches: true, AllTags: true})
					return err
				})
			})
		}},
		{"fetch, then pull", cloned, func(fs vfs.FS) error {
			return withSrc(fs, false, func(db *DB) error {
				return withCopy(fs, func(to *DB) error {
					if _, err := to.Fetch(bg, db, TransferOptions{}); err != nil {
						return err
					}
					_, err := to.Pull(bg, db, TransferOptions{AllBranches: true})
					return err
				})
			})
		}},
		{"restore", func(t *testing.T, src *DB) {
			must.Get(src.Backup(bg, "saved", TransferOptions{}))(t)
		}, func(fs vfs.FS) error {
			_, err := Restore(bg, "saved", "copy", testOptions(fs), TransferOptions{})
			return err
		}},
	}
}

// carried is a file system before a run, and what the copy holds before and after
// it: for each head, the keys.
type carried struct {
	carrying
	image    *vfs.MemFS
	old, new CommitID
	want     map[string]string
}

// prepare makes the state that a run begins with. The first versions are in what
// is there before, if anything is.
func (c carrying) prepare(t *testing.T) *carried {
	t.Helper()
	mem := vfs.NewCrashableMem()
	src := must.Get(Create("src", testOptions(mem)))(t)
	grow(t, src, 4, 0)
	must.Do(t, src.CreateBranch(bg, "side", mustHead(t, src)))
	out := &carried{carrying: c, old: mustHead(t, src)}
	if c.name == "restore" {
		grow(t, src, 3, 4)
	}
	c.before(t, src)
	if c.name != "restore" {
		grow(t, src, 3, 4)
	}
	update(t, src, "side", map[string]string{"side": big("side", 70_000)})
	out.new, out.want = mustHead(t, src), at(t, src, "main")
	must.Do(t, src.Close())
	out.image = all(mem)
	return out
}

// all is a copy of a file system.
func all(mem *vfs.MemFS) *vfs.MemFS { return crashtest.Cut(mem, 100, nil) }

// open opens the copy; nil if it is not there.
func (c *carried) open(t *testing.T, mem *vfs.MemFS) *DB {
	t.Helper()
	db, err := Open("copy", testOptions(mem))
	if errors.Is(err, ErrNotDatabase) {
		return nil
	}
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return db
}

// look fails unless the copy is as before or as it is to become, and reports
// whether that is so.
func (c *carried) look(t *testing.T, mem *vfs.MemFS) (complete bool) {
	t.Helper()
	db := c.open(t, mem)
	if db == nil {
		return false
	}
	defer closeChecked(t, db)
	switch head := mustHead(t, db); head {
	case c.new:
		if got := at(t, db, "main"); !maps.Equal(got, c.want) {
			t.Fatal("the copy differs")
		}
		return true
	case c.old:
		return false
	default:
		t.Fatalf("head %v, neither %v nor %v", head, c.old, c.new)
		return false
	}
}

// again runs what did not end well once more, without trouble.
func (c *carried) again(t *testing.T, mem *vfs.MemFS) {
	t.Helper()
	complete := c.look(t, mem)
	if err := c.run(mem); err != nil && !(complete && errors.Is(err, ErrExists)) {
		t.Fatalf("again: %v", err)
	}
	if !c.look(t, mem) {
		t.Fatal("the next run did not complete it")
	}
	src := must.Get(Open("src", testOptions(mem)))(t)
	closeChecked(t, src)
}

// An error of any operation of the file system, reads and the source included, is
// an error of the transfer or does no harm; and the next run is complete.
func TestTransferFailsAnywhere(t *testing.T) {
	if race.Enabled {
		t.Skip("the work of one goroutine, many times")
	}
	points := 15
	if testing.Short() {
		points = 4
	}
	testTransferFails(t, func(n int64, try func(k int64)) {
		for range points {
			try(rand.Int64N(n))
		}
	})
}

// TestSoakTransferFails lets every operation fail, as far as the time goes.
func TestSoakTransferFails(t *testing.T) {
	s, i := startSoak(t), 0
	testTransferFails(t, func(n int64, try func(k int64)) {
		over := s.part(i, len(carryings()))
		i++
		rng := rand.New(rand.NewPCG(s.seed(), 0))
		for _, k := range rng.Perm(int(n)) {
			try(int64(k))
			s.ops++
			if over() {
				break
			}
		}
	})
}

func testTransferFails(t *testing.T, choose func(n int64, try func(k int64))) {
	for _, kind := range carryings() {
		t.Run(kind.name, func(t *testing.T) {
			c := kind.prepare(t)
			run := func(k int64, forEver bool) (mem *vfs.MemFS, n int64, err error) {
				mem = all(c.image)
				f := crashtest.Faults{At: k, Once: !forEver}
				err = c.run(f.Wrap(mem))
				return mem, f.Seen.Load(), err
			}
			mem, n, err := run(-1, false)
			if err != nil || !c.look(t, mem) {
				t.Fatalf("without trouble: %v", err)
			}
			choose(n, func(k int64) {
				forEver := k%2 == 0
				mem, _, err := run(k, forEver)
				defer func() {
					if t.Failed() {
						t.Logf("operation %d of %d failed, for ever %v: the run says %v", k, n, forEver, err)
					}
				}()
				if err == nil {
					// It is there even if the power is cut now.
					if !c.look(t, mem.CrashClone(vfs.CrashCloneCfg{})) {
						t.Fatal("it is not complete, and there was no error")
					}
				}
				c.again(t, mem)
			})
		})
	}
}
