package pack

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

// zeroHole is a hole on a file system that has none.
func zeroHole(f vfs.File, off, n int64) error {
	_, err := f.WriteAt(make([]byte, n), off)
	return err
}

// filled is a store with sealed packs and what is in them.
type filled struct {
	s     *Store
	o     *Options
	dir   string
	all   map[Address][]byte
	order []Address
}

// fill appends payloads, and seals and records everything.
func fill(t testing.TB, rng *rand.Rand, dir string, o *Options, payloads int) *filled {
	t.Helper()
	w := &filled{s: mustOpen(t, dir, o), o: o, dir: dir, all: map[Address][]byte{}}
	for range payloads {
		n := rng.IntN(3000)
		switch rng.IntN(8) {
		case 0:
			n = 60_000 + rng.IntN(200_000)
		case 1:
			n = rng.IntN(40_000)
		}
		b := random(rng, n)
		a := mustAppend(t, w.s, b)
		w.all[a] = b
		w.order = append(w.order, a)
	}
	w.seal(t)
	return w
}

func (w *filled) seal(t testing.TB) {
	t.Helper()
	for _, i := range w.s.Infos() {
		w.s.Seal(i.ID)
	}
	infos := must.Get(w.s.Sync(bg))(t)
	w.s.Recorded(infos)
	w.o.Table = w.s.Infos()
}

// live gives the ranges of some payloads, by pack.
func live(addrs []Address) map[ID][]Extent {
	m := map[ID][]Extent{}
	addrs = slices.Clone(addrs)
	slices.SortFunc(addrs, func(a, b Address) int { return cmp.Compare(a.Offset, b.Offset) })
	for _, a := range addrs {
		if a.Length > 0 {
			m[a.Pack] = append(m[a.Pack], Extent{a.Offset, a.Offset + a.Length})
		}
	}
	return m
}

// reclaim keeps only the given payloads.
func (w *filled) reclaim(keep []Address) (out []Reclaimed, err error) {
	ranges := live(keep)
	for _, i := range w.s.Infos() {
		r, err := w.s.Reclaim(bg, i.ID, ranges[i.ID], math.MaxUint64)
		if err != nil {
			return out, err
		}
		out = append(out, r)
	}
	return out, nil
}

// check expects the kept payloads by address and by scan, and never wrong bytes
// for the others.
func (w *filled) check(t testing.TB, keep []Address) {
	t.Helper()
	found := map[Address]bool{}
	for _, i := range w.s.Infos() {
		if i.Missing {
			continue // removed, but the table is that of the beginning
		}
		for r, err := range w.s.Records(bg, i.ID, 0) {
			if err != nil {
				t.Fatalf("scan: %v", err)
			}
			found[r.Address] = true
		}
	}
	for _, a := range keep {
		checkPayload(t, w.s, a, w.all[a])
		must.Do(t, w.s.Verify(bg, a, nothing, ownerOf(w.all[a])))
		if !found[a] && a.Length > 0 {
			t.Fatalf("a scan does not find %+v", a)
		}
	}
	for a, b := range w.all {
		got, err := readAll(w.s, a)
		if err == nil && !bytes.Equal(got, b) {
			t.Fatalf("%+v: wrong bytes", a)
		}
		if err != nil && !errors.Is(err, kv.ErrCorrupt) {
			t.Fatalf("%+v: %v", a, err)
		}
	}
}

func some(rng *rand.Rand, addrs []Address, share float64) (out []Address) {
	// Runs, as commits write them, and single ones.
	for i := 0; i < len(addrs); {
		n := 1 + rng.IntN(12)
		if rng.Float64() < share {
			out = append(out, addrs[i:min(i+n, len(addrs))]...)
		}
		i += n
	}
	return slices.DeleteFunc(out, func(a Address) bool { return a.Length == 0 })
}

// Payloads that are kept stay where they are, through any number of reclaims
// and reopening, and the rest of the space comes back.
func TestReclaim(t *testing.T) {
	for _, c := range []string{"holes", "rewrite", "disk", "pread"} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(c, seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 3))
				o, dir := options(vfs.NewMem()), "packs"
				switch c {
				case "holes":
					o.punch = zeroHole
				case "disk", "pread":
					o.FS, dir = osfs.FS, filepath.Join(t.TempDir(), "packs")
				}
				if c == "pread" {
					o.MapBytes = -1
				}
				o.MaxPackBytes = 2 << 20
				w := fill(t, rng, dir, o, 150)
				keep := some(rng, w.order, 1)
				for round := 0; len(keep) > 0; round++ {
					keep = some(rng, keep, 0.6)
					if round > 6 {
						keep = nil
					}
					out := must.Get(w.reclaim(keep))(t)
					again := must.Get(w.reclaim(keep))(t)
					for i := range again {
						if again[i].Bytes > 0 {
							t.Errorf("round %d: given back twice: %+v after %+v", round, again[i], out[i])
						}
					}
					w.check(t, keep)
					if rng.IntN(2) == 0 {
						mustClose(t, w.s)
						w.s = mustOpen(t, dir, o)
						w.check(t, keep)
					}
				}
				for _, i := range w.s.Infos() {
					if !i.Missing {
						t.Errorf("%+v is still there", i)
					}
				}
				mustClose(t, w.s)
			})
		}
	}
}

// A power loss at any write, and any operation that fails, leaves what is kept.
func TestReclaimCrash(t *testing.T) {
	for _, holes := range []bool{true, false} {
		rng := rand.New(rand.NewPCG(11, 1))
		var images []*vfs.MemFS
		disk := crashtest.NewDisk(vfs.NewCrashableMem(), func(d *crashtest.Disk, _ errorfs.Op) error {
			percent := rng.IntN(101)
			images = append(images, d.Cut(percent, percent, rng))
			return nil
		})
		disk.On(false)
		o := options(disk)
		o.MaxPackBytes = 1 << 20
		if holes {
			o.punch = zeroHole
		}
		w := fill(t, rng, "packs", o, 60)
		first := some(rng, w.order, 0.6)
		second := some(rng, first, 0.6)
		disk.On(true)
		kept := []int{0}
		for _, keep := range [][]Address{first, second} {
			must.Get(w.reclaim(keep))(t)
			kept = append(kept, len(images))
		}
		disk.On(false)
		mustClose(t, w.s)
		for i, image := range images {
			keep := first
			if i >= kept[1] {
				keep = second
			}
			again := *o
			again.FS = image
			crashed := &filled{s: mustOpen(t, "packs", &again), o: &again, all: w.all}
			for _, a := range keep {
				checkPayload(t, crashed.s, a, w.all[a])
			}
			if _, err := crashed.reclaim(second); err != nil {
				t.Fatalf("image %d: %v", i, err)
			}
			crashed.check(t, second)
			mustClose(t, crashed.s)
		}
		if len(images) < 5 {
			t.Fatalf("%d images", len(images))
		}
	}
}

// Any operation of a reclaim fails. What is kept is there in any case, also after a
// power cut; what is said to be given back is.
func TestReclaimFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	for _, holes := range []bool{true, false} {
		rewritten, punched := false, false
		for k := int64(1); ; k++ {
			var n atomic.Int64
			var on atomic.Bool
			hit := "" // what failed
			fault := func(what string) error {
				if on.Load() && n.Add(1) == k {
					hit = what
					return errorfs.ErrInjected
				}
				return nil
			}
			mem := vfs.NewCrashableMem()
			o := options(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				switch op.Kind {
				case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpRename:
					return fault("a write")
				}
				return fault("another operation")
			})))
			o.MaxPackBytes = 1 << 20
			if holes {
				o.punch = func(f vfs.File, off, n int64) error {
					if err := fault("a hole"); err != nil {
						return err
					}
					return zeroHole(f, off, n)
				}
			}
			rng := rand.New(rand.NewPCG(12, 1))
			w := fill(t, rng, "packs", o, 80)
			keep := some(rng, w.order, 0.5)
			on.Store(true)
			out, err := w.reclaim(keep)
			on.Store(false)
			if err != nil && !errors.Is(err, errorfs.ErrInjected) && !errors.Is(err, kv.ErrCorrupt) {
				t.Fatalf("operation %d: %v", k, err)
			}
			if err == nil && (hit == "a write" || hit == "a hole") {
				t.Fatalf("operation %d, %s, failed, and there was no error", k, hit)
			}
			for _, r := range out {
				rewritten, punched = rewritten || r.Rewritten, punched || r.Punched
			}
			for _, a := range keep {
				checkPayload(t, w.s, a, w.all[a])
			}
			cut := *o
			cut.FS = mem.CrashClone(vfs.CrashCloneCfg{})
			left := &filled{s: mustOpen(t, "packs", &cut), o: &cut, dir: "packs", all: w.all}
			for _, a := range keep {
				checkPayload(t, left.s, a, w.all[a])
			}
			again, againErr := left.reclaim(keep)
			if againErr != nil {
				t.Fatalf("after operation %d and a power cut: %v", k, againErr)
			}
			for _, r := range again {
				if err == nil && r.Rewritten { // a hole may be made twice
					t.Fatalf("operation %d: the new file was not durable: %+v, after %+v", k, r, out)
				}
			}
			left.check(t, keep)
			mustClose(t, left.s)
			if _, err := w.reclaim(keep); err != nil {
				t.Fatalf("again after operation %d: %v", k, err)
			}
			w.check(t, keep)
			mustClose(t, w.s)
			if n.Load() < k {
				break
			}
		}
		if punched != holes || rewritten == holes {
			t.Errorf("holes %v: rewritten %v, punched %v", holes, rewritten, punched)
		}
	}
}

// Readers see right bytes or, of what was given back, an error.
func TestReclaimBesideReaders(t *testing.T) {
	for _, mapped := range []int64{0, -1} {
		rng := rand.New(rand.NewPCG(13, 1))
		o := options(osfs.FS)
		o.MapBytes, o.OpenFiles, o.MaxPackBytes = mapped, 2, 1<<20
		w := fill(t, rng, filepath.Join(t.TempDir(), "packs"), o, 200)
		var stop atomic.Bool
		var wg sync.WaitGroup
		for g := range 3 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(g), 9))
				for !stop.Load() {
					a := w.order[rng.IntN(len(w.order))]
					err := w.s.View(bg, a, 0, a.Length, func(b []byte) error {
						for range 3 {
							if !bytes.Equal(b, w.all[a]) {
								t.Errorf("%+v: wrong bytes", a)
								break
							}
						}
						return nil
					})
					if err != nil && !errors.Is(err, kv.ErrCorrupt) {
						t.Errorf("%+v: %v", a, err)
					}
				}
			})
		}
		for keep := w.order; len(keep) > 0; {
			keep = some(rng, keep, 0.7)
			if _, err := w.reclaim(keep); err != nil {
				t.Error(err)
				break
			}
			for _, a := range keep {
				checkPayload(t, w.s, a, w.all[a])
			}
		}
		stop.Store(true)
		wg.Wait()
		mustClose(t, w.s)
	}
}

// A read that began before keeps its bytes, and Reclaim can be told not to wait
// for it.
func TestReclaimWaitsForReaders(t *testing.T) {
	o := options(vfs.NewMem())
	var w *filled
	var dead Address
	holes := 0
	o.punch = func(f vfs.File, off, n int64) error {
		holes++ // from now on no reader may begin to read what goes
		if _, err := readAll(w.s, dead); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("read beside a hole: %v", err)
		}
		return zeroHole(f, off, n)
	}
	w = &filled{s: mustOpen(t, "packs", o), o: o, all: map[Address][]byte{}}
	a, b := mustAppend(t, w.s, noise[:1<<20]), mustAppend(t, w.s, noise[:100])
	dead = a
	w.seal(t)
	ctx, cancel := context.WithCancel(bg)
	must.Do(t, w.s.View(bg, a, 0, a.Length, func(got []byte) error {
		cancel()
		if _, err := w.s.Reclaim(ctx, a.Pack, live([]Address{b})[b.Pack], math.MaxUint64); !errors.Is(err, context.Canceled) {
			t.Errorf("reclaim beside a reader: %v", err)
		}
		if !bytes.Equal(got, noise[:1<<20]) {
			t.Error("the bytes changed under a reader")
		}
		return nil
	}))
	must.Get(w.s.Reclaim(bg, a.Pack, live([]Address{b})[b.Pack], math.MaxUint64))(t)
	if _, err := readAll(w.s, a); !errors.Is(err, kv.ErrCorrupt) || holes == 0 {
		t.Errorf("read of what was given back: %v, %d holes", err, holes)
	}
	checkPayload(t, w.s, b, noise[:100])
	mustClose(t, w.s)
}

// A file with another name belongs to somebody else too.
func TestReclaimLinked(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 1))
	dir := filepath.Join(t.TempDir(), "packs")
	w := fill(t, rng, dir, options(osfs.FS), 60)
	defer mustClose(t, w.s)
	path := w.s.path(w.order[0].Pack)
	if err := os.Link(path, path+".link"); err != nil {
		t.Skip(err)
	}
	before := must.Get(os.ReadFile(path))(t)
	keep := some(rng, w.order, 0.3)
	out := must.Get(w.reclaim(keep))(t)
	if !out[0].Linked || out[0].Bytes != 0 || out[0].Held == 0 {
		t.Errorf("%+v", out[0])
	}
	after, err := os.ReadFile(path + ".link")
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("a linked file was changed: %v", err)
	}
	w.check(t, w.order)
}

func TestReclaimOfGrowingPack(t *testing.T) {
	s := mustOpen(t, "packs", options(vfs.NewMem()))
	a := mustAppend(t, s, noise[:100])
	if _, err := s.Reclaim(bg, a.Pack, nil, math.MaxUint64); !errors.Is(err, errInUse) {
		t.Errorf("reclaim of a growing pack: %v", err)
	}
	if _, err := s.Reclaim(bg, ID{1}, nil, math.MaxUint64); err != nil {
		t.Errorf("reclaim of no pack: %v", err)
	}
	mustClose(t, s)
}

// FuzzExtents reads damaged headers and extent tables.
func FuzzExtents(f *testing.F) {
	id := newID(incarnation, 7)
	salt := crc(id[:])
	_, table, at := placeExtents([]Extent{{64, 200}, {4160, 90_000}})
	f.Add(table, at, uint64(100_000))
	f.Add([]byte{}, uint64(64), uint64(64))
	f.Fuzz(func(t *testing.T, table []byte, at, size uint64) {
		mem := vfs.NewMem()
		file := must.Get(mem.Create("x", vfs.WriteCategoryUnspecified))(t)
		head := appendExtentHeader(nil, id, salt, table, at, size)
		must.Get(file.Write(append(append(head, make([]byte, max(min(at, 1<<16), uint64(len(head)))-uint64(len(head)))...), table...)))(t)
		defer file.Close()
		lay, err := readLayout(file, id, salt)
		if err != nil || lay == nil {
			return
		}
		for _, e := range lay.extents {
			if got, ok := lay.find(e.from, e.n); !ok && e.n > 0 || ok && e.n > 0 && got != e.at {
				t.Fatalf("extent %+v is found at %d", e, got)
			}
		}
	})
}
