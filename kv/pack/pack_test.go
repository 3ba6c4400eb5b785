package pack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/leaktest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var (
	bg          = context.Background()
	incarnation = [8]byte{'t', 'e', 's', 't', 1, 2, 3, 4}
)

func options(fs vfs.FS) *Options {
	return &Options{FS: fs, Incarnation: incarnation}
}

func mustOpen(t testing.TB, dir string, o *Options) *Store {
	t.Helper()
	s := must.Get(Open(dir, o))(t)
	return s
}

func mustClose(t testing.TB, s *Store) {
	t.Helper()
	must.Do(t, s.Close())
}

func mustAppend(t testing.TB, s *Store, payload []byte) Address {
	t.Helper()
	a := must.Get(s.Append(bg, ownerOf(payload), payload))(t)
	return a
}

// ownerOf makes an owner that can be told from the payload.
func ownerOf(payload []byte) Owner {
	o := Owner{Key: fmt.Appendf(nil, "key%d", len(payload)%1000)}
	copy(o.Array[:], payload)
	return o
}

// noise is cut into payloads, which is faster than making each.
var noise = func() []byte {
	b := make([]byte, 8<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}()

func random(rng *rand.Rand, n int) []byte {
	i := rng.IntN(len(noise) - n)
	return bytes.Clone(noise[i : i+n])
}

// sizes that are interesting: alignment, blocks, buffer and large records.
var sizes = []int{
	0, 1, 7, 8, 9, 64, 4095, 4096, 4097, largeFrom - 1, largeFrom, largeFrom + 1,
	2*blockSize - 1, 2 * blockSize, 3*blockSize + 5, segmentBytes, 1<<20 + 3,
}

// eachFS runs a test in memory, on disk with maps, and on disk with pread.
func eachFS(t *testing.T, run func(t *testing.T, dir string, o *Options)) {
	for _, name := range []string{"mem", "map", "pread"} {
		t.Run(name, func(t *testing.T) {
			o, dir := options(vfs.NewMem()), "packs"
			if name != "mem" {
				o.FS, dir = osfs.FS, filepath.Join(t.TempDir(), "packs")
			}
			if name == "pread" {
				o.MapBytes = -1
			}
			run(t, dir, o)
		})
	}
}

func readAll(s *Store, a Address) (b []byte, err error) {
	err = s.View(bg, a, 0, a.Length, func(v []byte) error {
		b = append([]byte{}, v...)
		return nil
	})
	return b, err
}

// nothing is what Verify is called with for its error.
func nothing([]byte) error { return nil }

func checkPayload(t testing.TB, s *Store, a Address, want []byte) {
	t.Helper()
	got, err := readAll(s, a)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("view %+v: %d bytes, %v; want %d bytes", a, len(got), err, len(want))
	}
}

func TestAppendViewReopen(t *testing.T) {
	eachFS(t, func(t *testing.T, dir string, o *Options) {
		rng := rand.New(rand.NewPCG(1, 1))
		s := mustOpen(t, dir, o)
		payloads := map[Address][]byte{}
		for _, i := range rng.Perm(4 * len(sizes)) {
			b := random(rng, sizes[i%len(sizes)])
			a := mustAppend(t, s, b)
			if a.Length >= largeFrom && a.Offset%largeAlign != 0 || a.Offset%smallAlign != 0 {
				t.Fatalf("%+v is not aligned", a)
			}
			payloads[a] = b
			checkPayload(t, s, a, b) // from the buffer or the file
		}
		infos := must.Get(s.Sync(bg))(t)
		check := func(s *Store) {
			t.Helper()
			for a, b := range payloads {
				checkPayload(t, s, a, b)
				must.Do(t, s.Verify(bg, a, nothing, ownerOf(b)))
				if !s.Durable(a) {
					t.Fatalf("%+v is not durable", a)
				}
				for range 4 {
					off := rng.IntN(len(b) + 1)
					n := rng.IntN(len(b) - off + 1)
					must.Do(t, s.View(bg, a, uint64(off), uint64(n), func(v []byte) error {
						if !bytes.Equal(v, b[off:off+n]) {
							t.Errorf("%+v [%d, +%d): wrong bytes", a, off, n)
						}
						return nil
					}))
				}
			}
			found := map[Address]bool{}
			for _, info := range s.Infos() {
				for r, err := range s.Records(bg, info.ID, 0) {
					must.Do(t, err)
					b, ok := payloads[r.Address]
					if want := ownerOf(b); !ok || r.Owner.Array != want.Array || !bytes.Equal(r.Owner.Key, want.Key) {
						t.Fatalf("scan found %+v", r)
					}
					found[r.Address] = true
				}
			}
			if len(found) != len(payloads) {
				t.Fatalf("scan found %d of %d", len(found), len(payloads))
			}
		}
		check(s)
		mustClose(t, s)

		// The pack goes on growing.
		o.Table = infos
		s = mustOpen(t, dir, o)
		check(s)
		a := mustAppend(t, s, []byte("more"))
		payloads[a] = []byte("more")
		if a.Pack != infos[0].ID {
			t.Errorf("appended to %v, not %v", a.Pack, infos[0].ID)
		}
		must.Get(s.Sync(bg))(t)
		check(s)
		mustClose(t, s)

		o.Table, o.ReadOnly = s.Infos(), true
		s = mustOpen(t, dir, o)
		check(s)
		if _, err := s.Append(bg, Owner{}, nil); err != kv.ErrReadOnly {
			t.Errorf("append: %v", err)
		}
		if _, err := s.Sync(bg); err != kv.ErrReadOnly {
			t.Errorf("sync: %v", err)
		}
		if err := s.Remove(a.Pack); err != kv.ErrReadOnly {
			t.Errorf("remove: %v", err)
		}
		mustClose(t, s)
	})
}

func TestViewErrors(t *testing.T) {
	eachFS(t, func(t *testing.T, dir string, o *Options) {
		s := mustOpen(t, dir, o)
		defer mustClose(t, s)
		small, large := mustAppend(t, s, []byte("payload")), mustAppend(t, s, make([]byte, 300_000))
		must.Get(s.Sync(bg))(t)
		nothing := func([]byte) error { t.Error("fn was called"); return nil }
		for _, c := range []struct {
			a      Address
			off, n uint64
			want   error
		}{
			{small, 0, 8, kv.ErrRange},
			{small, 8, 0, kv.ErrRange},
			{small, 1 << 63, 1 << 63, kv.ErrRange},
			{small, 3, 1<<64 - 3, kv.ErrRange},
			{Address{small.Pack, small.Offset + 8, 7}, 0, 7, kv.ErrCorrupt},
			{Address{small.Pack, small.Offset + 1, 6}, 0, 6, kv.ErrCorrupt},
			{Address{small.Pack, small.Offset, 6}, 0, 6, kv.ErrCorrupt},
			{Address{small.Pack, 0, 10}, 0, 10, kv.ErrCorrupt},
			{Address{small.Pack, 1 << 40, 10}, 0, 10, kv.ErrCorrupt},
			{Address{small.Pack, 1<<64 - 8, 16}, 0, 10, kv.ErrCorrupt},
			{Address{small.Pack, large.Offset, 1 << 62}, 0, 1, kv.ErrCorrupt},
			{Address{small.Pack, large.Offset, large.Length + 1}, 0, 1, kv.ErrCorrupt},
			{Address{small.Pack, large.Offset, large.Length - 70_000}, 0, 1, kv.ErrCorrupt},
			{Address{ID{1}, small.Offset, small.Length}, 0, 7, kv.ErrCorrupt},
		} {
			if err := s.View(bg, c.a, c.off, c.n, nothing); !errors.Is(err, c.want) {
				t.Errorf("%+v [%d, +%d): %v", c.a, c.off, c.n, err)
			}
		}
		stop := errors.New("stop")
		for _, a := range []Address{small, large} {
			if err := s.View(bg, a, 0, 1, func([]byte) error { return stop }); err != stop {
				t.Errorf("error of fn: %v", err)
			}
			func() {
				defer func() {
					if r := recover(); r != stop {
						t.Errorf("panic of fn: %v", r)
					}
				}()
				_ = s.View(bg, a, 0, 1, func([]byte) error { panic(stop) })
			}()
		}
		ctx, cancel := context.WithCancel(bg)
		cancel()
		if err := s.View(ctx, small, 0, 1, nothing); err != context.Canceled {
			t.Errorf("cancelled view: %v", err)
		}
		if _, err := s.Append(ctx, Owner{}, nil); err != context.Canceled {
			t.Errorf("cancelled append: %v", err)
		}
		if _, err := s.Append(bg, Owner{Key: make([]byte, maxKeyBytes+1)}, nil); !errors.Is(err, errTooLarge) {
			t.Errorf("long key: %v", err)
		}
		for _, o := range []Owner{{}, {Key: []byte("key6")}} {
			if err := s.Verify(bg, small, nothing, o); !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("wrong owner: %v", err)
			}
		}
	})
}

func TestRollAndRemove(t *testing.T) {
	eachFS(t, func(t *testing.T, dir string, o *Options) {
		o.MaxPackBytes, o.OpenFiles = 200_000, 3
		s := mustOpen(t, dir, o)
		rng := rand.New(rand.NewPCG(2, 2))
		var list []Address
		payloads := map[Address][]byte{}
		for i := range 60 {
			n := rng.IntN(100_000)
			if i == 30 {
				n = 1_000_000 // larger than a pack
			}
			b := random(rng, n)
			a := mustAppend(t, s, b)
			payloads[a] = b
			list = append(list, a)
		}
		infos := must.Get(s.Sync(bg))(t)
		if len(infos) < 10 {
			t.Fatalf("%d packs", len(infos))
		}
		sealed := 0
		for _, info := range infos {
			if info.Sealed {
				sealed++
			}
		}
		if sealed < len(infos)-s.o.Writers {
			t.Errorf("%d of %d packs are sealed", sealed, len(infos))
		}
		for a, b := range payloads {
			checkPayload(t, s, a, b)
		}
		if n := s.files.count.Load(); n > 3 {
			t.Errorf("%d files are open", n)
		}
		// Sync repeats what is not recorded.
		again, err := s.Sync(bg)
		if err != nil || !slices.Equal(again, infos) {
			t.Errorf("second sync: %v %v", again, err)
		}
		s.Recorded(infos)
		if again, err = s.Sync(bg); err != nil || len(again) != 0 {
			t.Errorf("after Recorded: %v %v", again, err)
		}

		first, last := list[0].Pack, infos[len(infos)-1].ID
		if err := s.Remove(last); !errors.Is(err, errInUse) {
			t.Errorf("remove the growing pack: %v", err)
		}
		// A read that has begun ends well.
		must.Do(t, s.View(bg, list[0], 0, list[0].Length, func(b []byte) error {
			if err := s.Remove(first, ID{99}); err != nil {
				return err
			}
			if !bytes.Equal(b, payloads[list[0]]) {
				return errors.New("bytes changed")
			}
			return nil
		}))
		if _, err := readAll(s, list[0]); !errors.Is(err, kv.ErrCorrupt) && list[0].Length > 0 {
			t.Errorf("read from a removed pack: %v", err)
		}
		if _, err := o.FS.Stat(s.path(first)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file is still there: %v", err)
		}
		mustClose(t, s)
		for name, err := range map[string]error{
			"close":  s.Close(),
			"view":   s.View(bg, list[5], 0, 0, nil),
			"remove": s.Remove(first),
		} {
			if err != kv.ErrClosed {
				t.Errorf("%s after close: %v", name, err)
			}
		}
	})
}

// TestNamesAreNeverUsedAgain removes the last pack and opens again.
func TestNamesAreNeverUsedAgain(t *testing.T) {
	mem := vfs.NewCrashableMem()
	seen := map[ID]bool{}
	for round := range 5 {
		// Neither the index nor the directory remember the pack as such.
		s := mustOpen(t, "packs", options(mem))
		a := mustAppend(t, s, []byte{byte(round)})
		if seen[a.Pack] {
			t.Fatalf("%v was used again", a.Pack)
		}
		seen[a.Pack] = true
		infos := must.Get(s.Sync(bg))(t)
		mustClose(t, s)
		o := options(mem)
		o.Table = []Info{{ID: infos[0].ID, End: infos[0].End, Sealed: true}}
		s = mustOpen(t, "packs", o)
		must.Do(t, s.Remove(a.Pack))
		// Also not after a crash.
		mem = mem.CrashClone(vfs.CrashCloneCfg{})
		mustClose(t, s)
	}
	s := mustOpen(t, "packs", &Options{FS: mem, Incarnation: [8]byte{9}})
	if a := mustAppend(t, s, nil); a.Pack.Counter() != 0 {
		t.Errorf("a new incarnation begins with %d", a.Pack.Counter())
	}
	mustClose(t, s)
}

func TestOpenNeverAppendsToUnknownBytes(t *testing.T) {
	mem := vfs.NewMem()
	s := mustOpen(t, "packs", options(mem))
	a := mustAppend(t, s, []byte("one"))
	old := must.Get(s.Sync(bg))(t)
	b := mustAppend(t, s, []byte("two"))
	now := must.Get(s.Sync(bg))(t)
	mustClose(t, s)
	for _, c := range []struct {
		name  string
		table []Info
		inc   [8]byte
		grows bool
	}{
		{"recorded", now, incarnation, true},
		{"older index", old, incarnation, false},
		{"no index", nil, incarnation, false},
		{"sealed", []Info{{ID: now[0].ID, End: now[0].End, Sealed: true}}, incarnation, false},
		{"longer", []Info{{ID: now[0].ID, End: now[0].End + 1}}, incarnation, false},
		{"other incarnation", now, [8]byte{1}, false},
	} {
		o := options(mem)
		o.Table, o.Incarnation = c.table, c.inc
		s := mustOpen(t, "packs", o)
		next := mustAppend(t, s, []byte("three"))
		if (next.Pack == a.Pack) != c.grows {
			t.Errorf("%s: appended to %v, old pack %v", c.name, next.Pack, a.Pack)
		}
		checkPayload(t, s, a, []byte("one"))
		checkPayload(t, s, b, []byte("two"))
		mustClose(t, s) // without Sync: nothing was written
	}
	// What was found sealed is told once.
	o := options(mem)
	o.Table = old
	s = mustOpen(t, "packs", o)
	infos, err := s.Sync(bg)
	if err != nil || len(infos) != 1 || !infos[0].Sealed || infos[0].End != old[0].End {
		t.Errorf("sync: %+v %v", infos, err)
	}
	mustClose(t, s)
	// A pack of the table without a file.
	o.Table = []Info{{ID: newID(incarnation, 77), End: 5000}}
	s = mustOpen(t, "packs", o)
	missing := Address{o.Table[0].ID, 512, 10}
	if _, err := readAll(s, missing); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("missing pack: %v", err)
	}
	if next := mustAppend(t, s, nil); next.Pack.Counter() != 78 {
		t.Errorf("new pack %v", next.Pack)
	}
	mustClose(t, s)
}

func TestLocate(t *testing.T) {
	eachFS(t, func(t *testing.T, dir string, o *Options) {
		s := mustOpen(t, dir, o)
		defer mustClose(t, s)
		for _, n := range sizes {
			b := random(rand.New(rand.NewPCG(3, uint64(n))), n)
			a := mustAppend(t, s, b)
			path, off, err := s.Locate(a) // before any Sync
			must.Do(t, err)
			f := must.Get(o.FS.Open(path))(t)
			got := make([]byte, n)
			if _, err := f.ReadAt(got, off); n > 0 && (err != nil || !bytes.Equal(got, b)) {
				t.Errorf("%d bytes at %s:%d: %v", n, path, off, err)
			}
			f.Close()
		}
	})
}

func TestViewDoesNotAllocate(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "packs"), options(osfs.FS))
	defer mustClose(t, s)
	a := mustAppend(t, s, make([]byte, 100_000))
	must.Get(s.Sync(bg))(t)
	sum := 0
	fn := func(b []byte) error { sum += len(b); return nil }
	n := testing.AllocsPerRun(100, func() {
		if s.View(bg, a, 10, 90_000, fn) != nil {
			t.Fatal("read failed")
		}
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestFault truncates a file, mapped or not: reading it is an error, not a crash.
func TestFault(t *testing.T) {
	for _, maps := range []int64{0, -1} {
		t.Run(fmt.Sprint(maps), func(t *testing.T) { testFault(t, maps) })
	}
}

func testFault(t *testing.T, maps int64) {
	dir := filepath.Join(t.TempDir(), "packs")
	o := options(osfs.FS)
	o.MapBytes = maps
	s := mustOpen(t, dir, o)
	a := mustAppend(t, s, make([]byte, 1<<20))
	must.Get(s.Sync(bg))(t)
	must.Get(readAll(s, a))(t)
	// A fault elsewhere in fn is a bug of fn.
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a nil pointer of fn was swallowed")
			}
		}()
		_ = s.View(bg, a, 0, 1, func([]byte) error {
			var p *int
			*p++
			return nil
		})
	}()
	must.Do(t, os.Truncate(s.path(a.Pack), int64(a.Offset)+8192))
	if _, err := readAll(s, a); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("view: %v", err)
	}
	if err := s.View(bg, a, 100_000, 1000, func(b []byte) error { _ = bytes.Clone(b); return nil }); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("read: %v", err)
	}
	var where *CorruptError
	if _, err := readAll(s, a); !errors.As(err, &where) || where.Offset < a.Offset {
		t.Errorf("%+v", where)
	}
	mustClose(t, s)
}

// A Sync waits for nothing of packs that are sealed, however many there are.
func TestSyncLeavesSealedPacksAlone(t *testing.T) {
	o := options(vfs.NewMem())
	o.MaxPackBytes = 4 << 10
	s := mustOpen(t, "packs", o)
	sync := func() {
		t.Helper()
		infos := must.Get(s.Sync(bg))(t)
		s.Recorded(infos)
	}
	for range 20 {
		mustAppend(t, s, noise[:3<<10])
		sync()
	}
	var sealed []*pack
	for _, p := range *s.packs.Load() {
		// The one that the last Sync sealed is forgotten by the next.
		if p.info().Sealed && !slices.Contains(s.unsealed, p) {
			sealed = append(sealed, p)
			p.mu.Lock()
		}
	}
	if len(sealed) < 15 {
		t.Fatalf("%d packs are sealed", len(sealed))
	}
	if len(s.unsealed) > 2 {
		t.Errorf("Sync looks at %d packs", len(s.unsealed))
	}
	a := mustAppend(t, s, noise[:1000])
	sync()
	for _, p := range sealed {
		p.mu.Unlock()
	}
	if !s.Durable(a) {
		t.Error("the payload is not durable")
	}
	mustClose(t, s)
}
