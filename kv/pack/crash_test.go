package pack

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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
	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

// world is a store with a model of it and of the index above.
type world struct {
	t   *testing.T
	rng *rand.Rand
	o   Options
	dir string
	s   *Store

	table   map[ID]Info        // what the index holds, durably
	durable map[Address][]byte // named by the index
	fresh   map[Address][]byte // appended since the last Sync
}

func newWorld(t *testing.T, seed uint64, fs vfs.FS, dir string) *world {
	rng := rand.New(rand.NewPCG(seed, 7))
	w := &world{
		t: t, rng: rng, dir: dir, o: *options(fs),
		table: map[ID]Info{}, durable: map[Address][]byte{}, fresh: map[Address][]byte{},
	}
	w.o.MaxPackBytes = 100_000 + rng.Uint64N(2_000_000)
	w.o.Writers = 1 + rng.IntN(3)
	w.o.OpenFiles = 1 + rng.IntN(5)
	return w
}

func (w *world) open() error {
	w.o.Table = slices.Collect(maps.Values(w.table))
	s, err := Open(w.dir, &w.o)
	w.s = s
	w.fresh = map[Address][]byte{}
	return err
}

func (w *world) payload() []byte {
	n := w.rng.IntN(2000)
	switch w.rng.IntN(8) {
	case 0:
		n = sizes[w.rng.IntN(len(sizes))]
	case 1:
		n = w.rng.IntN(400_000)
	}
	return random(w.rng, n)
}

// step does one random thing and returns its error.
func (w *world) step() error {
	switch k := w.rng.IntN(20); {
	case k < 12:
		b := w.payload()
		a, err := w.s.Append(bg, ownerOf(b), b)
		if err != nil {
			return err
		}
		if w.durable[a] != nil || w.fresh[a] != nil {
			w.t.Fatalf("%+v was given out twice", a)
		}
		w.fresh[a] = b
	case k < 16:
		return w.sync()
	default:
		for _, m := range []map[Address][]byte{w.durable, w.fresh} {
			for a, b := range m {
				got, err := readAll(w.s, a)
				if err != nil {
					return err
				}
				if !bytes.Equal(got, b) {
					w.t.Fatalf("%+v: wrong bytes", a)
				}
				break
			}
		}
	}
	return nil
}

// sync is what a commit does: it makes payloads durable and records the ends
// with the addresses in one atomic batch.
func (w *world) sync() error {
	infos, err := w.s.Sync(bg)
	if err != nil {
		return err
	}
	for _, info := range infos {
		w.table[info.ID] = Info{ID: info.ID, End: info.End, Sealed: info.Sealed}
	}
	for a, b := range w.fresh {
		if end := w.table[a.Pack].End; a.Offset+a.Length > end {
			w.t.Fatalf("%+v lies behind the durable end %d", a, end)
		}
		w.durable[a] = b
	}
	clear(w.fresh)
	if w.rng.IntN(2) == 0 {
		w.s.Recorded(infos)
	}
	return nil
}

// check expects all durable payloads, by address and by scan.
func (w *world) check() {
	w.t.Helper()
	found := map[Address]bool{}
	for _, info := range w.s.Infos() {
		for r, err := range w.s.Records(bg, info.ID, 0) {
			var damage *CorruptError
			if errors.As(err, &damage) && damage.Offset+damage.Length > w.table[info.ID].End {
				continue // what a crash left behind the durable end
			}
			if errors.Is(err, ErrFull) || errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				w.t.Fatalf("scan of %+v: %v", info, err)
			}
			found[r.Address] = true
		}
	}
	for a, b := range w.durable {
		got, err := readAll(w.s, a)
		if err != nil || !bytes.Equal(got, b) {
			w.t.Fatalf("durable %+v: %v", a, err)
		}
		if err := w.s.Verify(bg, a, nothing, ownerOf(b)); err != nil {
			w.t.Fatalf("durable %+v: %v", a, err)
		}
		if !found[a] {
			w.t.Fatalf("scan did not find %+v", a)
		}
	}
}

// TestModel runs random histories with reopening.
func TestModel(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			var w *world
			if seed%3 == 0 {
				w = newWorld(t, seed, osfs.FS, filepath.Join(t.TempDir(), "packs"))
				if seed%2 == 0 {
					w.o.MapBytes = 4 << 20
				}
			} else {
				w = newWorld(t, seed, vfs.NewMem(), "packs")
			}
			for range 5 {
				must.Do(t, w.open())
				for range 60 {
					must.Do(t, w.step())
				}
				w.check()
				mustClose(t, w.s)
			}
			must.Do(t, w.open())
			w.check()
			mustClose(t, w.s)
		})
	}
}

// TestCrash loses power at random moments, with some of what was not synced:
// import, power loss, import again. The index may be one that was restored
// from an older copy.
func TestCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	seeds := uint64(25)
	if race.Enabled {
		seeds = 8
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			w := newWorld(t, seed, mem, "packs")
			for range 8 {
				must.Do(t, w.open())
				oldTable, oldDurable := maps.Clone(w.table), maps.Clone(w.durable)
				for range w.rng.IntN(40) {
					must.Do(t, w.step())
				}
				mem = crashtest.Cut(mem, w.rng.IntN(101), w.rng)
				mustClose(t, w.s)
				w.o.FS = mem
				all := maps.Clone(w.durable)
				restored := w.rng.IntN(4) == 0
				if restored {
					w.table, w.durable = oldTable, oldDurable
				}
				must.Do(t, w.open())
				w.check()
				// Appending damages nothing, not even what this index has
				// never heard of.
				for range 10 {
					must.Do(t, w.step())
				}
				if restored {
					for a, b := range all {
						if got, err := readAll(w.s, a); err != nil || !bytes.Equal(got, b) {
							t.Fatalf("%+v of the newer index: %v", a, err)
						}
					}
				}
				w.check()
				mustClose(t, w.s)
			}
		})
	}
}

// TestErrorAtEveryOperation fails the k-th operation, once or from there on.
func TestErrorAtEveryOperation(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		match func(errorfs.Op) bool
		once  bool
	}{
		{"write once", errorfs.ErrInjected, crashtest.IsWrite, true},
		{"write for ever", errorfs.ErrInjected, crashtest.IsWrite, false},
		{"full once", syscall.ENOSPC, crashtest.IsWrite, true},
		{"full for ever", syscall.ENOSPC, crashtest.IsWrite, false},
		{"any once", errorfs.ErrInjected, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			step := int64(11)
			if os.Getenv("ZARRDB_LONG") != "" {
				step = 1
			}
			for k := int64(0); ; k += step {
				if !runFault(t, &crashtest.Faults{Err: c.err, Match: c.match, Once: c.once, At: k}) {
					if k < 30 {
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

// runFault runs a history and reports whether the fault was reached.
func runFault(t *testing.T, f *crashtest.Faults) bool {
	mem := vfs.NewCrashableMem()
	w := newWorld(t, 5, f.Wrap(mem), "packs")
	w.o.MaxPackBytes = 150_000
	allowed := func(err error) bool {
		return errors.Is(err, f.Err) || errors.Is(err, ErrFailed) || errors.Is(err, ErrFull) ||
			f.Hits.Load() > 0 && errors.Is(err, kv.ErrCorrupt)
	}
	if err := w.open(); err != nil {
		if !allowed(err) {
			t.Fatalf("open: %v", err)
		}
		return true
	}
	for range 80 {
		err := w.step()
		if err == nil {
			continue
		}
		if !allowed(err) {
			t.Fatalf("step: %v", err)
		}
		if errors.Is(err, ErrFailed) {
			checkFailed(t, w)
		}
		if w.rng.IntN(2) == 0 {
			// The commit is given up, its payloads with it.
			clear(w.fresh)
			w.s.Resume()
		}
	}
	_ = w.s.Close()
	f.Off.Store(true)
	for _, percent := range []int{0, 60} {
		w.o.FS = crashtest.Cut(mem, percent, w.rng)
		must.Do(t, w.open())
		w.check()
		mustClose(t, w.s)
	}
	w.o.FS = mem
	must.Do(t, w.open())
	w.check()
	for range 5 {
		must.Do(t, w.step())
	}
	must.Do(t, w.sync())
	w.check()
	mustClose(t, w.s)
	return f.Hits.Load() > 0
}

// checkFailed expects that a failed store claims nothing.
func checkFailed(t *testing.T, w *world) {
	t.Helper()
	if _, err := w.s.Append(bg, Owner{}, []byte("late")); !errors.Is(err, ErrFailed) {
		t.Fatalf("append after the failure: %v", err)
	}
	if _, err := w.s.Sync(bg); !errors.Is(err, ErrFailed) {
		t.Fatalf("sync after the failure: %v", err)
	}
	for a := range w.durable {
		if !w.s.Durable(a) {
			t.Fatalf("%+v is not durable any more", a)
		}
	}
	lost := 0
	for _, info := range w.s.Infos() {
		if info.Failed {
			lost++
			if info.End != w.table[info.ID].End && info.End != 0 && info.End < w.table[info.ID].End {
				t.Fatalf("durable end went back: %+v, recorded %+v", info, w.table[info.ID])
			}
		}
	}
	if lost == 0 {
		t.Fatal("no failed pack")
	}
}

// TestFailedSync plays the history of two sessions: the one that has not heard
// of the failure must not get away with a later Sync.
func TestFailedSync(t *testing.T) {
	f := crashtest.Faults{Match: crashtest.IsSync}
	f.Off.Store(true)
	s := mustOpen(t, "packs", options(f.Wrap(vfs.NewMem())))
	good := mustAppend(t, s, []byte("good"))
	must.Get(s.Sync(bg))(t)
	mine, other := mustAppend(t, s, []byte("mine")), mustAppend(t, s, make([]byte, 100_000))
	f.Off.Store(false)
	var failed *FailedError
	if _, err := s.Sync(bg); !errors.As(err, &failed) || !errors.Is(err, ErrFailed) || failed.Pack != mine.Pack || failed.End != good.Offset+4 {
		t.Fatalf("sync: %v", err)
	}
	f.Off.Store(true)
	if _, err := s.Sync(bg); !errors.Is(err, ErrFailed) {
		t.Fatalf("second sync: %v", err)
	}
	if _, err := s.Append(bg, Owner{}, nil); !errors.Is(err, ErrFailed) {
		t.Fatalf("append: %v", err)
	}
	s.Resume()
	next := mustAppend(t, s, []byte("next"))
	if next.Pack == mine.Pack {
		t.Fatal("the failed pack grows on")
	}
	infos := must.Get(s.Sync(bg))(t)
	for a, want := range map[Address]bool{good: true, mine: false, other: false, next: true} {
		if s.Durable(a) != want {
			t.Errorf("%+v: durable %v", a, !want)
		}
		if _, err := readAll(s, a); want != (err == nil) || !want && !errors.Is(err, ErrFailed) {
			t.Errorf("%+v: %v", a, err)
		}
	}
	if _, _, err := s.Locate(mine); !errors.Is(err, ErrFailed) {
		t.Errorf("locate: %v", err)
	}
	for _, info := range infos {
		if info.ID == mine.Pack && info.End != good.Offset+4 {
			t.Errorf("end of the failed pack: %+v", info)
		}
	}
	if err := s.Remove(mine.Pack); err != nil {
		t.Errorf("remove the failed pack: %v", err)
	}
	mustClose(t, s)
}

// What is appended while a pack is synced is not durable by that, and the end that
// the index is told of does not reach it.
func TestAppendDuringSync(t *testing.T) {
	var s *Store
	var late []Address
	var on atomic.Bool
	o := options(errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData && on.Swap(false) {
			late = append(late, mustAppend(t, s, noise[:1000]), mustAppend(t, s, noise[:200_000]))
		}
		return nil
	})))
	s = mustOpen(t, "packs", o)
	early := mustAppend(t, s, noise[:500])
	on.Store(true)
	infos, err := s.Sync(bg)
	if err != nil || len(late) != 2 {
		t.Fatalf("%d appended, %v", len(late), err)
	}
	if !s.Durable(early) {
		t.Error("what was appended before is not durable")
	}
	for _, a := range late {
		if s.Durable(a) {
			t.Errorf("%+v is said to be durable", a)
		}
		for _, i := range infos {
			if i.ID == a.Pack && i.End > a.Offset {
				t.Errorf("the index is told of %d bytes, and %+v was appended later", i.End, a)
			}
		}
	}
	if _, err := s.Sync(bg); err != nil || !s.Durable(late[0]) || !s.Durable(late[1]) {
		t.Errorf("the next sync: %v", err)
	}
	mustClose(t, s)
}

// TestFull fills the disk, frees it, and goes on.
func TestFull(t *testing.T) {
	for _, how := range []errorfs.OpKind{errorfs.OpFilePreallocate, errorfs.OpFileWriteAt} {
		mem := vfs.NewMem()
		full := crashtest.Faults{Err: syscall.ENOSPC, Match: func(op errorfs.Op) bool { return op.Kind == how }}
		full.Off.Store(true)
		s := mustOpen(t, "packs", options(full.Wrap(mem)))
		stored := map[Address][]byte{}
		add := func(n int) error {
			b := random(rand.New(rand.NewPCG(uint64(n), 0)), n)
			a, err := s.Append(bg, ownerOf(b), b)
			if err == nil {
				stored[a] = b
			}
			return err
		}
		for _, n := range []int{10, 100_000, 20} {
			must.Do(t, add(n))
		}
		full.Off.Store(false)
		refused := false
		for range 100 {
			if err := add(30_000); err != nil {
				if !errors.Is(err, ErrFull) {
					t.Fatalf("%v: append: %v", how, err)
				}
				refused = true
				break
			}
		}
		if err := add(5_000_000); !errors.Is(err, ErrFull) {
			t.Fatalf("%v: large append: %v", how, err)
		}
		if !refused && how == errorfs.OpFileWriteAt {
			t.Fatal("memory takes everything")
		}
		if how == errorfs.OpFileWriteAt {
			if _, err := s.Sync(bg); !errors.Is(err, ErrFull) {
				t.Fatalf("sync: %v", err)
			}
		}
		for a, b := range stored {
			checkPayload(t, s, a, b)
		}
		full.Off.Store(true)
		for _, n := range []int{11, 200_000, 21} {
			must.Do(t, add(n))
		}
		infos := must.Get(s.Sync(bg))(t)
		check := func() {
			t.Helper()
			found := 0
			for _, info := range s.Infos() {
				for r, err := range s.Records(bg, info.ID, 0) {
					if err != nil {
						t.Fatalf("%v: scan: %v", how, err)
					}
					if stored[r.Address] != nil {
						found++
					}
				}
			}
			if found != len(stored) {
				t.Fatalf("%v: scan found %d of %d", how, found, len(stored))
			}
			for a, b := range stored {
				checkPayload(t, s, a, b)
			}
		}
		check()
		mustClose(t, s)
		o := options(mem)
		o.Table = infos
		s = mustOpen(t, "packs", o)
		check()
		mustClose(t, s)
	}
}

// TestConcurrent appends, reads and syncs side by side; the race detector does
// the rest.
func TestConcurrent(t *testing.T) {
	eachFS(t, func(t *testing.T, dir string, o *Options) {
		o.MaxPackBytes, o.OpenFiles, o.Writers = 3<<20, 2, 3
		s := mustOpen(t, dir, o)
		var mu sync.Mutex
		stored := map[Address][]byte{}
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(w), 9))
				shared := random(rng, 300_000)
				for i := range 40 {
					n := rng.IntN(5000)
					if i%7 == w%7 {
						n = rng.IntN(len(shared))
					}
					b := shared[:n]
					a, err := s.Append(bg, ownerOf(b), b)
					if err != nil {
						t.Errorf("append: %v", err)
						return
					}
					mu.Lock()
					stored[a] = b
					var back Address
					for back = range stored {
						break
					}
					want := stored[back]
					mu.Unlock()
					if got, err := readAll(s, back); err != nil || !bytes.Equal(got, want) {
						t.Errorf("read %+v: %v", back, err)
						return
					}
					if i%10 == w {
						infos, err := s.Sync(bg)
						if err != nil || !s.Durable(a) {
							t.Errorf("sync: %v", err)
							return
						}
						s.Recorded(infos)
					}
					if i%13 == w {
						_ = s.Infos()
						if _, _, err := s.Locate(a); err != nil {
							t.Errorf("locate: %v", err)
						}
					}
				}
			})
		}
		wg.Wait()
		must.Get(s.Sync(bg))(t)
		for a, b := range stored {
			checkPayload(t, s, a, b)
		}
		// Close under load: nothing hangs, nothing is read wrong.
		for a, b := range stored {
			wg.Go(func() {
				if got, err := readAll(s, a); err != kv.ErrClosed && (err != nil || !bytes.Equal(got, b)) {
					t.Errorf("read while closing: %v", err)
				}
				if _, err := s.Append(bg, Owner{}, b); err != nil && err != kv.ErrClosed {
					t.Errorf("append while closing: %v", err)
				}
			})
		}
		mustClose(t, s)
		wg.Wait()
		if n := s.files.count.Load(); n != 0 {
			t.Errorf("%d files are open after Close", n)
		}
	})
}
