//go:build unix

package dirkv

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
)

func link(t *testing.T, s *Store, target, rel string) {
	t.Helper()
	must.Do(t, os.Symlink(target, filepath.Join(s.dir, rel)))
}

func TestLinksInside(t *testing.T) {
	forEachSource(t, func(t *testing.T, open func(*Options) *Store) {
		s := open(nil)
		set(t, s, "real/dir/k", "v")
		set(t, s, "a/x", "x")
		link(t, s, "../real/dir", "a/dir")
		link(t, s, "dir/k", "real/file")
		link(t, s, "nowhere", "dangling")
		wantKeys(t, s, "a/dir/k", "a/x", "real/dir/k", "real/file")
		wantValue(t, s, "a/dir/k", "v")
		wantValue(t, s, "real/file", "v")
		if _, err := s.Get(ctx, "dangling", kv.All()); err != kv.ErrNotFound {
			t.Errorf("a link that leads nowhere: %v", err)
		}
		// Writing to a key that is a link replaces the link, not its target.
		set(t, s, "real/file", "new")
		wantValue(t, s, "real/dir/k", "v")
		// Writing through a linked directory reaches it.
		set(t, s, "a/dir/l", "l")
		wantValue(t, s, "real/dir/l", "l")
		// Deleting what is below a link removes the link.
		if err := s.DeletePrefix(ctx, "a/dir/"); err != nil {
			t.Error(err)
		}
		wantKeys(t, s, "a/x", "real/dir/k", "real/dir/l", "real/file")
	})
}

func TestLinksOutside(t *testing.T) {
	forEachSource(t, func(t *testing.T, open func(*Options) *Store) {
		outside := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o666))
		s := open(nil)
		set(t, s, "a/x", "x")
		up := must.Get(filepath.Rel(s.dir, outside))(t)
		link(t, s, outside, "absolute")
		link(t, s, up, "relative")
		link(t, s, filepath.Join(outside, "secret"), "file")
		for _, key := range []string{"absolute/secret", "relative/secret", "file"} {
			b, err := s.Get(ctx, key, kv.All())
			if err == nil || errors.Is(err, kv.ErrNotFound) || !strings.Contains(err.Error(), filepath.Join(s.dir, key)) {
				t.Errorf("Get(%q) = %q, %v, want an error that names the path", key, b, err)
			}
			if _, err := s.Locate(ctx, key); err == nil || errors.Is(err, kv.ErrNotFound) {
				t.Errorf("Locate(%q): %v", key, err)
			}
		}
		for _, key := range []string{"absolute/new", "relative/new", "absolute/d/new", "relative/secret"} {
			if err := s.Set(ctx, key, []byte("x")); err == nil {
				t.Errorf("Set(%q) succeeded", key)
			}
			if err := s.Delete(ctx, key); err == nil {
				t.Errorf("Delete(%q) succeeded", key)
			}
		}
		if err := s.DeletePrefix(ctx, "absolute/"); err == nil {
			t.Error("DeletePrefix through a link out of the directory succeeded")
		}
		if _, err := kv.Keys(ctx, s, ""); err == nil {
			t.Error("a listing with links out of the directory succeeded")
		}
		if keys, err := kv.Keys(ctx, s, "a/"); err != nil || len(keys) != 1 {
			t.Errorf("a listing beside such links: %q, %v", keys, err)
		}
		entries, err := os.ReadDir(outside)
		if err != nil || len(entries) != 1 {
			t.Errorf("outside there is now %v, %v", entries, err)
		}
	})
}

// Links into allowed folders are read and listed, and what leads out of those is
// not; writing follows none.
func TestLinksFollowed(t *testing.T) {
	forEachSource(t, func(t *testing.T, open func(*Options) *Store) {
		outside, secret := t.TempDir(), t.TempDir()
		for _, name := range []string{outside + "/d/k", outside + "/f", secret + "/s"} {
			must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(filepath.Base(name)), 0o666)))
		}
		s := open(&Options{Follow: []string{outside}})
		set(t, s, "a/x", "x")
		link(t, s, outside+"/d", "dir")
		link(t, s, outside+"/f", "file")
		must.Do(t, os.Symlink(outside+"/f", outside+"/d/again"))
		wantKeys(t, s, "a/x", "dir/again", "dir/k", "file")
		wantValue(t, s, "dir/k", "k")
		wantValue(t, s, "file", "f")
		wantValue(t, s, "dir/again", "f")
		v, err := s.Locate(ctx, "dir/k")
		if err != nil || v.Size() != 1 {
			t.Fatal(v, err)
		}
		if err := s.Set(ctx, "dir/new", nil); err == nil {
			t.Error("a value was written outside")
		}
		must.Do(t, os.Symlink(secret+"/s", outside+"/d/out"))
		link(t, s, secret, "secret")
		for _, key := range []string{"dir/out", "secret/s"} {
			if b, err := s.Get(ctx, key, kv.All()); err == nil || err == kv.ErrNotFound {
				t.Errorf("%s: %q, %v", key, b, err)
			}
		}
		if _, err := kv.Keys(ctx, s, ""); err == nil {
			t.Error("a listing that leads out of the allowed folder succeeded")
		}
	})
}

func TestLinkCycle(t *testing.T) {
	forEachSource(t, func(t *testing.T, open func(*Options) *Store) {
		s := open(nil)
		set(t, s, "a/b/k", "v")
		link(t, s, "..", "a/b/up")
		if keys, err := kv.Keys(ctx, s, ""); err == nil {
			t.Errorf("a cycle was listed: %d keys", len(keys))
		}
		link(t, s, "self", "self")
		if _, err := s.Get(ctx, "self", kv.All()); err == nil {
			t.Error("a link to itself was read")
		}
	})
}

// TestNotFiles has things in the directory that are neither file nor directory.
func TestNotFiles(t *testing.T) {
	forEachSource(t, func(t *testing.T, open func(*Options) *Store) {
		s := open(nil)
		set(t, s, "a/k", "v")
		if err := syscall.Mkfifo(filepath.Join(s.dir, "a/pipe"), 0o666); err != nil {
			t.Skip(err)
		}
		if err := os.WriteFile(filepath.Join(s.dir, "a", "not\xffutf8"), nil, 0o666); err != nil && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, syscall.EILSEQ) {
			t.Fatal(err)
		}
		if _, err := s.Get(ctx, "a/pipe", kv.All()); err != kv.ErrNotFound {
			t.Errorf("Get of a pipe: %v", err)
		}
		if _, err := s.Locate(ctx, "a/pipe"); err != kv.ErrNotFound {
			t.Errorf("Locate of a pipe: %v", err)
		}
		if _, err := s.Get(ctx, "a", kv.All()); err != kv.ErrNotFound {
			t.Errorf("Get of a directory: %v", err)
		}
		wantKeys(t, s, "a/k")
	})
}
