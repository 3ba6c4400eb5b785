package dirkv

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

// TestReplace puts new directories and files in the place of old ones, by each
// way of exchanging names.
func TestReplace(t *testing.T) {
	for name, swap := range map[string]func(a, b string) error{"exchange": exchange, "renames": renames} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			a, b := filepath.Join(folder, "a"), filepath.Join(folder, "b")
			makeDir(t, a, "new")
			if err := swap(a, b); err != nil { // nothing is at b
				t.Fatal(err)
			}
			wantEntries(t, folder, "b")
			wantEntries(t, b, "new")
			must.Do(t, os.WriteFile(a, nil, 0o666))
			must.Do(t, swap(a, b))
			wantEntries(t, folder, "a", "b")
			wantEntries(t, a, "new")
			if err := swap(filepath.Join(folder, "none"), a); err == nil {
				t.Error("nothing took the place of a directory")
			}
			wantEntries(t, folder, "a", "b")
			wantEntries(t, a, "new")
		})
	}
}

// TestReplaceFails: the old one stays as it was, and nothing is left beside it.
func TestReplaceFails(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "store")
	makeDir(t, path, "old")
	failed := errors.New("failed")
	err := Replace(path, func(name string) error {
		makeDir(t, name, "half")
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	if err := Replace(path, func(string) error { return nil }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing was written: %v", err)
	}
	wantEntries(t, folder, "store")
	wantEntries(t, path, "old")

	// A link is replaced, and what it leads to stays.
	link := filepath.Join(folder, "link")
	if err := os.Symlink("store", link); err != nil {
		t.Skip(err)
	}
	must.Do(t, Replace(link+string(os.PathSeparator), func(name string) error {
		makeDir(t, name, "new")
		return nil
	}))
	wantEntries(t, folder, "link", "store")
	wantEntries(t, link, "new")
	wantEntries(t, path, "old")
}

func makeDir(t *testing.T, dir, file string) {
	t.Helper()
	must.Do(t, os.Mkdir(dir, 0o777))
	must.Do(t, os.WriteFile(filepath.Join(dir, file), nil, 0o666))
}

func wantEntries(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Error(err)
	}
	for i, e := range entries {
		if i >= len(want) || e.Name() != want[i] {
			t.Errorf("%s holds %v, want %q", dir, entries, want)
			return
		}
	}
	if len(entries) != len(want) {
		t.Errorf("%s holds %v, want %q", dir, entries, want)
	}
}

// TestReplaceOpenStore replaces a directory that a store has open: the store does not
// read the new one.
func TestReplaceOpenStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	makeDir(t, path, "old")
	s := must.Get(Open(path, nil))(t)
	defer s.Close()
	must.Do(t, Replace(path, func(name string) error {
		makeDir(t, name, "new")
		return nil
	}))
	wantEntries(t, path, "new")
	if _, err := s.Locate(context.Background(), "new"); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("the store that was open reads the new directory: %v", err)
	}
}
