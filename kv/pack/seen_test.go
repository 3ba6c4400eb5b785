package pack

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/zarrdb/zarrdb/internal/mmap"
	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

// seenStore is a store on disk, with maps, of large payloads that were read once, and their
// bytes.
func seenStore(t *testing.T, o *Options, n int) (s *Store, dir string, list []Address, all [][]byte) {
	t.Helper()
	if !mmap.Supported || strconv.IntSize == 32 { // with an address space for few maps
		t.Skip("files are not mapped here")
	}
	rng := rand.New(rand.NewPCG(1, 1))
	dir = t.TempDir()
	s = mustOpen(t, dir, o)
	t.Cleanup(func() { _ = s.Close() })
	for range n {
		b := random(rng, 3*blockSize+100)
		list, all = append(list, mustAppend(t, s, b)), append(all, b)
	}
	synced(t, s)
	for i, a := range list {
		checkPayload(t, s, a, all[i])
	}
	return s, dir, list, all
}

func synced(t *testing.T, s *Store) {
	t.Helper()
	infos := must.Get(s.Sync(bg))(t)
	s.Recorded(infos)
}

// rot flips a byte in the second block of a payload, where its file has it.
func rot(t *testing.T, s *Store, dir string, a Address) {
	t.Helper()
	_, at, err := s.Locate(a)
	must.Do(t, err)
	off := uint64(at) + blockSize + 5
	flip(t, osfs.FS, dir, a.Pack, off, off+1)
}

func view(s *Store, a Address) error { return s.View(bg, a, 0, a.Length, nothing) }

// A whole block that was compared is not compared again by a read. Everything that looks for
// damage finds it, and so does every later read.
func TestSeenBlocks(t *testing.T) {
	broken := errors.New("does not decode")
	for name, look := range map[string]func(s *Store, a Address) error{
		"reread": func(s *Store, a Address) error { return s.Reread(bg, a, 0, a.Length, nothing) },
		"verify": func(s *Store, a Address) error { return s.Verify(bg, a, nothing) },
		"error of the callback": func(s *Store, a Address) error {
			return s.View(bg, a, 0, a.Length, func([]byte) error { return broken })
		},
		"wrong length": func(s *Store, a Address) error {
			a.Length -= blockSize
			return view(s, a)
		},
		"another handle": func(s *Store, a Address) error {
			s.lookup(a.Pack).drop()
			return view(s, a)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir, list, all := seenStore(t, options(osfs.FS), 2)
			a := list[0]
			rot(t, s, dir, a)
			if err := view(s, a); err != nil {
				t.Fatalf("a block that was compared was compared again: %v", err)
			}
			if err := look(s, a); !errors.Is(err, kv.ErrCorrupt) {
				t.Fatalf("damage was not found: %v", err)
			}
			if err := view(s, a); !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("damage that was found is not found by a read: %v", err)
			}
			checkPayload(t, s, list[1], all[1])
		})
	}
}

// With VerifyReads, and for parts of a block, every read compares.
func TestSeenBlocksOption(t *testing.T) {
	o := options(osfs.FS)
	o.VerifyReads = true
	s, dir, list, _ := seenStore(t, o, 1)
	rot(t, s, dir, list[0])
	if err := view(s, list[0]); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("damage was not found: %v", err)
	}
	s, dir, list, _ = seenStore(t, options(osfs.FS), 1)
	_, at, err := s.Locate(list[0])
	must.Do(t, err)
	end := uint64(at) + list[0].Length
	flip(t, osfs.FS, dir, list[0].Pack, end-1, end)
	if err := view(s, list[0]); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("damage of a short block was not found: %v", err)
	}
}

// An error of the callback stays what it is if the bytes are sound.
func TestSeenBlocksKeepErrors(t *testing.T) {
	s, _, list, _ := seenStore(t, options(osfs.FS), 1)
	broken := errors.New("does not decode")
	for range 2 {
		if err := s.View(bg, list[0], 0, list[0].Length, func([]byte) error { return broken }); err != broken {
			t.Errorf("%v, want %v", err, broken)
		}
	}
}

// What changes the file of a pack has its blocks compared again, also those that it did not
// change.
func TestSeenBlocksOfChangedFiles(t *testing.T) {
	small := func() *Options {
		return &Options{FS: osfs.FS, Incarnation: incarnation, MaxPackBytes: 1 << 20, Writers: 1}
	}
	seal := func(t *testing.T, s *Store, id ID) {
		s.Seal(id)
		synced(t, s)
	}
	for name, change := range map[string]func(t *testing.T, s *Store, list []Address, all [][]byte){
		"healed, growing": func(t *testing.T, s *Store, list []Address, all [][]byte) {
			must.Get(healed(s, list[0], all[0], false))(t)
		},
		"healed, sealed": func(t *testing.T, s *Store, list []Address, all [][]byte) {
			seal(t, s, list[0].Pack)
			must.Do(t, view(s, list[1]))
			must.Get(healed(s, list[0], all[0], false))(t)
		},
		"holes": func(t *testing.T, s *Store, list []Address, all [][]byte) {
			seal(t, s, list[0].Pack)
			s.o.punch = zeroHole
			got, err := s.Reclaim(bg, list[0].Pack, []Extent{extentOf(list[1])}, list[1].Offset+list[1].Length)
			if err != nil || !got.Punched && !got.Rewritten {
				t.Fatalf("%+v, %v", got, err)
			}
			if err := view(s, list[0]); !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("a payload that was given back is read: %v", err)
			}
		},
		"imported": func(t *testing.T, s *Store, list []Address, all [][]byte) {
			seal(t, s, list[0].Pack)
			from := mustOpen(t, t.TempDir(), small())
			defer mustClose(t, from)
			for _, b := range all {
				mustAppend(t, from, b)
			}
			synced(t, from)
			if _, _, err := s.Import(bg, from, list[0].Pack, []Extent{extentOf(list[0])}, nil); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir, list, all := seenStore(t, small(), 3)
			change(t, s, list, all)
			rot(t, s, dir, list[1])
			if err := view(s, list[1]); !errors.Is(err, kv.ErrCorrupt) {
				t.Errorf("damage was not found: %v", err)
			}
		})
	}
}

// A file that was given back and borrowed again is compared again.
func TestSeenBlocksOfBorrowedFiles(t *testing.T) {
	s, dir, list, all := seenStore(t, options(osfs.FS), 1)
	b := Borrow(&Options{VerifyReads: false}, "", func(_ context.Context, a Address) (Borrowed, error) { return s.File(a) })
	defer mustClose(t, b)
	if err := view(b, list[0]); errors.Is(err, ErrNotLent) {
		t.Skip("files cannot be lent here")
	}
	checkPayload(t, b, list[0], all[0])
	rot(t, s, dir, list[0])
	if err := view(b, list[0]); err != nil {
		t.Fatalf("a block that was compared was compared again: %v", err)
	}
	b.Release(bg)
	if err := view(b, list[0]); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("damage was not found: %v", err)
	}
}
