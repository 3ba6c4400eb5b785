package dirkv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/temp"
)

// hookFS calls before ahead of every step that changes the file system, and
// does not do it where before returns an error; a file is then half written.
type hookFS struct {
	fsys
	before func(step string) error
}

func (h hookFS) do(step string, fn func() error) error {
	if err := h.before(step); err != nil {
		return err
	}
	return fn()
}

func clean(rel string) string {
	if i := strings.Index(rel, temp.Prefix); i >= 0 {
		return rel[:i] + "TMP"
	}
	return rel
}

func (h hookFS) writeFile(rel string, sync bool, fill func(io.Writer) error) error {
	step := "write " + clean(rel)
	if sync {
		step = "write, sync " + clean(rel)
	}
	if err := h.before(step); err != nil {
		var data bytes.Buffer
		_ = fill(&data)
		_ = h.fsys.writeFile(rel, false, func(w io.Writer) error { // there may be no such directory yet
			_, err := w.Write(data.Bytes()[:data.Len()/2])
			return err
		})
		return &fs.PathError{Op: "write", Path: rel, Err: err}
	}
	return h.fsys.writeFile(rel, sync, fill)
}

func (h hookFS) rename(oldRel, newRel string) error {
	return h.do("rename "+clean(oldRel)+" "+clean(newRel), func() error { return h.fsys.rename(oldRel, newRel) })
}

func (h hookFS) remove(rel string) error {
	return h.do("remove "+clean(rel), func() error { return h.fsys.remove(rel) })
}

func (h hookFS) rmdir(rel string) error {
	return h.do("rmdir "+clean(rel), func() error { return h.fsys.rmdir(rel) })
}

func (h hookFS) removeAll(rel string) error {
	return h.do("remove all "+clean(rel), func() error { return h.fsys.removeAll(rel) })
}

func (h hookFS) mkdir(rel string) error {
	return h.do("mkdir "+clean(rel), func() error { return h.fsys.mkdir(rel) })
}

func (h hookFS) mkdirs(rel string, names []string, sync bool) error {
	step := "mkdirs "
	if sync {
		step = "mkdirs, sync "
	}
	return h.do(step+clean(rel)+"/"+strings.Join(names, "/"), func() error { return h.fsys.mkdirs(rel, names, sync) })
}

func (h hookFS) syncDir(rel string) error {
	return h.do("sync "+clean(rel), func() error { return h.fsys.syncDir(rel) })
}

// TestSteps writes down what is done to the file system, in which order: a
// name never comes before its data, and every new name is synced.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		name   string
		noSync bool
		do     func(*Store) error
		want   string
	}{
		{"replace", false, func(s *Store) error { return s.Set(ctx, "a/k", nil) }, "write, sync a/TMP; rename a/TMP a/k; sync a"},
		{"new in the base", false, func(s *Store) error { return s.Set(ctx, "n", nil) }, "write, sync TMP; rename TMP n; sync ."},
		{
			"new directories", false, func(s *Store) error { return s.Set(ctx, "n/m/l/k", nil) },
			"write, sync n/m/l/TMP; remove n/m/l/TMP; mkdir n/m/l; mkdir n/m; mkdir n; sync .; mkdirs, sync n/m/l; write, sync n/m/l/TMP; rename n/m/l/TMP n/m/l/k; sync n/m/l",
		},
		{"delete", false, func(s *Store) error { return s.Delete(ctx, "a/k") }, "remove a/k; rmdir a; sync a"},
		{"delete the last", false, func(s *Store) error { return s.Delete(ctx, "b/c/k") }, "remove b/c/k; rmdir b/c; rmdir b; sync ."},
		{"delete nothing", false, func(s *Store) error { return s.Delete(ctx, "x/y") }, ""},
		{"delete prefix", false, func(s *Store) error { return s.DeletePrefix(ctx, "b/") }, "rename b TMP; remove all TMP; sync ."},
		{"no sync", true, func(s *Store) error { return s.Set(ctx, "a/k", nil) }, "write a/TMP; rename a/TMP a/k"},
		{"no sync, delete", true, func(s *Store) error { return s.Delete(ctx, "b/c/k") }, "remove b/c/k; rmdir b/c; rmdir b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, &Options{NoSync: c.noSync})
			for _, key := range []string{"a/k", "a/l", "b/c/k"} {
				set(t, s, key, "old")
			}
			var steps []string
			s.fsys = hookFS{s.fsys, func(step string) error {
				steps = append(steps, filepath.ToSlash(step))
				return nil
			}}
			must.Do(t, c.do(s))
			if got := strings.Join(steps, "; "); got != c.want {
				t.Errorf("did   %s\nwanted %s", got, c.want)
			}
		})
	}
}

// TestFaults lets the k-th step of a write fail, for every k: the error names
// operation, path and cause, and a value is the old one or the new one.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name, op, key string
		do            func(*Store) error
	}{
		{"set", "set", "a/k", func(s *Store) error { return s.Set(ctx, "a/k", []byte("new value")) }},
		{"set in a new directory", "set", "n/m/k", func(s *Store) error { return s.Set(ctx, "n/m/k", []byte("new value")) }},
		{"delete", "delete", "a/k", func(s *Store) error { return s.Delete(ctx, "a/k") }},
		{"delete the last", "delete", "b/c/k", func(s *Store) error { return s.Delete(ctx, "b/c/k") }},
		{"delete prefix", "delete prefix", "b", func(s *Store) error { return s.DeletePrefix(ctx, "b/") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for k := 0; ; k++ {
				s := open(t, nil)
				all := []string{"a/k", "a/l", "b/c/k"}
				for _, key := range all {
					set(t, s, key, "old value")
				}
				real := s.fsys
				n, failed := 0, ""
				s.fsys = hookFS{real, func(step string) error {
					if n++; n-1 == k {
						failed = step
						return syscall.ENOSPC
					}
					return nil
				}}
				err := c.do(s)
				s.fsys = real
				if failed == "" {
					if err != nil {
						t.Errorf("without a failure: %v", err)
					}
					return
				}
				if k > 100 {
					t.Fatal("endless")
				}
				checkFault(t, s, c.op, c.key, failed, err)
				// Nothing else was touched, and a second attempt succeeds.
				for _, key := range all {
					b, err := s.Get(ctx, key, kv.All())
					if err != nil && (err != kv.ErrNotFound || !strings.HasPrefix(c.op, "delete")) || err == nil && string(b) != "old value" && string(b) != "new value" {
						t.Errorf("failure at %q: Get(%q) = %q, %v", failed, key, b, err)
					}
				}
				if err := c.do(s); err != nil {
					t.Errorf("after a failure at %q: %v", failed, err)
				}
			}
		})
	}
}

// checkFault checks the error of an operation in which step failed.
func checkFault(t *testing.T, s *Store, op, key, step string, err error) {
	t.Helper()
	// Removing what is in the way, or left over, is tried and need not succeed.
	harmless := strings.HasPrefix(step, "rmdir") || strings.HasPrefix(step, "remove") && strings.HasSuffix(step, "TMP") && op == "set"
	if harmless && err == nil {
		return
	}
	var pe *fs.PathError
	if !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &pe) || pe.Op != op || pe.Path != filepath.Join(s.dir, key) {
		t.Errorf("failure at %q: %v", step, err)
	}
}

// TestDirectoryVanishes removes the directory of a key at each step of Set.
func TestDirectoryVanishes(t *testing.T) {
	for _, at := range []string{"write", "rename"} {
		s := open(t, nil)
		set(t, s, "a/b/old", "old")
		left := 3
		s.fsys = hookFS{s.fsys, func(step string) error {
			if strings.HasPrefix(step, at) && left > 0 {
				left--
				return os.RemoveAll(filepath.Join(s.dir, "a"))
			}
			return nil
		}}
		set(t, s, "a/b/k", "v")
		wantKeys(t, s, "a/b/k")
		wantNoTemps(t, s)
	}
}

// TestEmptyDirectoryBecomesKey checks that a name which turns from an empty
// directory into a key between two steps of Delete survives.
func TestEmptyDirectoryBecomesKey(t *testing.T) {
	s := open(t, nil)
	set(t, s, "a/k", "v")
	done := false
	plain := s.fsys
	s.fsys = hookFS{plain, func(step string) error {
		if step == "rmdir a" && !done {
			done = true
			if err := plain.rmdir("a"); err != nil {
				return err
			}
			return plain.writeFile("a", false, func(w io.Writer) error {
				_, err := io.WriteString(w, "key")
				return err
			})
		}
		return nil
	}}
	if err := s.Delete(ctx, "a/k"); err != nil {
		t.Error(err)
	}
	wantValue(t, s, "a", "key")
}

// TestSync only shows that it works; durability cannot be seen from here.
func TestSync(t *testing.T) {
	s := open(t, &Options{NoSync: true})
	for i := range 10 {
		set(t, s, fmt.Sprintf("d/%d", i), "v")
	}
	if err := s.Sync(ctx); err != nil {
		t.Error(err)
	}
	if keys, err := kv.Keys(ctx, s, ""); err != nil || len(keys) != 10 || !slices.IsSorted(keys) {
		t.Errorf("%q, %v", keys, err)
	}
}
