package pack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

// smallPack returns the bytes of a pack and what is in it.
func smallPack(t testing.TB, sizes ...int) (id ID, file []byte, payloads map[Address][]byte) {
	mem := vfs.NewMem()
	s := mustOpen(t, "packs", options(mem))
	payloads = map[Address][]byte{}
	rng := rand.New(rand.NewPCG(4, 4))
	for _, n := range sizes {
		b := random(rng, n)
		a := mustAppend(t, s, b)
		payloads[a] = b
		id = a.Pack
	}
	must.Get(s.Sync(bg))(t)
	data := must.Get(mem.UnsafeGetFileDataBuffer(s.path(id)))(t)
	file = bytes.Clone(data)
	mustClose(t, s)
	return id, file, payloads
}

// TestFlippedByte damages every byte of a pack, one at a time. What is read is
// right or an error, what a scan finds is right.
func TestFlippedByte(t *testing.T) {
	if testing.Short() {
		t.Skip("the work of one goroutine, many times")
	}
	id, file, payloads := smallPack(t, 100, 0, 33, 70_000, 8)
	mem := vfs.NewMem()
	must.Do(t, mem.MkdirAll("packs", 0o777))
	path := "packs/" + id.String() + packSuffix
	f := must.Get(mem.Create(path, vfs.WriteCategoryUnspecified))(t)
	must.Get(f.Write(bytes.Clone(file)))(t)
	f.Close()
	data := must.Get(mem.UnsafeGetFileDataBuffer(path))(t)
	large := Address{}
	for a := range payloads {
		if a.Length >= largeFrom {
			large = a
		}
	}
	noticed := 0
	for i := range file {
		// The inside of the large payload is one case repeated.
		if uint64(i) > large.Offset+100 && uint64(i) < large.Offset+large.Length-100 && i%997 != 0 {
			continue
		}
		data[i] ^= 1 << (i % 8)
		s := mustOpen(t, "packs", &Options{FS: mem, ReadOnly: true})
		bad := 0
		for a, b := range payloads {
			got, err := readAll(s, a)
			if err != nil && !errors.Is(err, kv.ErrCorrupt) {
				t.Fatalf("byte %d: %v", i, err)
			}
			if err == nil && !bytes.Equal(got, b) {
				t.Fatalf("byte %d: wrong bytes at %+v", i, a)
			}
			inside := uint64(i) >= a.Offset && uint64(i) < a.Offset+a.Length
			if err == nil && inside {
				t.Fatalf("byte %d: damage of %+v was not noticed", i, a)
			}
			if err := s.Verify(bg, a, nothing, ownerOf(b)); err != nil {
				bad++
				if !errors.Is(err, kv.ErrCorrupt) {
					t.Fatalf("byte %d: check: %v", i, err)
				}
			} else if inside {
				t.Fatalf("byte %d: check noticed nothing", i)
			}
		}
		found := 0
		for r, err := range s.Records(bg, id, 0) {
			if err != nil {
				if !errors.Is(err, kv.ErrCorrupt) {
					t.Fatalf("byte %d: scan: %v", i, err)
				}
				continue
			}
			b, ok := payloads[r.Address]
			if !ok || string(r.Owner.Key) != string(ownerOf(b).Key) {
				t.Fatalf("byte %d: scan found %+v", i, r)
			}
			found++
		}
		if found < len(payloads)-1 {
			t.Fatalf("byte %d: scan lost %d records", i, len(payloads)-found)
		}
		if bad > 0 {
			noticed++
		}
		mustClose(t, s)
		data[i] ^= 1 << (i % 8)
	}
	if noticed < 500 {
		t.Fatalf("noticed only %d", noticed)
	}
}

// TestWrongPlace swaps packs, and records in a pack: checksums alone would fit.
func TestWrongPlace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "packs")
	o := options(osfs.FS)
	o.MaxPackBytes = 1000
	s := mustOpen(t, dir, o)
	one, two := mustAppend(t, s, bytes.Repeat([]byte("a"), 900)), mustAppend(t, s, bytes.Repeat([]byte("b"), 900))
	infos, err := s.Sync(bg)
	if err != nil || one.Pack == two.Pack {
		t.Fatal(err)
	}
	mustClose(t, s)
	must.Do(t, os.Rename(s.path(one.Pack), s.path(two.Pack)))
	o.Table = infos
	s = mustOpen(t, dir, o)
	two.Offset = one.Offset
	if _, err := readAll(s, two); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("pack under another name: %v", err)
	}
	for r, err := range s.Records(bg, two.Pack, 0) {
		if err == nil {
			t.Errorf("scan of a pack under another name: %+v", r)
		}
	}
	mustClose(t, s)
}

// TestUnknownFormat opens packs of a later version.
func TestUnknownFormat(t *testing.T) {
	for name, change := range map[string]func(head []byte){
		`pack format 2, and this one knows pack formats up to 1; use a version whose "zarrdb version" says pack format 2`: func(h []byte) { h[8] = 2 },
		"flags 0x2, which this one does not know; use the newest version":                                                 func(h []byte) { h[12] = 2 },
	} {
		id, file, payloads := smallPack(t, 100)
		change(file)
		binary.LittleEndian.PutUint32(file[60:], crc(file[:60]))
		mem := vfs.NewMem()
		must.Do(t, mem.MkdirAll("packs", 0o777))
		f := must.Get(mem.Create("packs/"+id.String()+packSuffix, vfs.WriteCategoryUnspecified))(t)
		must.Get(f.Write(file))(t)
		f.Close()
		s := mustOpen(t, "packs", &Options{FS: mem})
		for a := range payloads {
			if _, err := readAll(s, a); !errors.Is(err, errFormat) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for r, err := range s.Records(bg, id, 0) {
			if !errors.Is(err, errFormat) {
				t.Errorf("%s: scan: %+v %v", name, r, err)
			}
		}
		mustClose(t, s)
	}
}

// FuzzRecords scans any bytes as a pack: no panic, an end, and only records
// that lie in the file.
func FuzzRecords(f *testing.F) {
	id, file, _ := smallPack(f, 30, 0, 100)
	f.Add(file, uint64(0))
	f.Add(file[:len(file)-20], uint64(8))
	f.Add(append(bytes.Clone(file[:200]), file...), uint64(100))
	f.Add([]byte{}, uint64(0))
	f.Fuzz(func(t *testing.T, file []byte, from uint64) {
		mem := vfs.NewMem()
		must.Do(t, mem.MkdirAll("packs", 0o777))
		w := must.Get(mem.Create("packs/"+id.String()+packSuffix, vfs.WriteCategoryUnspecified))(t)
		must.Get(w.Write(bytes.Clone(file)))(t)
		w.Close()
		s := mustOpen(t, "packs", &Options{FS: mem, ReadOnly: true})
		defer mustClose(t, s)
		last := uint64(0)
		for r, err := range s.Records(bg, id, from) {
			if err != nil {
				if !errors.Is(err, kv.ErrCorrupt) {
					t.Fatal(err)
				}
				continue
			}
			if r.Header < last || r.Offset < r.Header || r.Offset+r.Length > uint64(len(file)) {
				t.Fatalf("record %+v in %d bytes", r, len(file))
			}
			last = r.Offset + r.Length
			if err := s.Verify(bg, r.Address, nothing, r.Owner); err != nil && !errors.Is(err, kv.ErrCorrupt) {
				t.Fatal(err)
			}
		}
	})
}

// FuzzView reads any address of a good pack.
func FuzzView(f *testing.F) {
	id, file, payloads := smallPack(f, 100, 0, 33, 70_000, 8)
	for a := range payloads {
		f.Add(a.Offset, a.Length, uint64(0), a.Length)
	}
	mem := vfs.NewMem()
	must.Do(f, mem.MkdirAll("packs", 0o777))
	w := must.Get(mem.Create("packs/"+id.String()+packSuffix, vfs.WriteCategoryUnspecified))(f)
	must.Get(w.Write(file))(f)
	w.Close()
	f.Fuzz(func(t *testing.T, offset, length, off, n uint64) {
		s := mustOpen(t, "packs", &Options{FS: mem, ReadOnly: true})
		defer mustClose(t, s)
		a := Address{id, offset, length}
		err := s.View(bg, a, off, n, func(b []byte) error {
			if n > 0 {
				want, ok := payloads[a]
				if !ok || !bytes.Equal(b, want[off:off+n]) {
					t.Fatalf("%+v [%d, +%d) was read", a, off, n)
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, kv.ErrCorrupt) && !errors.Is(err, kv.ErrRange) && !errors.Is(err, errTooLarge) {
			t.Fatal(err)
		}
	})
}
