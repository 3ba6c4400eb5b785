//go:build unix && !aix

package pack

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// leased is a store with payloads of one size, of which every second one is live.
func leased(t *testing.T, n, size int) (w *filled, keep []Address) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	w = &filled{o: &Options{MaxPackBytes: 1 << 30}, dir: t.TempDir(), all: map[Address][]byte{}}
	w.s = mustOpen(t, w.dir, w.o)
	for i := range n {
		b := random(rng, size)
		a := mustAppend(t, w.s, b)
		w.all[a], w.order = b, append(w.order, a)
		if i%2 == 0 {
			keep = append(keep, a)
		}
	}
	w.seal(t)
	return w, keep
}

// holds reports whether a payload is in the file of a lease, as another process reads it.
func holds(t *testing.T, f *File, payload []byte) bool {
	t.Helper()
	b := make([]byte, must.Get(f.Stat())(t).Size())
	if got, err := unix.Pread(int(f.Fd()), b, 0); got != len(b) || err != nil {
		t.Fatalf("%d bytes, %v", got, err)
	}
	return bytes.Contains(b, payload)
}

func reclaim(t *testing.T, s *Store, id ID, keep []Address) Reclaimed {
	t.Helper()
	dry := must.Get(s.Reclaimable(bg, id, live(keep)[id], math.MaxUint64))(t)
	out := must.Get(s.Reclaim(bg, id, live(keep)[id], math.MaxUint64))(t)
	if dry.Leased != out.Leased || dry.Rewritten != out.Rewritten {
		t.Errorf("%+v was announced, it was %+v", dry, out)
	}
	return out
}

// No holes are made in a file that somebody has open or mapped.
func TestLeaseKeepsBytes(t *testing.T) {
	const size = 1 << 20
	w, keep := leased(t, 8, size)
	dead := w.order[1]
	f := must.Get(w.s.File(dead))(t)
	_, place, err := w.s.Locate(dead)
	must.Do(t, err)
	if out := reclaim(t, w.s, dead.Pack, keep); !out.Leased || out.Punched || out.Rewritten || out.Bytes != 0 || out.Held < 4*size {
		t.Errorf("beside a descriptor: %+v", out)
	}
	page := place &^ (1<<16 - 1)
	skip := int(place - page)
	m := must.Get(unix.Mmap(int(f.Fd()), page, skip+size, unix.PROT_READ, unix.MAP_SHARED))(t)
	must.Do(t, f.Close())
	if out := reclaim(t, w.s, dead.Pack, keep); !out.Leased || out.Bytes != 0 {
		t.Errorf("beside a map: %+v", out)
	}
	if !bytes.Equal(m[skip:], w.all[dead]) {
		t.Error("the bytes have changed")
	}
	// What is refused for a while is not forbidden.
	if b, err := readAll(w.s, dead); err != nil || !bytes.Equal(b, w.all[dead]) {
		t.Error("the payload is gone from the store")
	}
	must.Do(t, unix.Munmap(m))
	if out := reclaim(t, w.s, dead.Pack, keep); out.Leased || !out.Punched || out.Bytes < 3*size {
		t.Errorf("afterwards: %+v", out)
	}
	if _, err := w.s.File(dead); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("a lease of what is gone: %v", err)
	}
	f = must.Get(w.s.File(keep[1]))(t)
	if !holds(t, f, w.all[keep[1]]) {
		t.Error("a live payload has changed")
	}
	f.Close()
}

// Who has the file of a pack that is written anew or removed goes on with the old
// one; the new one is another file.
func TestLeaseOfRewrittenPack(t *testing.T) {
	const size = 2000
	w, keep := leased(t, 400, size)
	id := keep[0].Pack
	old := must.Get(w.s.File(w.order[1]))(t)
	defer old.Close()
	kept := must.Get(w.s.File(keep[5]))(t)
	defer kept.Close()
	if out := reclaim(t, w.s, id, keep); !out.Rewritten || out.Leased {
		t.Fatalf("%+v", out)
	}
	if !holds(t, old, w.all[w.order[1]]) || !holds(t, kept, w.all[keep[5]]) {
		t.Error("the old file has changed")
	}
	fresh := must.Get(w.s.File(keep[5]))(t)
	defer fresh.Close()
	if holds(t, fresh, w.all[w.order[1]]) || !holds(t, fresh, w.all[keep[5]]) {
		t.Error("the new file has what was given back, or lacks what was kept")
	}
	if out, err := w.s.Reclaim(bg, id, nil, math.MaxUint64); err != nil || !out.Removed {
		t.Fatalf("%+v, %v", out, err)
	}
	if !holds(t, fresh, w.all[keep[5]]) {
		t.Error("the file of a removed pack has changed")
	}
}

// A payload of a pack that grows is in the file when it is leased.
func TestLeaseOfGrowingPack(t *testing.T) {
	s := mustOpen(t, t.TempDir(), nil)
	want := random(rand.New(rand.NewPCG(3, 4)), 3000)
	a := mustAppend(t, s, want)
	f := must.Get(s.File(a))(t)
	defer f.Close()
	if !holds(t, f, want) {
		t.Error("other bytes are in the file")
	}
}
