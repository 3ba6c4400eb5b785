package pack

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/zarrdb/zarrdb/internal/must"
)

// fileBytes is the size of all files in a directory.
func fileBytes(t testing.TB, fs vfs.FS, dir string) (n uint64) {
	t.Helper()
	names := must.Get(fs.List(dir))(t)
	for _, name := range names {
		fi := must.Get(fs.Stat(fs.PathJoin(dir, name)))(t)
		n += uint64(fi.Size())
	}
	return n
}

// Packs of small payloads of which every other one is dead are written anew one
// after the other, and none is large: at no moment do all files take 2 % more than
// before.
func TestReclaimSpace(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	mem := vfs.NewMem()
	var before, peak uint64
	o := options(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if before > 0 && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			peak = max(peak, fileBytes(t, mem, "packs"))
		}
		return nil
	})))
	o.MaxPackBytes, o.smallest = 0, 256<<10
	rng := rand.New(rand.NewPCG(15, 1))
	w := &filled{s: mustOpen(t, "packs", o), o: o, dir: "packs", all: map[Address][]byte{}}
	var keep []Address
	for i := range 6000 {
		b := random(rng, 4096)
		a := mustAppend(t, w.s, b)
		w.all[a] = b
		if rng.IntN(2) == 0 {
			keep = append(keep, a)
		}
		if i%500 == 0 { // commits
			infos := must.Get(w.s.Sync(bg))(t)
			w.s.Recorded(infos)
		}
	}
	w.seal(t)
	before = fileBytes(t, mem, "packs")
	must.Get(w.reclaim(keep))(t)
	after := fileBytes(t, mem, "packs")
	t.Logf("%d packs, %d bytes, at most %d more, then %d", len(w.s.Infos()), before, peak-min(before, peak), after)
	if peak > before+before/50 {
		t.Errorf("%d bytes became %d meanwhile", before, peak)
	}
	if after > before*11/20 {
		t.Errorf("%d bytes are left of %d", after, before)
	}
	w.check(t, keep)
	mustClose(t, w.s)
}

// A pack is as large as a share of what is on disk says, of which holes and what
// was rewritten are no part.
func TestPackLimit(t *testing.T) {
	o := options(vfs.NewMem())
	o.MaxPackBytes, o.smallest = 0, 64<<10
	s := mustOpen(t, "packs", o)
	for _, c := range []struct{ bytes, want uint64 }{
		{0, 64 << 10}, {64 * 64 << 10, 64 << 10}, {64 * 100 << 10, 100 << 10}, {1 << 40, 4 << 30},
	} {
		p := newPack(s, newID(incarnation, 1), math.MaxUint64) // a size that is never asked for
		p.onDisk.Store(c.bytes)
		if c.bytes == 0 {
			p = newPack(s, newID(incarnation, 1), 1000)
		}
		s.mu.Lock()
		s.setPack(p.id, p)
		s.mu.Unlock()
		if got := s.packLimit(); got != c.want {
			t.Errorf("with %d bytes on disk a pack has %d, want %d", c.bytes, got, c.want)
		}
	}
	s.mu.Lock()
	s.setPack(newID(incarnation, 1), nil)
	s.mu.Unlock()
	var first ID
	for i := range 100 {
		a := mustAppend(t, s, noise[:4096])
		if i == 0 {
			first = a.Pack
		}
	}
	if i := s.lookup(first).info(); i.Size > 64<<10 || i.Size < 56<<10 {
		t.Errorf("the first pack: %+v", i)
	}
	mustClose(t, s)
}
