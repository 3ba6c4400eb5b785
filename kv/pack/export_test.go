package pack

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

// TestWhole carries records through bytes in memory into another store, from a pack as it was written
// and from one that was rewritten.
func TestWhole(t *testing.T) {
	ctx := context.Background()
	from, all := sealedWith(t, "from", vfs.NewMem(), 1000, 70_000, 5, 0, 3000, 300_000, 600)
	for _, need := range [][]Address{{all[1], all[4]}, {all[4], all[5], all[6]}} {
		var list []Extent
		for _, a := range need {
			list = append(list, extentOf(a))
		}
		bytes := wholeOf(t, from, all[0].Pack, list)
		to := must.Get(Open("to", &Options{FS: vfs.NewMem(), Incarnation: [8]byte{2}}))(t)
		last := need[len(need)-1]
		_, n, err := to.ImportFrom(ctx, opened(bytes, last.Offset+last.Length), all[0].Pack, list, nil)
		if err != nil || n.Equal != 0 {
			t.Fatalf("%+v, %v", n, err)
		}
		for _, a := range need {
			must.Do(t, to.Verify(ctx, a, nothing))
		}
		if err := to.Verify(ctx, all[0], nothing); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("a payload that was not carried: %v", err)
		}
		must.Do(t, to.Close())
		out, err := from.Reclaim(ctx, all[0].Pack, []Extent{extentOf(all[4]), extentOf(all[5]), extentOf(all[6])}, math.MaxUint64)
		if err != nil || !out.Rewritten && len(need) == 2 {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	if _, err := from.Whole(ctx, ID{9}, nil, 0); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("a pack that is not there: %v", err)
	}
}

// wholeOf returns the whole records of a pack that lie in some ranges.
func wholeOf(t *testing.T, from *Store, id ID, list []Extent) pieces {
	t.Helper()
	w := must.Get(from.Whole(t.Context(), id, list, 1<<40))(t)
	bytes := make(pieces)
	for _, e := range w.Extents {
		b := make([]byte, e.To-e.From)
		must.Get(w.ReadAt(b, int64(e.From)))(t)
		bytes[e] = b
	}
	must.Do(t, w.Close())
	return bytes
}

// pieces are ranges of a pack with zeros between them.
type pieces map[Extent][]byte

func (p pieces) ReadAt(b []byte, off int64) (int, error) {
	clear(b)
	for e, data := range p {
		lo, hi := max(e.From, uint64(off)), min(e.To, uint64(off)+uint64(len(b)))
		if lo < hi {
			copy(b[lo-uint64(off):], data[lo-e.From:hi-e.From])
		}
	}
	return len(b), nil
}

// TestHoleIsNoPayload reads a hole of a file, whose sums of zeros are those of zeros in this pack at
// this place, as damage.
func TestHoleIsNoPayload(t *testing.T) {
	ctx := context.Background()
	const hole, at = 4096, 131072
	for _, n := range []uint64{1000, largeFrom} { // a record that is read with its sums, and one that is not
		offset := uint64(hole)
		id := idWithSalt(crc(make([]byte, n)) ^ uint32(offset*0x9e3779b97f4a7c15>>32))
		if blockSum(crc(id[:]), make([]byte, n), hole) != 0 {
			t.Fatal("the sum of zeros is not 0")
		}
		payload := bytes.Repeat([]byte("x"), 10)
		h := header{at: at, payload: place(at, 0, 10), length: 10}
		record := make([]byte, h.payload-at)
		putHeader(record, &h, crc(id[:]))
		putSums(record, payload, h.payload, crc(id[:]))
		record = append(record, payload...)
		for _, o := range []*Options{{}, {MapBytes: -1}} {
			o.Incarnation = [8]byte{2}
			s := must.Get(Open(t.TempDir(), o))(t)
			end := h.payload + 10
			_, _, err := s.ImportFrom(ctx, opened(pieces{{at, end}: record}, end), id, []Extent{{h.payload, end}}, nil)
			must.Do(t, err)
			must.Do(t, s.Verify(ctx, Address{id, h.payload, 10}, nothing))
			if err = s.View(ctx, Address{id, hole, n}, 0, n, nothing); !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("%d bytes of a hole, map %d: %v", n, o.MapBytes, err)
			}
			must.Do(t, s.Close())
		}
	}
}

// TestForeignRecords leaves out records that reach outside of what is needed, and writes none over another.
func TestForeignRecords(t *testing.T) {
	ctx := context.Background()
	id := ID{7}
	record := func(at, n uint64) (pieces, Extent) {
		payload := bytes.Repeat([]byte("x"), int(n))
		h := header{at: at, payload: place(at, 0, n), length: n}
		b := make([]byte, h.payload-at)
		putHeader(b, &h, crc(id[:]))
		putSums(b, payload, h.payload, crc(id[:]))
		return pieces{{at, h.payload + n}: append(b, payload...)}, Extent{h.payload, h.payload + n}
	}
	s := must.Get(Open(t.TempDir(), &Options{Incarnation: [8]byte{2}}))(t)
	defer s.Close()
	first, need := record(4096, 1000)
	_, n, err := s.ImportFrom(ctx, opened(first, need.To), id, []Extent{{need.From, need.To - 1}}, nil)
	if err != nil || n != (Imported{Cut: need.To}) {
		t.Errorf("a record that is longer than its payload: %+v, %v", n, err)
	}
	_, n, err = s.ImportFrom(ctx, opened(first, need.To), id, []Extent{need}, nil)
	if err != nil || n.End != need.To || n.Cut != 0 {
		t.Errorf("a record: %+v, %v", n, err)
	}
	if _, again, err := s.ImportFrom(ctx, opened(first, need.To), id, []Extent{need}, nil); err != nil || again.Written > 0 || again.End != need.To {
		t.Errorf("again: %+v, %v", again, err)
	}
	for _, at := range []uint64{4096 - 256, 4096 + 512} { // over the header, and in the payload
		other, into := record(at, 300)
		if _, _, err := s.ImportFrom(ctx, opened(other, need.To), id, []Extent{into}, nil); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("a record at %d over another: %v", at, err)
		}
	}
	must.Do(t, s.Verify(ctx, Address{id, need.From, 1000}, nothing))
	after, into := record(8192, 300)
	_, n, err = s.ImportFrom(ctx, opened(after, into.To), id, []Extent{into}, nil)
	if err != nil || n.Written == 0 {
		t.Errorf("a record behind: %+v, %v", n, err)
	}
	if _, _, err := s.ImportFrom(ctx, opened(first, maxImport), id, []Extent{{need.To + 1<<20, need.To + 2<<20}}, nil); !errors.Is(err, kv.ErrTooLarge) {
		t.Errorf("a pack of an exabyte: %v", err)
	}
}

// forward is a reader that is read from front to back, where going back costs requests.
type forward struct {
	io.ReaderAt
	t   *testing.T
	far int64
}

func (f *forward) ReadAt(b []byte, off int64) (int, error) {
	if f.far-off > foreignRun+scanBytes {
		f.t.Errorf("back from %d to %d", f.far, off)
	}
	f.far = max(f.far, off)
	return f.ReaderAt.ReadAt(b, off)
}

// TestForeignForward copies large records without looking at those behind them first.
func TestForeignForward(t *testing.T) {
	from, all := sealedWith(t, "from", vfs.NewMem(), 5<<20, 3<<20, 1<<20, 5<<20, 1000)
	need := []Extent{{all[0].Offset, all[4].Offset + all[4].Length}}
	to := must.Get(Open("to", &Options{FS: vfs.NewMem(), Incarnation: [8]byte{2}}))(t)
	defer to.Close()
	_, n, err := to.ImportFrom(t.Context(), opened(&forward{wholeOf(t, from, all[0].Pack, need), t, 0}, need[0].To), all[0].Pack, need, nil)
	if err != nil || n.End != need[0].To {
		t.Errorf("%+v, %v", n, err)
	}
	for _, a := range all {
		must.Do(t, to.Verify(t.Context(), a, nothing))
	}
}

// idWithSalt returns an ID with a crc32c.
func idWithSalt(sum uint32) (id ID) {
	id[0] = 7
	x := ^sum
	for range 4 {
		i := uint32(0)
		for castagnoli[i]>>24 != x>>24 {
			i++
		}
		x = (x^castagnoli[i])<<8 | i
	}
	binary.LittleEndian.PutUint32(id[12:], x^^crc(id[:12]))
	return id
}

// opened opens a pack for ImportFrom.
func opened(from io.ReaderAt, size uint64) func([]Extent) (io.ReaderAt, uint64, error) {
	return func([]Extent) (io.ReaderAt, uint64, error) { return from, size, nil }
}

// What stays at a Reclaim may end within a record that was not fetched. The record can be imported then, and others are as before.
func TestImportOverSkip(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	from, all := sealedWith(t, filepath.Join(dir, "from"), osfs.FS, 50_000, 50_000, 50_000, 50_000, 50_000, 50_000)
	to := must.Get(Open(filepath.Join(dir, "to"), &Options{FS: osfs.FS, Incarnation: [8]byte{2}, Scratch: true}))(t)
	defer to.Close()
	fetch := func(need ...Address) error {
		var list []Extent
		for _, a := range need {
			list = append(list, extentOf(a))
		}
		bytes := wholeOf(t, from, all[0].Pack, list)
		_, _, err := to.ImportFrom(ctx, opened(bytes, list[len(list)-1].To), all[0].Pack, list, nil)
		return err
	}
	must.Do(t, fetch(all[0], all[2], all[3], all[4], all[5]))
	live := []Extent{{all[0].Offset, all[1].Offset + 15_000}, extentOf(all[5])}
	out, err := to.Reclaim(ctx, all[0].Pack, live, math.MaxUint64)
	if err != nil || out.Bytes == 0 || to.Verify(ctx, all[3], nothing) == nil {
		t.Fatalf("%+v, %v", out, err)
	}
	for _, a := range all[1:5] {
		must.Do(t, fetch(a))
		must.Do(t, to.Verify(ctx, a, nothing))
		must.Do(t, to.Verify(ctx, all[5], nothing))
	}
}
