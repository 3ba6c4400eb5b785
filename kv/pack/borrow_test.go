//go:build unix && !aix

package pack

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv/internal/osfs"
)

// pausedFS stops after each write of a large payload.
type pausedFS struct {
	vfs.FS
	pause func()
}

func (fs pausedFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(name, c, o...)
	return pausedFile{f, fs.pause}, err
}

type pausedFile struct {
	vfs.File
	pause func()
}

func (f pausedFile) WriteAt(b []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(b, off)
	if len(b) >= largeFrom {
		f.pause()
	}
	return n, err
}

// A payload that was in memory when its file was borrowed is read, though the file had a
// place for it: a payload behind it was in the file already.
func TestBorrowedBeforeWritten(t *testing.T) {
	written, on := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(on) })
	fs := pausedFS{osfs.FS, func() { close(written); <-on }}
	s := mustOpen(t, t.TempDir(), &Options{FS: fs})
	defer mustClose(t, s)
	first, small := []byte("first"), bytes.Repeat([]byte("small"), 100)
	before := mustAppend(t, s, first)
	must.Get(s.Sync(bg))(t)
	waits := mustAppend(t, s, small)
	done := make(chan error)
	go func() {
		_, err := s.Append(bg, Owner{}, make([]byte, 2*largeFrom))
		done <- err
	}()
	<-written
	asked := 0
	b := Borrow(nil, "", func(_ context.Context, a Address) (Borrowed, error) {
		if asked++; asked == 2 {
			goOn()
		}
		return s.File(a)
	})
	defer mustClose(t, b)
	for _, c := range []struct {
		at   Address
		want []byte
	}{{before, first}, {waits, small}} {
		err := b.View(bg, c.at, 0, c.at.Length, func(got []byte) error {
			if !bytes.Equal(got, c.want) {
				return fmt.Errorf("%q, want %q", got, c.want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	goOn()
	if err := <-done; err != nil || asked != 2 {
		t.Errorf("%d files were borrowed, %v", asked, err)
	}
}

// Where all maps together would be too long, a borrowed pack takes the place of others.
func TestBorrowedMapsTakeTurns(t *testing.T) {
	s := mustOpen(t, t.TempDir(), &Options{MaxPackBytes: 1})
	defer mustClose(t, s)
	var at []Address
	for range 3 {
		at = append(at, mustAppend(t, s, make([]byte, 1<<20)))
	}
	b := Borrow(nil, "", func(_ context.Context, a Address) (Borrowed, error) { return s.File(a) })
	defer mustClose(t, b)
	b.o.MapBytes = 3 << 19
	for _, a := range at {
		must.Do(t, b.View(bg, a, 0, a.Length, func([]byte) error { return nil }))
		if h := b.lookup(a.Pack).handle.Load(); h.data == nil || b.files.mapped.Load() > b.o.MapBytes {
			t.Errorf("mapped %v, all %d", h.data != nil, b.files.mapped.Load())
		}
	}
}

// Readers that come to a pack at once read through one map, with the read-ahead of
// all.
func TestBorrowedAtOnce(t *testing.T) {
	const readers = 4
	s := mustOpen(t, t.TempDir(), nil)
	defer mustClose(t, s)
	a := mustAppend(t, s, make([]byte, 1<<20))
	must.Get(s.Sync(bg))(t)
	var all, wg sync.WaitGroup
	all.Add(readers)
	b := Borrow(nil, "", func(_ context.Context, a Address) (Borrowed, error) {
		all.Done()
		all.Wait()
		return s.File(a)
	})
	defer mustClose(t, b)
	var mu sync.Mutex
	maps := map[*handle]int{}
	for range readers {
		wg.Go(func() {
			err := b.View(bg, a, 0, a.Length, func([]byte) error {
				mu.Lock()
				defer mu.Unlock()
				maps[b.lookup(a.Pack).handle.Load()]++
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(maps) != 1 || b.files.count.Load() != 1 {
		t.Errorf("%d readers have %d maps, %d are open", readers, len(maps), b.files.count.Load())
	}
}

// A pack that grows is borrowed twice, then read through the map; a payload that is not in the file
// yet is waited for by borrowing once more, and nothing is found at an address without payload.
func TestBorrowedGrows(t *testing.T) {
	if !mapAhead || strconv.IntSize < 64 {
		t.Skip("maps show no later writes here, or are short")
	}
	s := mustOpen(t, t.TempDir(), nil)
	defer mustClose(t, s)
	asked := 0
	b := Borrow(nil, "", func(_ context.Context, a Address) (Borrowed, error) {
		asked++
		return s.File(a)
	})
	defer mustClose(t, b)
	read := func(a Address, want []byte) {
		t.Helper()
		err := b.View(bg, a, 0, a.Length, func(got []byte) error {
			if !bytes.Equal(got, want) {
				return fmt.Errorf("%.9q, want %.9q", got, want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	for i := range 50 {
		value := bytes.Repeat([]byte{byte(i)}, 100+i*1000)
		a := mustAppend(t, s, value)
		must.Do(t, s.Flush(a))
		read(a, value)
	}
	if asked != 2 {
		t.Errorf("borrowed %d times", asked)
	}
	late := []byte("in memory")
	a := mustAppend(t, s, late)
	if read(a, late); asked != 3 {
		t.Errorf("borrowed %d times", asked)
	}
	a.Offset += 1 << 20
	if err := b.View(bg, a, 0, a.Length, func([]byte) error { return nil }); err == nil {
		t.Error("a payload where none is")
	}
}
