package txn

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/index"
	"github.com/zarrdb/zarrdb/kv/pack"
	"github.com/zarrdb/zarrdb/txn/internal/care"
)

func delayedOptions(fs vfs.FS, d Durability) *Options {
	o := testOptions(fs)
	o.Durability = d
	o.SyncInterval = 24 * time.Hour // nothing happens by itself
	return o
}

// Commits that wait are seen by everything that reads.
func TestDelayedCommitsAreRead(t *testing.T) {
	for _, d := range []Durability{DurabilityAsync, DurabilityNone} {
		f := crashtest.Faults{Match: crashtest.IsSync, At: math.MaxInt64} // counts
		syncs := &f.Seen
		db := openTest(t, delayedOptions(f.Wrap(vfs.NewMem()), d))
		before := syncs.Load()
		var c *Commit
		for i := range 5 {
			c = update(t, db, "main", map[string]string{"k": fmt.Sprint(i), "big": payload(fmt.Sprint(i))})
		}
		must.Do(t, db.CreateBranch(bg, "b", c.ID))
		update(t, db, "b", map[string]string{"k": "b"})
		must.Do(t, db.DeleteBranch(bg, "b"))
		if got := at(t, db, "main~1"); got["k"] != "3" || got["big"] != payload("3") {
			t.Errorf("main~1 has k = %q", got["k"])
		}
		if n := syncs.Load() - before; n != 0 {
			t.Errorf("%d syncs for commits that may wait", n)
		}
		if id, err := db.Resolve(bg, c.ID.String()[:12]); err != nil || id != c.ID {
			t.Errorf("by prefix: %v %v", id, err)
		}
		var ops []string
		for m, err := range db.Reflog(bg, "b") {
			must.Do(t, err)
			ops = append(ops, fmt.Sprint(m.Op, m.Seq))
		}
		if got := strings.Join(ops, " "); got != "delete2 commit1 branch0" {
			t.Errorf("reflog of b: %s", got)
		}
		if db.pending.waiting.Load() != 0 || syncs.Load() == before {
			t.Error("nothing was written for the reflog")
		}
	}
}

// The loop writes what waits when the interval is over.
func TestDelayedCommitsAreWritten(t *testing.T) {
	mem := vfs.NewCrashableMem()
	o := delayedOptions(mem, DurabilityAsync)
	db := must.Get(Create("db", o))(t)
	if err := db.stopPending(); err != nil { // its loop, for one with a clock of ours
		t.Fatal(err)
	}
	tick := make(chan time.Time)
	db.startPending(func(time.Duration) <-chan time.Time { return tick })
	update(t, db, "main", map[string]string{"a": payload("1")})
	tick <- time.Time{}
	update(t, db, "main", map[string]string{"b": "2"})
	tick <- time.Time{} // the first write is over
	image := mem.CrashClone(vfs.CrashCloneCfg{})
	must.Do(t, db.Close())
	for _, fs := range []vfs.FS{image, mem} {
		left := must.Get(Open("db", testOptions(fs)))(t)
		got := at(t, left, "main")
		if got["a"] != payload("1") || fs == mem && got["b"] != "2" {
			t.Errorf("%d keys are left", len(got))
		}
		closeChecked(t, left)
	}
}

// When a write of what waits fails, no later commit is acknowledged, and what is
// left is a sound prefix.
func TestDelayedWriteFails(t *testing.T) {
	for _, file := range []string{".pack", ".log"} {
		t.Run(file, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			f := crashtest.Faults{Match: func(op errorfs.Op) bool { return crashtest.IsSync(op) && strings.HasSuffix(op.Path, file) }}
			f.Off.Store(true)
			db := must.Get(Create("db", delayedOptions(f.Wrap(mem), DurabilityAsync)))(t)
			update(t, db, "main", map[string]string{"a": payload("1")})
			must.Do(t, db.Sync(bg))
			f.Off.Store(false)
			update(t, db, "main", map[string]string{"a": payload("2")})
			if err := db.Sync(bg); !errors.Is(err, errorfs.ErrInjected) {
				t.Errorf("sync: %v", err)
			}
			f.Off.Store(true)
			s := must.Get(db.Begin(bg, "main"))(t)
			set(t, s, map[string]string{"c": "3"})
			if _, err := s.Commit(bg, CommitOptions{}); err == nil {
				t.Error("a commit was acknowledged after the failure")
			}
			if err := db.Sync(bg); err == nil {
				t.Error("sync succeeded after the failure")
			}
			if err := db.Close(); err == nil {
				t.Error("close says nothing of the lost commit")
			}
			left := must.Get(Open("db", testOptions(mem.CrashClone(vfs.CrashCloneCfg{}))))(t)
			if got := at(t, left, "main"); got["a"] != payload("1") || len(got) != 1 {
				t.Errorf("%d keys are left", len(got))
			}
			closeChecked(t, left)
		})
	}
}

// A pack that fails in the write of another session takes payloads of commits that
// wait. Each of these commits fails.
func TestDelayedPayloadsAreLost(t *testing.T) {
	var broken atomic.Bool
	fs := failingPacks(&broken)
	db := must.Get(Create("db", delayedOptions(fs, DurabilityNone)))(t)
	update(t, db, "main", map[string]string{"a": payload("1")})
	must.Do(t, db.Sync(bg))
	update(t, db, "main", map[string]string{"a": payload("2")})
	s := mustBegin(t, db)
	broken.Store(true)
	if err := s.Set(bg, "large", make([]byte, 300<<10)); !errors.Is(err, pack.ErrFailed) {
		t.Fatalf("write on a broken disk: %v", err)
	}
	broken.Store(false)
	if err := db.Sync(bg); !errors.Is(err, ErrLost) {
		t.Errorf("sync: %v", err)
	}
	other := mustBegin(t, db)
	set(t, other, map[string]string{"b": "1"})
	if _, err := other.Commit(bg, CommitOptions{}); !errors.Is(err, ErrLost) {
		t.Errorf("a commit after the failure: %v", err)
	}
	if err := db.Close(); !errors.Is(err, ErrLost) {
		t.Errorf("close: %v", err)
	}
	left := must.Get(Open("db", testOptions(fs)))(t)
	if got := at(t, left, "main"); got["a"] != payload("1") || len(got) != 1 {
		t.Errorf("%d keys are left", len(got))
	}
	closeChecked(t, left)
}

// A disk that is full delays what waits and loses nothing of it.
func TestDelayedDiskFull(t *testing.T) {
	mem := vfs.NewMem()
	var free atomic.Uint64
	free.Store(1 << 40)
	db := openTest(t, delayedOptions(freeFS{mem, &free}, DurabilityNone))
	update(t, db, "main", map[string]string{"a": "1"})
	free.Store(1 << 10)
	if err := db.Sync(bg); !errors.Is(err, index.ErrFull) {
		t.Fatalf("sync: %v", err)
	}
	update(t, db, "main", map[string]string{"b": "2"})
	free.Store(1 << 40)
	must.Do(t, db.Sync(bg))
	if got := at(t, db, "main"); got["a"] != "1" || got["b"] != "2" {
		t.Errorf("%v", got)
	}
}

// A delayed write that fails on a full disk is reported until it succeeds.
func TestDelayedDiskFullIsReported(t *testing.T) {
	var free atomic.Uint64
	free.Store(1 << 40)
	o := delayedOptions(freeFS{vfs.NewMem(), &free}, DurabilityAsync)
	told := make(chan CareError, 1)
	o.CareFailed = func(e CareError) { told <- e }
	o.SyncInterval = time.Millisecond
	db := openTest(t, o)
	free.Store(1 << 10)
	update(t, db, "main", map[string]string{"a": "1"})
	if e := <-told; e.Work != care.WorkDelayed || !errors.Is(e, index.ErrFull) || len(db.CareErrors()) != 1 {
		t.Errorf("%v, %v", e, db.CareErrors())
	}
	free.Store(1 << 40)
	for len(db.CareErrors()) > 0 {
		time.Sleep(time.Millisecond)
	}
}

// freeFS says how much is free.
type freeFS struct {
	vfs.FS
	free *atomic.Uint64
}

func (f freeFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: f.free.Load(), TotalBytes: 1 << 40}, nil
}

// Unwrap implements vfs.FS.
func (f freeFS) Unwrap() vfs.FS { return f.FS }
