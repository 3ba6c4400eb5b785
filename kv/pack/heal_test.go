package pack

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/zarrdb/zarrdb/internal/crashtest"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// healed heals one payload.
func healed(s *Store, a Address, b []byte, grow bool) (int, error) {
	_, n, err := s.Heal(context.Background(), a.Pack, []Address{a}, grow, func(int) ([]byte, error) { return b, nil })
	return n, err
}

// flip damages bytes [from, to) of the file of a pack.
func flip(t *testing.T, fs vfs.FS, dir string, id ID, from, to uint64) {
	t.Helper()
	f := must.Get(fs.OpenReadWrite(fs.PathJoin(dir, FileName(id)), vfs.WriteCategoryUnspecified))(t)
	defer f.Close()
	b := make([]byte, to-from)
	must.Get(f.ReadAt(b, int64(from)))(t)
	for i := range b {
		b[i] ^= 0xff
	}
	must.Get(f.WriteAt(b, int64(from)))(t)
}

// Any range of a growing, sealed or rewritten pack may be damaged: payload, sums, header of
// a record. Healing makes the payload sound and leaves its neighbours as they were.
func TestHealAnyDamage(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		fs := vfs.NewMem()
		s := mustOpen(t, "p", &Options{FS: fs, Incarnation: [8]byte{1}, Writers: 1})
		var all []Address
		var bytesOf [][]byte
		for range 12 {
			n := rng.IntN(3000)
			if rng.IntN(3) == 0 {
				n = rng.IntN(200_000)
			}
			b := random(rng, n)
			all, bytesOf = append(all, mustAppend(t, s, b)), append(bytesOf, b)
		}
		must.Get(s.Sync(context.Background()))(t)
		keep := all
		if seed%3 > 0 {
			s.Seal(all[0].Pack)
			must.Get(s.Sync(context.Background()))(t)
		}
		if seed%3 == 2 {
			s.o.punch = func(vfs.File, int64, int64) error { return errors.ErrUnsupported }
			keep, bytesOf = all[6:], bytesOf[6:]
			must.Get(s.Reclaim(context.Background(), all[0].Pack, []Extent{{keep[0].Offset, keep[5].Offset + keep[5].Length}}, 1<<60))(t)
		}
		i := rng.IntN(len(keep))
		a := keep[i]
		_, at, err := s.Locate(a)
		must.Do(t, err)
		front := fixedSize + sumSize*blocks(a.Length) + backSize
		from := uint64(at) - front + rng.Uint64N(front+a.Length)
		to := min(from+1+rng.Uint64N(10), uint64(at)+a.Length)
		flip(t, fs, "p", a.Pack, from, to)
		if s.Verify(context.Background(), a, nothing) == nil && a.Length > 0 && from >= uint64(at) {
			t.Fatalf("seed %d: no damage", seed)
		}
		if _, err := healed(s, a, bytesOf[i], false); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i, a := range keep {
			if err := s.Verify(context.Background(), a, func(b []byte) error {
				if !bytes.Equal(b, bytesOf[i]) {
					t.Errorf("seed %d: payload %d has other bytes", seed, i)
				}
				return nil
			}); err != nil {
				t.Errorf("seed %d: payload %d: %v", seed, i, err)
			}
		}
		if n, err := healed(s, a, bytesOf[i], false); n != 0 || err != nil {
			t.Errorf("seed %d: healed twice: %d, %v", seed, n, err)
		}
		mustClose(t, s)
	}
}

// The header of a file follows from its name, and a sound payload shows that the file was
// not rewritten.
func TestHealHeaderOfFile(t *testing.T) {
	fs := vfs.NewMem()
	s, all := sealedWith(t, "p", fs, 100_000, 70_000)
	want := must.Get(readAll(s, all[0]))(t)
	flip(t, fs, "p", all[0].Pack, 3, 30)
	s.lookup(all[0].Pack).drop()
	if _, err := readAll(s, all[1]); !errors.Is(err, kv.ErrCorrupt) {
		t.Fatalf("read: %v", err)
	}
	must.Get(healed(s, all[0], want, false))(t)
	if _, err := readAll(s, all[1]); err != nil {
		t.Error(err)
	}
}

// Bytes of another payload are never written over.
func TestHealRefusesAnotherPayload(t *testing.T) {
	s, all := sealedWith(t, "p", vfs.NewMem(), 100_000)
	want := must.Get(readAll(s, all[0]))(t)
	other := bytes.Clone(want)
	other[70_000]++
	if _, err := healed(s, all[0], other, true); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("heal: %v", err)
	}
	checkPayload(t, s, all[0], want)
	if _, err := healed(s, all[0], want[1:], true); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("heal with another length: %v", err)
	}
}

// A pack that is missing or ends early comes back from its payloads, if that is asked for.
func TestHealGrows(t *testing.T) {
	for _, left := range []int64{-1, 0, 10, 50_000, 100_100} {
		fs := vfs.NewMem()
		s, all := sealedWith(t, "p", fs, 100_000, 500, 70_000)
		id := all[0].Pack
		var want [][]byte
		for _, a := range all {
			b := must.Get(readAll(s, a))(t)
			want = append(want, b)
		}
		table := s.Infos()
		mustClose(t, s)
		name := fs.PathJoin("p", FileName(id))
		old := []byte(fileOf(t, fs, name))
		must.Do(t, fs.Remove(name))
		if left >= 0 {
			f := must.Get(fs.Create(name, vfs.WriteCategoryUnspecified))(t)
			must.Get(f.Write(old[:left]))(t)
			f.Close()
		}
		s = mustOpen(t, "p", &Options{FS: fs, Incarnation: [8]byte{1}, Table: table})
		if _, err := healed(s, all[2], want[2], false); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("%d: heal without growth: %v", left, err)
		}
		info, n, err := s.Heal(context.Background(), id, all, true, func(i int) ([]byte, error) {
			if i == 1 {
				return nil, nil
			}
			return want[i], nil
		})
		if err != nil || n == 0 || info.Missing || info.Size != table[0].End {
			t.Fatalf("%d: %+v, %d, %v", left, info, n, err)
		}
		checkPayload(t, s, all[0], want[0])
		checkPayload(t, s, all[2], want[2])
		if _, err := readAll(s, all[1]); err == nil && left < 100_000 {
			t.Errorf("%d: the payload that was left out reads", left)
		}
		mustClose(t, s)
	}
}

func fileOf(t *testing.T, fs vfs.FS, path string) string {
	t.Helper()
	f := must.Get(fs.Open(path))(t)
	defer f.Close()
	n := must.Get(fileSize(f))(t)
	b := make([]byte, n)
	must.Get(f.ReadAt(b, 0))(t)
	return string(b)
}

// A crash or an error at any write of a heal leaves the neighbours as they were, and the
// payload damaged or sound; healing again makes it sound.
func TestHealSurvivesCrashes(t *testing.T) {
	for stop := 0; ; stop++ {
		mem := vfs.NewCrashableMem()
		n, percent := 0, stop*37%101
		var crashed *vfs.MemFS
		fs := crashtest.NewDisk(mem, func(d *crashtest.Disk, _ errorfs.Op) error {
			if n++; n-1 == stop {
				crashed = d.Cut(percent, percent, rand.New(rand.NewPCG(uint64(stop), 2)))
				return errorfs.ErrInjected
			}
			return nil
		})
		fs.On(false)
		s, all := sealedWith(t, "p", fs, 1000, 200_000, 1000)
		var want [][]byte
		for _, a := range all {
			b := must.Get(readAll(s, a))(t)
			want = append(want, b)
		}
		flip(t, fs, "p", all[1].Pack, all[1].Offset-30, all[1].Offset+100_000)
		f, err := fs.OpenReadWrite(fs.PathJoin("p", FileName(all[1].Pack)), vfs.WriteCategoryUnspecified)
		must.Do(t, err)
		must.Do(t, errors.Join(f.Sync(), f.Close()))
		fs.On(true)
		_, err = healed(s, all[1], want[1], false)
		fs.On(false)
		table := s.Infos()
		mustClose(t, s)
		if crashed == nil {
			must.Do(t, err)
			if stop < 4 {
				t.Errorf("only %d writes", stop)
			}
			return
		}
		if !errors.Is(err, errorfs.ErrInjected) {
			t.Errorf("write %d failed, and the heal says %v", stop, err)
		}
		for _, fs := range []vfs.FS{crashed, mem} {
			s := mustOpen(t, "p", &Options{FS: fs, Incarnation: [8]byte{1}, Table: table})
			for i, a := range all {
				b, err := readAll(s, a)
				if err == nil && !bytes.Equal(b, want[i]) {
					t.Errorf("write %d: payload %d has other bytes", stop, i)
				}
				if err != nil && i != 1 {
					t.Errorf("write %d: payload %d: %v", stop, i, err)
				}
			}
			if _, err := healed(s, all[1], want[1], false); err != nil {
				t.Errorf("write %d: again: %v", stop, err)
			}
			checkPayload(t, s, all[1], want[1])
			mustClose(t, s)
		}
	}
}

// A pack that grows gets payloads while an earlier one is healed: these stay whole.
func TestHealBesideAppends(t *testing.T) {
	s := mustOpen(t, "p", &Options{FS: vfs.NewMem(), Incarnation: [8]byte{1}, Writers: 1})
	defer mustClose(t, s)
	want := bytes.Repeat([]byte{1}, 3000)
	a := mustAppend(t, s, want)
	must.Get(s.Sync(context.Background()))(t)
	var later Address
	_, _, err := s.Heal(context.Background(), a.Pack, []Address{a}, true, func(int) ([]byte, error) {
		later = mustAppend(t, s, bytes.Repeat([]byte{2}, 3000))
		_, err := s.Sync(context.Background())
		return want, err
	})
	must.Do(t, err)
	checkPayload(t, s, a, want)
	checkPayload(t, s, later, bytes.Repeat([]byte{2}, 3000))
}

// A pack that grows gets its header back in place, also if no payload shows that the file
// was not rewritten: [Unreadable] would have the file replaced below its writer.
func TestHealHeaderOfGrowingPack(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, "p", &Options{FS: fs, Incarnation: [8]byte{1}, Writers: 1})
	all := []Address{mustAppend(t, s, bytes.Repeat([]byte{1}, 3000)), mustAppend(t, s, bytes.Repeat([]byte{2}, 3000))}
	must.Get(s.Sync(context.Background()))(t)
	flip(t, fs, "p", all[0].Pack, 3, 30)
	flip(t, fs, "p", all[0].Pack, fileHeaderSize, all[0].Offset+10)
	must.Get(healed(s, all[0], bytes.Repeat([]byte{1}, 3000), true))(t)
	all = append(all, mustAppend(t, s, bytes.Repeat([]byte{3}, 3000)))
	table := must.Get(s.Sync(context.Background()))(t)
	mustClose(t, s)
	s = mustOpen(t, "p", &Options{FS: fs, Incarnation: [8]byte{1}, Table: table})
	defer mustClose(t, s)
	for i, a := range all {
		checkPayload(t, s, a, bytes.Repeat([]byte{byte(i + 1)}, 3000))
		if err := s.Verify(context.Background(), a, nothing); err != nil {
			t.Error(err)
		}
	}
}

// What a failed pack has behind its durable end stays lost when an earlier payload is healed.
func TestHealFailedPack(t *testing.T) {
	f := crashtest.Faults{Match: crashtest.IsSync}
	f.Off.Store(true)
	fs := f.Wrap(vfs.NewMem())
	s := mustOpen(t, "p", &Options{FS: fs, Incarnation: [8]byte{1}, Writers: 1})
	defer s.Close()
	want := bytes.Repeat([]byte{1}, 3000)
	a := mustAppend(t, s, want)
	must.Get(s.Sync(context.Background()))(t)
	lost := mustAppend(t, s, want)
	f.Off.Store(false)
	if _, err := s.Sync(context.Background()); !errors.Is(err, ErrFailed) {
		t.Fatalf("sync: %v", err)
	}
	f.Off.Store(true)
	s.Resume()
	before := s.lookup(a.Pack).info()
	flip(t, fs, "p", a.Pack, a.Offset, a.Offset+10)
	info, n, err := s.Heal(context.Background(), a.Pack, []Address{a}, true, func(int) ([]byte, error) { return want, nil })
	if err != nil || n != 1 || info.End != before.End || s.Durable(lost) {
		t.Errorf("%+v, before %+v, %d, %v", info, before, n, err)
	}
	checkPayload(t, s, a, want)
}
