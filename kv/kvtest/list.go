package kvtest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// listerOnly hides all but List, so that kv.ListDir falls back.
type listerOnly struct{ l kv.Lister }

func (l listerOnly) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return l.l.List(ctx, opts)
}

func equalKeys(t *testing.T, what string, got, want []string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if slices.Equal(got, want) {
		return
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("%s: from entry %d on\n got %q\nwant %q", what, i, cut(got, i), cut(want, i))
			return
		}
	}
}

func cut[T any](s []T, from int) []T { return s[min(from, len(s)):min(from+5, len(s))] }

func listAll(l kv.Lister, opts kv.ListOptions) (keys []string, err error) {
	for key, err := range l.List(bg, opts) {
		if err != nil {
			return keys, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func listDirAll(l kv.Lister, prefix string) (entries []kv.DirEntry, err error) {
	for e, err := range kv.ListDir(bg, l, prefix) {
		if err != nil {
			return entries, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func (s *suite) testList(t *testing.T) {
	view, want := s.lister(t, trickyKeys(60))
	at := borders(want.keys())
	check := func(opts kv.ListOptions) {
		t.Helper()
		got, err := listAll(view, opts)
		if wanted := want.list(opts); err != nil || !slices.Equal(got, wanted) {
			equalKeys(t, "List("+opts.Prefix+", after "+opts.After+")", got, wanted, err)
		}
	}
	for i, b := range at {
		check(kv.ListOptions{After: b})
		check(kv.ListOptions{Prefix: b})
		check(kv.ListOptions{Prefix: b, After: b})
		check(kv.ListOptions{Prefix: "a", After: b})
		check(kv.ListOptions{Prefix: "a/b/", After: b})
		check(kv.ListOptions{Prefix: "many/", After: b})
		check(kv.ListOptions{Prefix: b, After: at[(i*7+3)%len(at)]})
	}
	// Nothing at all is a listing too.
	empty, _ := s.lister(t, nil)
	got, err := listAll(empty, kv.ListOptions{})
	equalKeys(t, "an empty view", got, nil, err)
}

func (s *suite) testListStops(t *testing.T) {
	view, want := s.lister(t, trickyKeys(60))
	keys := want.keys()
	// A loop may be left at any place, and the sequence may be used again.
	seq := view.List(bg, kv.ListOptions{})
	for _, stop := range []int{1, 2, len(keys) / 2, len(keys)} {
		var got []string
		for key, err := range seq {
			must.Do(t, err)
			if got = append(got, key); len(got) == stop {
				break
			}
		}
		equalKeys(t, "a listing that is left", got, keys[:stop], nil)
	}
	// Inside the loop the view may be read and listed.
	for key, err := range view.List(bg, kv.ListOptions{Prefix: "many/"}) {
		must.Do(t, err)
		if _, err := view.Get(bg, key, kv.All()); err != nil {
			t.Errorf("Get(%q) inside a listing: %v", key, err)
		}
		if found, err := kv.Any(bg, view, key); err != nil || !found {
			t.Errorf("Any(%q) inside a listing: %v, %v", key, found, err)
		}
	}
	// And written: keys not touched still come, each once.
	w, ok := view.(kv.Writer)
	if !ok {
		return
	}
	var got []string
	for key, err := range view.List(bg, kv.ListOptions{Prefix: "many"}) {
		must.Do(t, err)
		must.Do(t, w.Set(bg, "other/"+strings.ReplaceAll(key, "/", "_"), nil))
		must.Do(t, w.Delete(bg, key))
		got = append(got, key)
	}
	equalKeys(t, "a listing during which keys are deleted", got, want.list(kv.ListOptions{Prefix: "many"}), nil)
}

func (s *suite) testListDir(t *testing.T) {
	view, want := s.lister(t, trickyKeys(60))
	prefixes := map[string]bool{"": true, "nothing/": true, "a/nothing/": true, "b/": true, "aa/": true}
	for key := range want {
		for i := range len(key) {
			if key[i] == '/' {
				prefixes[key[:i+1]] = true
			}
		}
	}
	for prefix := range prefixes {
		if s.Tree && strings.Contains("/"+prefix, "//") {
			continue
		}
		wanted := want.listDir(prefix)
		for name, l := range map[string]kv.Lister{"ListDir": view, "ListDir by falling back": listerOnly{view}} {
			got, err := listDirAll(l, prefix)
			if err != nil || !slices.Equal(got, wanted) {
				t.Errorf("%s(%q): %v\n got %v\nwant %v", name, prefix, err, got, wanted)
			}
			for i := range wanted {
				n := 0
				for range kv.ListDir(bg, l, prefix) {
					if n++; n > i {
						break
					}
				}
			}
		}
	}
	for _, l := range []kv.Lister{view, listerOnly{view}} {
		if _, err := listDirAll(l, "a"); !errors.Is(err, kv.ErrInvalidKey) {
			t.Errorf("ListDir of a prefix without slash: %v, want ErrInvalidKey", err)
		}
	}
}
