package pack

import (
	"bytes"
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

// What is exported of packs that grow, were rewritten or have holes is a store
// with those payloads at their addresses, and takes little more room than they do.
func TestExport(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 31))
		o := options(vfs.NewMem())
		o.MaxPackBytes = 1 << 20
		if seed%2 == 0 {
			o.punch = zeroHole
		}
		w := fill(t, rng, "packs", o, 80)
		keep := w.order
		if seed > 1 {
			keep = some(rng, keep, 0.5)
			if _, err := w.reclaim(keep); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 { // into a pack that grows
			b := random(rng, rng.IntN(90_000))
			a := mustAppend(t, w.s, b)
			w.all[a] = b
			keep = append(slices.Clip(keep), a)
		}
		if _, err := w.s.Sync(bg); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, w.s, noise[:100]) // is not synced, and not exported
		keep = some(rng, keep, 0.8)

		to := options(vfs.NewMem())
		to.Incarnation = [8]byte{9}
		if err := to.FS.MkdirAll("copy", 0o755); err != nil {
			t.Fatal(err)
		}
		var payloads uint64
		for id, need := range live(keep) {
			var b bytes.Buffer
			var told uint64
			info, err := w.s.Export(bg, id, need, &b, func(n uint64) { told = n })
			if err != nil {
				t.Fatal(err)
			}
			if told != uint64(b.Len()) {
				t.Errorf("%d bytes of %d were told of", told, b.Len())
			}
			for _, e := range need {
				payloads += e.To - e.From
			}
			to.Table = append(to.Table, info)
			f, err := to.FS.Create("copy/"+FileName(id), vfs.WriteCategoryUnspecified)
			if err == nil {
				_, err = f.Write(b.Bytes())
			}
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}
		slices.SortFunc(to.Table, func(a, b Info) int { return cmp.Compare(a.ID.Counter(), b.ID.Counter()) })
		if n := fileBytes(t, to.FS, "copy"); n > payloads+uint64(len(keep))*(largeAlign+200) {
			t.Errorf("%d bytes of payloads took %d", payloads, n)
		}
		c := &filled{s: mustOpen(t, "copy", to), o: to, all: w.all}
		for i, info := range c.s.Infos() {
			if info != to.Table[i] {
				t.Errorf("%+v is %+v", to.Table[i], info)
			}
		}
		c.check(t, keep)
		mustClose(t, c.s)
		mustClose(t, w.s)
	}
}

func TestExportErrors(t *testing.T) {
	from, all := sealedWith(t, "from", vfs.NewMem(), 1000, 70_000)
	full := errors.New("full")
	if _, err := from.Export(bg, all[0].Pack, []Extent{extentOf(all[1])}, failingWriter{full}, nil); !errors.Is(err, full) {
		t.Errorf("a failed write: %v", err)
	}
	for _, e := range []Extent{{0, 10}, {all[1].Offset, 1 << 40}} {
		if _, err := from.Export(bg, all[0].Pack, []Extent{e}, &bytes.Buffer{}, nil); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("%+v: %v", e, err)
		}
	}
	if _, err := from.Export(bg, ID{7}, nil, &bytes.Buffer{}, nil); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("no pack: %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
