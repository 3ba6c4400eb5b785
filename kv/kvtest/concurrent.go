package kvtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zarrdb/zarrdb/kv"
)

func (s *suite) testReadConcurrently(t *testing.T) {
	view, want := s.filled(t, sized())
	keys := want.keys()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 40 {
				key := keys[(g+i)%len(keys)]
				value := want[key]
				if b, err := view.Get(bg, key, kv.From(int64(len(value)/3))); err != nil || !bytes.Equal(b, value[len(value)/3:]) {
					t.Errorf("Get(%q): %d bytes, %v", key, len(b), err)
				}
				v, err := kv.Locate(bg, view, key)
				if err == nil {
					err = checkView(v, kv.All(), value)
				}
				if err != nil {
					t.Errorf("Locate(%q): %v", key, err)
				}
				if l, ok := view.(kv.Lister); ok && i%10 == 0 {
					if got, err := kv.Keys(bg, l, ""); err != nil || len(got) != len(keys) {
						t.Errorf("List: %d keys, %v", len(got), err)
					}
				}
			}
		})
	}
	wg.Wait()
}

// stamped returns a value that shows whether it is whole.
func stamped(writer, turn int) []byte {
	b := make([]byte, 8+(writer*977+turn*131)%9000)
	binary.LittleEndian.PutUint32(b, uint32(writer))
	binary.LittleEndian.PutUint32(b[4:], uint32(turn))
	copy(b[8:], pattern(len(b)-8, byte(writer*16+turn)))
	return b
}

func whole(b []byte) bool {
	return len(b) >= 8 && bytes.Equal(b, stamped(int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))))
}

// testWriteConcurrently runs writers, deleters, readers and listers on few keys:
// a read value is one that a writer set, whole. The readers run until the last
// writer ends, so that every write overlaps reads.
func (s *suite) testWriteConcurrently(t *testing.T) {
	st := s.store(t)
	key := func(i int) string { return fmt.Sprintf("d%d/k%d", i%3, i%5) }
	var writers, readers sync.WaitGroup
	for g := range 6 {
		writers.Go(func() {
			for i := range 30 {
				var err error
				switch k := key(g + i); {
				case i%7 == 6:
					err = st.Delete(bg, k)
				case i%15 == 14:
					err = kv.DeletePrefix(bg, st, k[:3])
				default:
					err = st.Set(bg, k, stamped(g, i))
				}
				if err != nil {
					t.Errorf("writer %d, step %d: %v", g, i, err)
				}
				if err := st.Set(bg, fmt.Sprintf("own/%d", g), stamped(g, i)); err != nil {
					t.Errorf("writer %d, step %d: %v", g, i, err)
				}
			}
		})
	}
	var written atomic.Bool
	for g := range 3 {
		readers.Go(func() {
			for i := 0; i < 60 || !written.Load(); i++ {
				b, err := st.Get(bg, key(g+i), kv.All())
				if err != kv.ErrNotFound && (err != nil || !whole(b)) {
					t.Errorf("Get: %d bytes, %v", len(b), err)
				}
				v, err := kv.Locate(bg, st, key(g+i))
				if err == nil {
					err = v.View(bg, kv.All(), func(b []byte) error {
						if !whole(b) {
							return errors.New("a value of several writers")
						}
						return nil
					})
				}
				if err != nil && !errors.Is(err, kv.ErrNotFound) && !errors.Is(err, kv.ErrChanged) {
					t.Errorf("View: %v", err)
				}
				last := ""
				for k, err := range st.List(bg, kv.ListOptions{}) {
					if err != nil || k <= last {
						t.Errorf("List: %q after %q, %v", k, last, err)
					}
					last = k
				}
			}
		})
	}
	writers.Wait()
	written.Store(true)
	readers.Wait()
	for g := range 6 {
		wantValue(t, st, fmt.Sprintf("own/%d", g), stamped(g, 29))
	}
}
