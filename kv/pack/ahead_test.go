package pack

import (
	"context"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
)

// A reader that goes forward has ever more read ahead, up to a bound; one that jumps has what it
// reads and no more.
func TestAhead(t *testing.T) {
	const n = 1 << 20
	var r runs
	at := uint64(100 * n)
	if ask, run := r.read(at, at+n); run || ask != (span{at, at + n}) {
		t.Errorf("a first read asks for %d, as a run: %t", ask, run)
	}
	before := uint64(0)
	for range 100 {
		at += n
		asked := r.asked.Load()
		ask, run := r.read(at, at+n)
		if !run || ask != (span{}) && (ask.from != asked || ask.to <= ask.from) {
			t.Fatalf("a read at %d asks for %d, as a run: %t; up to %d was asked for before", at, ask, run, asked)
		}
		more := r.asked.Load() - at - n
		if more > aheadMost || more+n < before {
			t.Fatalf("%d bytes are read ahead after %d, the most is %d", more, before, aheadMost)
		}
		before = more
	}
	if before < aheadMost/2 {
		t.Errorf("%d bytes are read ahead of a long run", before)
	}
	for _, at := range []uint64{5 * n, 500 * n, 80 * n, 300 * n} {
		if ask, run := r.read(at, at+n); run || ask != (span{at, at + n}) {
			t.Errorf("a read at %d asks for %d, as a run: %t", at, ask, run)
		}
		if ask, _ := r.read(at, at+n); ask != (span{}) {
			t.Errorf("the second read at %d asks for %d", at, ask)
		}
	}
}

// Two readers of a run, which come to neighbours in turn, leave out nothing that neither has read.
func TestAheadOfTwo(t *testing.T) {
	const n = 1 << 20
	var r runs
	r.read(0, n)
	for at := uint64(n); at < 40*n; at += 2 * n {
		r.read(at+n, at+2*n)
		asked := r.asked.Load()
		r.read(at, at+n)
		if got := r.asked.Load(); got != asked || r.run.Load() != aheadMost {
			t.Fatalf("a read at %d begins a run at %d", at, r.run.Load()-aheadMost)
		}
	}
	if more := r.asked.Load() - 41*n; more < aheadMost/2 {
		t.Errorf("%d bytes are read ahead of a long run", more)
	}
}

// A run goes on at the start of the next pack that was not read, in a store of its own and in
// one that borrows, and a reader that comes there goes on with the run.
func TestAheadInNextPack(t *testing.T) {
	const n = 1 << 20
	for _, borrowed := range []bool{false, true} {
		if borrowed && !mapAhead {
			t.Skip("files are not leased everywhere")
		}
		s := mustOpen(t, t.TempDir(), &Options{MaxPackBytes: 4 * n, Writers: 1})
		defer mustClose(t, s)
		var at []Address
		for range 4 {
			at = append(at, mustAppend(t, s, make([]byte, 3*n)))
		}
		must.Get(s.Sync(bg))(t)
		ids := []ID{at[0].Pack, at[1].Pack, at[2].Pack, at[3].Pack}
		from := s
		if borrowed {
			from = Borrow(nil, "", func(_ context.Context, a Address) (Borrowed, error) {
				f, err := s.File(a)
				if err != nil {
					return nil, err
				}
				return f, nil
			})
			defer mustClose(t, from)
		}
		runs := func(i int) *runs {
			t.Helper()
			h, err := from.files.acquire(from.lookup(ids[i]), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer h.unref()
			if h.data == nil {
				t.Skip("packs are not mapped here")
			}
			return &h.runs
		}
		must.Do(t, from.View(bg, at[2], 0, n, nothing))
		read := runs(2).asked.Load()
		on := func(i int, n uint64) {
			p := from.lookup(ids[i])
			p.runOn(p.handle.Load(), n)
		}
		for _, i := range []int{0, 1, 3} {
			must.Do(t, from.View(bg, at[i], 0, 1, nothing)) // too little for a run
		}
		on(0, n)
		on(0, 2*n) // by another reader of the run
		on(1, n)   // which pack 3 is next to: pack 2 was read
		on(3, n)   // there is no pack behind
		for i, want := range map[int]uint64{1: 2 * n, 2: read, 3: n} {
			if got := runs(i).asked.Load(); got != want {
				t.Errorf("borrowed %t: %d bytes of pack %d are asked for, want %d", borrowed, got, i, want)
			}
		}
		if ask, run := runs(3).read(200, n); !run || ask != (span{n, n + aheadMost}) {
			t.Errorf("borrowed %t: the first read behind a run asks for %d, as a run: %t", borrowed, ask, run)
		}
	}
}

// A reader that begins a run while another one looks does not make that one ask for what lies
// between the two.
func TestAheadBesideJump(t *testing.T) {
	const n = 1 << 20
	var r runs
	r.read(0, n)
	r.read(n, 2*n)
	r.last.Store(4000 * n) // of the other reader, whose run and asked are not stored yet
	ask, _ := r.read(4000*n, 4001*n)
	if ask.from < 4000*n || ask.to > 4001*n+aheadMost {
		t.Errorf("asks for %d", ask)
	}
}

// A store that gave its files back while the next pack was borrowed for a run keeps none.
func TestAheadAfterRelease(t *testing.T) {
	if !mapAhead {
		t.Skip("files are not leased everywhere")
	}
	s := mustOpen(t, t.TempDir(), &Options{MaxPackBytes: 1})
	defer mustClose(t, s)
	at := []Address{mustAppend(t, s, make([]byte, 1<<20)), mustAppend(t, s, make([]byte, 1<<20))}
	must.Get(s.Sync(bg))(t)
	var b *Store
	b = Borrow(nil, "", func(_ context.Context, a Address) (Borrowed, error) {
		f, err := s.File(a)
		if err != nil {
			return nil, err
		}
		if a.Pack == at[1].Pack {
			b.Release(bg)
		}
		return f, nil
	})
	defer mustClose(t, b)
	must.Do(t, b.View(bg, at[0], 0, 1, nothing))
	p := b.lookup(at[0].Pack)
	p.runOn(p.handle.Load(), 1<<20)
	if n := b.files.count.Load(); n != 0 {
		t.Errorf("%d files are open", n)
	}
}

// A read of a run has what follows read by another goroutine, which keeps the map until then.
func TestAheadFetches(t *testing.T) {
	const n = 1 << 20
	s := mustOpen(t, t.TempDir(), &Options{MaxPackBytes: 64 * n})
	var at []Address
	for range 20 {
		at = append(at, mustAppend(t, s, make([]byte, n)))
	}
	must.Get(s.Sync(bg))(t)
	for _, a := range at {
		must.Do(t, s.View(bg, a, 0, n, nothing))
	}
	mustClose(t, s)
}
