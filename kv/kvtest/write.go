package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

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

func (s *suite) testOverwrite(t *testing.T) {
	st := s.store(t)
	for i, n := range []int{10, 0, 100_000, 1, 0, 10, 10} {
		value := pattern(n, byte(i))
		if err := st.Set(bg, "a/k", value); err != nil {
			t.Fatal(err)
		}
		wantValue(t, st, "a/k", value)
	}
	if err := st.Set(bg, "a/nil", nil); err != nil {
		t.Fatal(err)
	}
	wantValue(t, st, "a/nil", nil)
	keys, err := kv.Keys(bg, st, "")
	equalKeys(t, "keys", keys, []string{"a/k", "a/nil"}, err)
	if !s.Tree {
		return
	}
	// What cannot be must be refused, and leave everything as it is.
	for _, key := range []string{"a", "a/k/x", "a/k/x/y"} {
		if err := st.Set(bg, key, []byte("x")); err == nil {
			t.Errorf("Set(%q) beside a/k succeeded", key)
		}
	}
	wantValue(t, st, "a/nil", nil)
	keys, err = kv.Keys(bg, st, "")
	equalKeys(t, "keys after refusals", keys, []string{"a/k", "a/nil"}, err)
}

func (s *suite) testDelete(t *testing.T) {
	st := s.store(t)
	for _, key := range []string{"a/b/c", "a/b/d", "x"} {
		if err := st.Set(bg, key, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"a/b/c", "a/b/c", "never", "a/b", "a", "a/b/d/e", "x/y"} {
		if err := st.Delete(bg, key); err != nil {
			t.Errorf("Delete(%q): %v", key, err)
		}
	}
	if _, err := st.Get(bg, "a/b/c", kv.All()); err != kv.ErrNotFound {
		t.Errorf("Get of a deleted key: %v", err)
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
	for _, view := range []kv.Store{st, plain(st)} {
		for _, key := range []string{"l/1", "l/2"} {
			if err := st.Set(bg, key, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := kv.DeleteAll(bg, view, []string{"l/1", "l/never", "l/2"}); err != nil {
			t.Errorf("DeleteAll: %v", err)
		}
		if found, err := kv.Any(bg, st, "l/"); found || err != nil {
			t.Errorf("after DeleteAll: %v, %v", found, err)
		}
	}
}

func (s *suite) testDeletePrefix(t *testing.T) {
	for i, prefix := range []string{"", "a", "a/", "a/b", "a/b/", "a-", "a-b", "many", "many/1", "nothing/", "b/", "c/0", "c/0/", "zarr.json"} {
		// The way to fall back is the same for all stores: some cases will do.
		for _, fallBack := range []bool{false, true}[:1+(i+1)%3/2] {
			view, want := s.lister(t, trickyKeys(4))
			st, ok := view.(kv.Store)
			if !ok {
				t.Skipf("%T is no kv.Store", view)
			}
			if fallBack {
				st = plain(st)
			}
			if err := kv.DeletePrefix(bg, st, prefix); err != nil {
				t.Errorf("DeletePrefix(%q): %v", prefix, err)
			}
			for key := range want {
				if strings.HasPrefix(key, prefix) {
					delete(want, key)
				}
			}
			keys, err := kv.Keys(bg, st, "")
			equalKeys(t, fmt.Sprintf("keys after DeletePrefix(%q)", prefix), keys, want.keys(), err)
		}
	}
}

func (s *suite) testSetRange(t *testing.T) {
	st := s.store(t)
	for _, view := range []kv.Store{st, plain(st)} {
		want := pattern(100, 3)
		if err := st.Set(bg, "a/k", want); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ off, n int }{{0, 10}, {50, 50}, {90, 30}, {120, 5}, {125, 0}, {0, 0}, {0, 200}, {199, 1}} {
			p := pattern(c.n, byte(c.off))
			if err := kv.SetRange(bg, view, "a/k", int64(c.off), p); err != nil {
				t.Errorf("SetRange(%d, %d bytes): %v", c.off, c.n, err)
			}
			want = append(want[:c.off:c.off], append(p, want[min(c.off+c.n, len(want)):]...)...)
			wantValue(t, st, "a/k", want)
		}
		for _, off := range []int64{-1, int64(len(want)) + 1, 1 << 62} {
			if err := kv.SetRange(bg, view, "a/k", off, []byte{1}); !errors.Is(err, kv.ErrRange) {
				t.Errorf("SetRange at %d of %d: %v, want ErrRange", off, len(want), err)
			}
		}
		if err := kv.SetRange(bg, view, "a/none", 0, []byte{1}); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("SetRange of a missing key: %v, want ErrNotFound", err)
		}
		wantValue(t, st, "a/k", want)
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
		if err := st.Set(bg, "k", value); err != nil {
			t.Fatal(err)
		}
		v, err := kv.Locate(bg, st, "k")
		if err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
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
