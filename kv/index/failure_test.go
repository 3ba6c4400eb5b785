package index

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/internal/race"
	"github.com/zarrdb/zarrdb/kv"
)

// history writes to a database until an error, and knows what must be there.
type history struct {
	t     *testing.T
	acked map[string]string // committed and synced
	doubt map[string]string // in a batch whose Commit failed

	copies int
}

func newHistory(t *testing.T) *history {
	return &history{t: t, acked: map[string]string{}, doubt: map[string]string{}}
}

// run commits n batches of three keys each, with flushes, an ingest and a
// checkpoint. Every key of one batch has the same value, so that a torn batch
// shows.
func (h *history) run(fs vfs.FS, n int) error {
	x, err := Open("d", small(fs))
	if err != nil {
		return err
	}
	first := error(nil)
	for i := range n {
		keys := []string{fmt.Sprint("a", i%5), fmt.Sprint("b", i%5), fmt.Sprint("c", i%5)}
		value := fmt.Sprint(i, strings.Repeat("x", 20<<10))
		err := h.commit(x, keys, value)
		if err == nil && i%8 == 3 {
			err = x.Flush()
		}
		if err == nil && i%8 == 5 {
			h.copies++
			err = x.Checkpoint(fmt.Sprint("copy", h.copies))
		}
		if err == nil && i%8 == 6 {
			err = x.Ingest(seqOf(pages(i, i+5), nil))
		}
		if first == nil {
			first = err
		}
		h.checkReads(x)
		if errors.Is(err, ErrFailed) {
			h.checkFailed(x, keys)
			break
		}
	}
	if err := x.Close(); first == nil {
		first = err
	}
	return first
}

func (h *history) commit(x *Index, keys []string, value string) error {
	b := x.NewBatch()
	defer b.Close()
	for _, k := range keys {
		b.Set(SpaceRef, []byte(k), []byte(value))
	}
	err := b.Commit(true)
	for _, k := range keys {
		if err == nil {
			h.acked[k] = value
			delete(h.doubt, k)
		} else if !errors.Is(err, ErrFull) {
			h.doubt[k] = value
		}
	}
	return err
}

// allowed reports whether got may be the value of k.
func (h *history) allowed(k, got string, found bool) bool {
	want, ok := h.acked[k]
	if found == ok && got == want {
		return true
	}
	maybe, ok := h.doubt[k]
	return ok && found && got == maybe
}

func (h *history) checkReads(x *Index) {
	h.t.Helper()
	for k := range h.acked {
		v, err := x.Get(SpaceRef, []byte(k))
		if err != nil && errors.Is(err, errorfs.ErrInjected) {
			continue // a read that failed
		}
		if !h.allowed(k, string(v), err == nil) {
			h.t.Fatalf("%s: %.20q %v, want %.20q", k, v, err, h.acked[k])
		}
	}
}

// checkFailed expects that a failed index refuses all writes and only those.
func (h *history) checkFailed(x *Index, keys []string) {
	h.t.Helper()
	for i := range 3 {
		if err := put(x, SpaceRef, keys[0], fmt.Sprint("late", i), true); !errors.Is(err, ErrFailed) {
			h.t.Fatalf("commit after the failure: %v", err)
		}
	}
	for name, err := range map[string]error{
		"flush":      x.Flush(),
		"checkpoint": x.Checkpoint("late"),
		"ingest":     x.Ingest(seqOf(pages(0, 3), nil)),
	} {
		if !errors.Is(err, ErrFailed) {
			h.t.Fatalf("%s after the failure: %v", name, err)
		}
	}
}

// checkReopened opens what a crash left and expects every acknowledged batch,
// and batches whole.
func (h *history) checkReopened(fs vfs.FS) {
	h.t.Helper()
	x, err := Open("d", &Options{FS: fs})
	if errors.Is(err, ErrNotExist) && len(h.acked) == 0 {
		// The creation was interrupted; it can be done over.
		x, err = Open("d", small(fs))
	}
	if err != nil {
		h.t.Fatalf("reopen: %v", err)
	}
	h.checkReads(x)
	for i := range 5 {
		var got [3]string
		for j, k := range []string{"a", "b", "c"} {
			v, err := x.Get(SpaceRef, fmt.Append(nil, k, i))
			if err != nil && err != ErrNotFound {
				h.t.Fatal(err)
			}
			got[j] = string(v)
		}
		if got[0] != got[1] || got[1] != got[2] {
			h.t.Fatalf("half a batch: %.20q", got)
		}
	}
	// And it works again.
	if err := put(x, SpaceRef, "again", "v", true); err != nil {
		h.t.Fatal(err)
	}
	mustClose(h.t, x)
}

// TestErrorAtEveryOperation fails the k-th operation of the file system, for
// every k, once or from there on. Nothing may be lost, hang or panic.
func TestErrorAtEveryOperation(t *testing.T) {
	// Some hundred operations in the whole history; a few milliseconds each.
	step := int64(23)
	if race.Enabled {
		step = 71
	}
	if os.Getenv("ZARRDB_LONG") != "" {
		step = 1
	}
	for _, c := range []struct {
		name  string
		err   error
		match func(errorfs.Op) bool
		once  bool
	}{
		{"write once", errorfs.ErrInjected, crashtest.IsWrite, true},
		{"write for ever", errorfs.ErrInjected, crashtest.IsWrite, false},
		{"full for ever", syscall.ENOSPC, crashtest.IsWrite, false},
		{"any once", errorfs.ErrInjected, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for k := int64(0); ; k += step {
				f := crashtest.Faults{Err: c.err, Match: c.match, Once: c.once, At: k}
				mem := vfs.NewCrashableMem()
				h := newHistory(t)
				err := h.run(f.Wrap(mem), 24)
				for _, percent := range []int{0, 50} {
					rng := rand.New(rand.NewPCG(uint64(k), 2))
					h.checkReopened(mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
				}
				h.checkReopened(mem)
				if f.Hits.Load() == 0 {
					if err != nil {
						t.Fatalf("without a fault: %v", err)
					}
					if k < 100 {
						t.Fatalf("only %d operations", k)
					}
					return
				}
				if t.Failed() {
					t.Fatalf("fault at operation %d", k)
				}
			}
		})
	}
}

// TestConcurrentFailure lets the log fail under many writers.
func TestConcurrentFailure(t *testing.T) {
	seeds := int64(6)
	if race.Enabled {
		seeds = 3
	}
	for _, suffix := range []string{".log", "MANIFEST", ".sst", "marker", ""} {
		for seed := range seeds {
			t.Run(fmt.Sprintf("%s/%d", suffix, seed), func(t *testing.T) {
				t.Parallel()
				mem := vfs.NewCrashableMem()
				x0 := mustOpen(t, "d", small(mem))
				mustClose(t, x0)
				f := &crashtest.Faults{At: 5 + 37*seed, Match: func(op errorfs.Op) bool {
					return crashtest.IsWrite(op) && strings.Contains(op.Path, suffix)
				}}
				x, err := Open("d", small(f.Wrap(mem)))
				if err != nil {
					return // the fault came early
				}
				var mu sync.Mutex
				acked := map[string]string{}
				var wg sync.WaitGroup
				for w := range 8 {
					wg.Go(func() {
						for i := range 60 {
							k, v := fmt.Sprint(w, "/", i), strings.Repeat(fmt.Sprint(i), 4000)
							if err := put(x, SpaceRef, k, v, i%3 > 0); err != nil {
								if !errors.Is(err, ErrFailed) {
									t.Errorf("commit: %v", err)
								}
								return
							}
							if i%3 > 0 {
								mu.Lock()
								acked[k] = v
								mu.Unlock()
							}
						}
					})
				}
				wg.Wait()
				for k, v := range acked {
					if got, err := x.Get(SpaceRef, []byte(k)); err != nil || string(got) != v {
						t.Fatalf("read %s: %v", k, err)
					}
				}
				if err := x.Close(); f.Hits.Load() == 0 && err != nil {
					t.Fatal(err)
				}
				x = mustOpen(t, "d", &Options{FS: mem.CrashClone(vfs.CrashCloneCfg{})})
				for k, v := range acked {
					if got, err := x.Get(SpaceRef, []byte(k)); err != nil || string(got) != v {
						t.Fatalf("lost %s: %v", k, err)
					}
				}
				mustClose(t, x)
			})
		}
	}
}

// TestOpenOnFullDisk: the reserve makes room for the first opening already, and
// not for one that only reads.
func TestOpenOnFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	hasReserve := func() bool { _, err := mem.Stat("d/" + reserveFile); return err == nil }
	var full atomic.Bool
	o := small(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		// A table is written again; a list of tables that fails is the end.
		if op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "MANIFEST") && full.Load() && hasReserve() {
			return syscall.ENOSPC
		}
		return nil
	})))
	o.MinFreeBytes, o.ReserveBytes = 10<<20, 4<<20
	o.DiskFree = func() (uint64, error) {
		switch {
		case !full.Load():
			return 1 << 30, nil
		case hasReserve():
			return 0, nil
		}
		return 4 << 20, nil
	}
	x := mustOpen(t, "d", o)
	must.Do(t, put(x, SpaceRef, "k", "v", true))
	mustClose(t, x)
	full.Store(true)
	read := *o
	read.ReadOnly = true
	mustClose(t, mustOpen(t, "d", &read))
	if !hasReserve() {
		t.Error("a reader gave the reserve up")
	}
	x = mustOpen(t, "d", o)
	b := x.NewBatch()
	b.Delete(SpaceRef, []byte("k"))
	if err := b.Commit(true); err != nil {
		t.Errorf("delete: %v", err)
	}
	b.Close()
	mustClose(t, x)
	full.Store(false)
	mustClose(t, mustOpen(t, "d", o))
	if !hasReserve() {
		t.Error("there is no reserve again")
	}
}

func TestFull(t *testing.T) {
	mem := vfs.NewMem()
	o := small(mem)
	var free atomic.Uint64
	free.Store(1 << 30)
	hasReserve := func() bool { _, err := mem.Stat("d/" + reserveFile); return err == nil }
	var spent atomic.Bool // the reserve's space is somebody else's
	o.DiskFree = func() (uint64, error) {
		if hasReserve() || spent.Load() {
			return free.Load(), nil
		}
		return free.Load() + 4<<20, nil
	}
	o.MinFreeBytes, o.ReserveBytes = 10<<20, 4<<20
	x := mustOpen(t, "d", o)
	if !hasReserve() {
		t.Fatal("no reserve")
	}
	must.Do(t, put(x, SpaceRef, "k", "v", true))
	for n, want := range map[uint64]error{64 << 20: nil, 39 << 20: ErrFull} {
		if free.Store(n); !errors.Is(x.LowSpace(), want) {
			t.Errorf("with %d bytes free: %v", n, x.LowSpace())
		}
	}
	del := func(key string) error {
		b := x.NewBatch()
		defer b.Close()
		b.Delete(SpaceRef, []byte(key))
		return b.Commit(true)
	}
	mark := func(key string) error {
		b := x.NewBatch()
		defer b.Close()
		b.MakesRoom()
		b.Set(SpaceExpired, []byte(key), nil)
		return b.Commit(true)
	}
	for _, c := range []struct {
		free        uint64
		write, del  error
		haveReserve bool
	}{
		{10 << 20, ErrFull, nil, true},
		{2 << 20, ErrFull, nil, true},
		{100 << 10, ErrFull, nil, false},
		{30 << 20, nil, nil, true},
		{10<<20 + 4096, nil, nil, true},
	} {
		free.Store(c.free)
		if err := put(x, SpaceRef, "new", "v", true); !errors.Is(err, c.write) {
			t.Errorf("%d free: write: %v", c.free, err)
		}
		if err := x.Ingest(seqOf(pages(0, 3), nil)); c.write != nil && !errors.Is(err, c.write) {
			t.Errorf("%d free: ingest: %v", c.free, err)
		}
		if err := del("x"); !errors.Is(err, c.del) {
			t.Errorf("%d free: delete: %v", c.free, err)
		}
		if err := mark("x"); !errors.Is(err, c.del) {
			t.Errorf("%d free: mark: %v", c.free, err)
		}
		if hasReserve() != c.haveReserve {
			t.Errorf("%d free: reserve %v", c.free, hasReserve())
		}
	}
	// A batch counts, and so do those on their way.
	free.Store(10<<20 + 1<<20)
	if err := put(x, SpaceRef, "big", strings.Repeat("x", 600<<10), true); !errors.Is(err, ErrFull) {
		t.Errorf("large batch: %v", err)
	} else if !strings.HasSuffix(err.Error(), "remove other files, or choose another disk") { // it is still being made
		t.Error(err)
	}
	x.Created()
	if err := put(x, SpaceRef, "big", strings.Repeat("x", 600<<10), true); !strings.HasSuffix(fmt.Sprint(err), " MiB wanted; gc frees what failed writes left") {
		t.Error(err)
	}
	if v, err := x.Get(SpaceRef, []byte("k")); err != nil || string(v) != "v" {
		t.Errorf("read: %q %v", v, err)
	}
	// The reserve is spent once.
	free.Store(100 << 10)
	if err := del("x"); err != nil {
		t.Errorf("with a reserve: %v", err)
	}
	spent.Store(true)
	if err := del("x"); !errors.Is(err, ErrFull) {
		t.Errorf("without a reserve: %v", err)
	}
	if n := x.disk.inflight.Load(); n != 0 {
		t.Errorf("%d bytes in flight", n)
	}
	o.DiskFree = nil
	mustClose(t, x)
}

// A file that is cut off, or that is another one, is damage: opening says so.
func TestDamagedFilesAreDamage(t *testing.T) {
	for name, c := range map[string]struct {
		kind  string
		spoil func([]byte) []byte
	}{
		"table cut off":    {".sst", func(b []byte) []byte { return b[:len(b)-1] }},
		"table longer":     {".sst", func(b []byte) []byte { return append(b, 0) }},
		"table is another": {".sst", func(b []byte) []byte { return bytes.Repeat([]byte("x"), len(b)) }},
		"merger":           {"OPTIONS", func(b []byte) []byte { return bytes.Replace(b, []byte("merger=p"), []byte("merger=q"), 1) }},
		"comparer":         {"OPTIONS", func(b []byte) []byte { return bytes.Replace(b, []byte("comparer=l"), []byte("comparer=m"), 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			x := mustOpen(t, "d", small(mem))
			must.Do(t, put(x, SpaceRef, "k", "v", true))
			must.Do(t, x.Flush())
			mustClose(t, x)
			names, err := mem.List("d")
			must.Do(t, err)
			spoiled := false
			for _, n := range names {
				if !strings.Contains(n, c.kind) {
					continue
				}
				b := must.Get(mem.UnsafeGetFileDataBuffer("d/" + n))(t)
				bad := c.spoil(bytes.Clone(b))
				spoiled = spoiled || !bytes.Equal(b, bad)
				writeWhole(t, mem, "d/"+n, bad)
			}
			if !spoiled {
				t.Fatalf("nothing to spoil in %q", names)
			}
			x, err = Open("d", small(mem))
			if err == nil {
				_, err = x.Get(SpaceRef, []byte("k"))
				mustClose(t, x)
			}
			if !errors.Is(err, kv.ErrCorrupt) || strings.Contains(err.Error(), "carrier") {
				t.Errorf("%v", err)
			}
		})
	}
}

// A log that is written over an old one is asked how long that was. Pebble takes
// no error for an answer.
func TestStatOfLogFails(t *testing.T) {
	f := &crashtest.Faults{Match: func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpFileStat && strings.HasSuffix(op.Path, ".log")
	}}
	x := must.Get(Open("db", &Options{FS: f.Wrap(vfs.NewMem()), Create: true}))(t)
	for i := 0; f.Hits.Load() == 0; i++ {
		if i == 100 {
			t.Fatal("no log was written over an old one")
		}
		must.Do(t, put(x, SpaceRef, "k", "v", true))
		if err := x.Flush(); err != nil && f.Hits.Load() == 0 {
			t.Fatal(err)
		}
	}
	if err := put(x, SpaceRef, "k", "v", true); !errors.Is(err, ErrFailed) {
		t.Errorf("a commit after the failure: %v", err)
	}
	_ = x.Close() // tells of the failure
}

func writeWhole(t testing.TB, fs vfs.FS, file string, b []byte) {
	t.Helper()
	f, err := fs.Create(file, WriteCategory)
	must.Do(t, err)
	_, err = f.Write(bytes.Clone(b)) // a vfs.File may change what it gets
	must.Do(t, errors.Join(err, f.Close()))
}
