package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// storeOnly hides all but the required interfaces of a store, so that
// functions of package kv fall back.
type storeOnly struct {
	readerOnly
	listerOnly
	w kv.Writer
}

func plain(st kv.Store) kv.Store { return storeOnly{readerOnly{st}, listerOnly{st}, st} }

func (s storeOnly) Set(ctx context.Context, key string, value []byte) error {
	return s.w.Set(ctx, key, value)
}
func (s storeOnly) Delete(ctx context.Context, key string) error { return s.w.Delete(ctx, key) }

func wantValue(t *testing.T, r kv.Reader, key string, want []byte) {
	t.Helper()
	got, err := r.Get(bg, key, kv.All())
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("Get(%q) = %d bytes, %v, want %d bytes", key, len(got), err, len(want))
	}
}

// testDeletePrefix deletes by prefixes that end inside a name, after it, and where
// nothing is.
func (s *suite) testDeletePrefix(t *testing.T) {
	view, want := s.lister(t, trickyKeys(4))
	st, ok := view.(kv.Store)
	if !ok {
		t.Skipf("%T is not a kv.Store", view)
	}
	for _, prefix := range []string{"nothing/", "a-b", "a/b/", "a/b", "many/1", "c/0", "b/", "zarr.json", "a", ""} {
		if err := kv.DeletePrefix(bg, st, prefix); err != nil {
			t.Errorf("DeletePrefix(%q): %v", prefix, err)
		}
		maps.DeleteFunc(want, func(key string, _ []byte) bool { return strings.HasPrefix(key, prefix) })
		keys, err := kv.Keys(bg, st, "")
		equalKeys(t, fmt.Sprintf("keys after DeletePrefix(%q)", prefix), keys, want.keys(), err)
	}
}

// testNames checks which names a key leaves for other keys.
func (s *suite) testNames(t *testing.T) {
	st := s.store(t)
	for _, key := range []string{"a/b/c", "a/b/d", "x"} {
		must.Do(t, st.Set(bg, key, []byte(key)))
	}
	if s.Tree { // what cannot be must be refused, and leave everything as it is
		for _, key := range []string{"a", "x/y", "x/y/z"} {
			if err := st.Set(bg, key, []byte("x")); err == nil {
				t.Errorf("Set(%q) beside x succeeded", key)
			}
		}
		keys, err := kv.Keys(bg, st, "")
		equalKeys(t, "keys after refusals", keys, []string{"a/b/c", "a/b/d", "x"}, err)
	}
	for _, key := range []string{"a/b/c", "a/b/c", "never", "a/b", "a", "a/b/d/e", "x/y"} {
		if err := st.Delete(bg, key); err != nil {
			t.Errorf("Delete(%q): %v", key, err)
		}
	}
	wantValue(t, st, "a/b/d", []byte("a/b/d"))
	if err := st.Delete(bg, "a/b/d"); err != nil {
		t.Error(err)
	}
	// Nothing is left of the names above, so they can be keys now.
	if err := st.Set(bg, "a", []byte("now a key")); err != nil {
		t.Error(err)
	}
	wantValue(t, st, "a", []byte("now a key"))
	entries, err := listDirAll(st, "")
	if want := []kv.DirEntry{{Name: "a"}, {Name: "x"}}; err != nil || !slices.Equal(entries, want) {
		t.Errorf("ListDir: %v, %v, want %v", entries, err, want)
	}
}

// testReplaced reads a located value after its key was set or deleted: the old
// bytes or an error, never anything else.
func (s *suite) testReplaced(t *testing.T) {
	st := s.store(t)
	value := pattern(10_000, 1)
	for name, change := range map[string]func() error{
		"set same size": func() error { return st.Set(bg, "k", pattern(10_000, 2)) },
		"set longer":    func() error { return st.Set(bg, "k", pattern(20_000, 2)) },
		"set shorter":   func() error { return st.Set(bg, "k", pattern(100, 2)) },
		"delete":        func() error { return st.Delete(bg, "k") },
	} {
		must.Do(t, st.Set(bg, "k", value))
		v, err := kv.Locate(bg, st, "k")
		must.Do(t, err)
		must.Do(t, change())
		for _, rng := range []kv.Range{kv.All(), kv.Last(10), kv.Span(50, 20)} {
			off, n, _ := rng.Resolve(v.Size())
			err := v.View(bg, rng, func(b []byte) error {
				if !bytes.Equal(b, value[off:off+n]) {
					t.Errorf("%s: View(%v) of the old value shows other bytes", name, rng)
				}
				return nil
			})
			if err != nil && !errors.Is(err, kv.ErrChanged) {
				t.Errorf("%s: View(%v): %v, want the old bytes or ErrChanged", name, rng, err)
			}
		}
		if _, err := kv.ReaderAt(bg, v).ReadAt(make([]byte, 10), v.Size()-5); err != io.EOF && !errors.Is(err, kv.ErrChanged) {
			t.Errorf("%s: ReadAt: %v", name, err)
		}
	}
}
