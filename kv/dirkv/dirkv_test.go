package dirkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zarrdb/zarrdb/internal/must"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/temp"
	"github.com/zarrdb/zarrdb/kv/kvtest"
)

var ctx = context.Background()

func open(t *testing.T, opts *Options) *Store {
	t.Helper()
	return openAt(t, t.TempDir(), opts)
}

func openAt(t *testing.T, dir string, opts *Options) *Store {
	t.Helper()
	s := must.Get(Open(dir, opts))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil && err != kv.ErrClosed {
			t.Error(err)
		}
	})
	return s
}

func set(t *testing.T, s kv.Writer, key, value string) {
	t.Helper()
	must.Do(t, s.Set(ctx, key, []byte(value)))
}

func wantKeys(t *testing.T, s *Store, want ...string) {
	t.Helper()
	got, err := kv.Keys(ctx, s, "")
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("keys %q, %v, want %q", got, err, want)
	}
}

func wantValue(t *testing.T, s kv.Reader, key, want string) {
	t.Helper()
	if got, err := s.Get(ctx, key, kv.All()); err != nil || string(got) != want {
		t.Errorf("Get(%q) = %q, %v, want %q", key, got, err, want)
	}
}

func TestConformance(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.Reader { return open(t, &Options{NoSync: true}) }, kvtest.Options{Tree: true})
}

func TestSubConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of files")
	}
	kvtest.Run(t, func(t *testing.T) kv.Reader {
		s := open(t, &Options{NoSync: true})
		set(t, s, "p/q-/x", "neighbour")
		set(t, s, "p/q0", "neighbour")
		return kv.Sub(s, "p/q")
	}, kvtest.Options{Tree: true, Steps: 200})
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "none"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of nothing: %v", err)
	}
	file := filepath.Join(dir, "file")
	must.Do(t, os.WriteFile(file, nil, 0o666))
	if _, err := Open(file, nil); !errors.Is(err, syscall.ENOTDIR) || !strings.Contains(err.Error(), file) {
		t.Errorf("Open of a file: %v", err)
	}
	if _, err := Create(filepath.Join(file, "below"), nil); err == nil {
		t.Error("Create below a file succeeded")
	}
	for range 2 { // the second finds the directory
		s := must.Get(Create(filepath.Join(dir, "a", "b"), nil))(t)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Chdir(dir)
	s := openAt(t, "a", nil)
	t.Chdir("/")
	set(t, s, "k", "v")
	if _, err := os.Stat(filepath.Join(dir, "a", "k")); err != nil {
		t.Errorf("a store opened by a relative path writes elsewhere after chdir: %v", err)
	}
}

func TestClosed(t *testing.T) {
	s := open(t, nil)
	set(t, s, "a/k", "v")
	v := must.Get(s.Locate(ctx, "a/k"))(t)
	must.Do(t, s.Close())
	_, getErr := s.Get(ctx, "a/k", kv.All())
	_, locateErr := s.Locate(ctx, "a/k")
	_, listErr := kv.Keys(ctx, s, "")
	_, cleanErr := s.Clean(ctx, 0)
	var dirErr error
	for _, err := range s.ListDir(ctx, "") {
		dirErr = err
	}
	for what, err := range map[string]error{
		"Get": getErr, "Locate": locateErr, "List": listErr, "ListDir": dirErr, "Clean": cleanErr, "Close": s.Close(), "Sync": s.Sync(ctx),
		"Set": s.Set(ctx, "k", nil), "Delete": s.Delete(ctx, "a/k"), "DeletePrefix": s.DeletePrefix(ctx, ""),
		"View": v.View(ctx, kv.All(), func([]byte) error { return nil }),
	} {
		if err != kv.ErrClosed {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
}

// TestCloseDuringReads closes a store under readers: they must get the value
// or ErrClosed, and never read some other file that got the same descriptor.
func TestCloseDuringReads(t *testing.T) {
	for range 20 {
		s := open(t, nil)
		set(t, s, "a/k", "value")
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					b, err := s.Get(ctx, "a/k", kv.All())
					if err == kv.ErrClosed {
						return
					}
					if err != nil || string(b) != "value" {
						t.Errorf("Get: %q, %v", b, err)
						return
					}
				}
			})
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	set(t, openAt(t, dir, nil), "a/k", "v")
	s := openAt(t, dir, &Options{ReadOnly: true})
	_, cleanErr := s.Clean(ctx, 0)
	for what, err := range map[string]error{
		"Set": s.Set(ctx, "k", nil), "Delete": s.Delete(ctx, "a/k"), "DeletePrefix": s.DeletePrefix(ctx, "a/"), "SetRange": kv.SetRange(ctx, s, "a/k", 0, nil), "Clean": cleanErr,
	} {
		if !errors.Is(err, kv.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantKeys(t, s, "a/k")
}

// TestDeleteRemovesEmptyDirectories deletes the last key of directories.
func TestDeleteRemovesEmptyDirectories(t *testing.T) {
	s := open(t, nil)
	exists := func(rel string) bool {
		_, err := os.Lstat(filepath.Join(s.dir, rel))
		return err == nil
	}
	set(t, s, "a/b/c/k", "")
	set(t, s, "a/k", "")
	must.Do(t, s.Delete(ctx, "a/b/c/k"))
	if exists("a/b") || !exists("a/k") {
		t.Errorf("a/b is there: %v, a/k is there: %v", exists("a/b"), exists("a/k"))
	}
	must.Do(t, s.DeletePrefix(ctx, "a/"))
	if exists("a") || !exists("") {
		t.Errorf("a is there: %v, the base is there: %v", exists("a"), exists(""))
	}
	// Deleting a name that is a directory leaves it alone, empty or not.
	must.Do(t, os.MkdirAll(filepath.Join(s.dir, "empty/dir"), 0o777))
	for _, key := range []string{"empty/dir", "empty"} {
		if err := s.Delete(ctx, key); err != nil || !exists(key) {
			t.Errorf("Delete(%q): %v, still there: %v", key, err, exists(key))
		}
	}
	// Such a directory does not keep the name from being a key.
	set(t, s, "empty/dir", "now a key")
	wantKeys(t, s, "empty/dir")
}

func TestConflicts(t *testing.T) {
	s := open(t, nil)
	set(t, s, "a/b", "v")
	for key, want := range map[string]string{"a": "there are keys below it", "a/b/c": "a name above it is a file", "a/b/c/d": "a name above it is a file"} {
		err := s.Set(ctx, key, []byte("x"))
		var pe *fs.PathError
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &pe) || pe.Path != filepath.Join(s.dir, key) || pe.Op != "set" {
			t.Errorf("Set(%q): %v", key, err)
		}
	}
	wantKeys(t, s, "a/b")
	wantNoTemps(t, s)
}

func wantNoTemps(t *testing.T, s *Store) {
	t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(path), temp.Prefix) {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestLongNames(t *testing.T) {
	s := open(t, nil)
	long := strings.Repeat("n", 255)
	set(t, s, "d/"+long, "v")
	wantValue(t, s, "d/"+long, "v")
	for _, key := range []string{long + "n", "d/" + long + "n/x", strings.Repeat("deep/", 900) + "x"} {
		if err := s.Set(ctx, key, nil); !errors.Is(err, kv.ErrInvalidKey) {
			t.Errorf("Set of a key of %d bytes: %v", len(key), err)
		}
		if _, err := s.Get(ctx, key, kv.All()); !errors.Is(err, kv.ErrInvalidKey) {
			t.Errorf("Get of a key of %d bytes: %v", len(key), err)
		}
	}
	wantKeys(t, s, "d/"+long)
	wantNoTemps(t, s)
}

// TestLeftovers opens a directory in which a writer crashed.
func TestLeftovers(t *testing.T) {
	s := open(t, nil)
	set(t, s, "a/k", "v")
	for _, rel := range []string{temp.Name("x"), temp.Name("a/x"), temp.Name("a/b/x")} {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(s.dir, rel)), 0o777))
		must.Do(t, os.WriteFile(filepath.Join(s.dir, rel), []byte("half a val"), 0o666))
	}
	tree := temp.Name("x") // a tree that was being deleted
	must.Do(t, os.MkdirAll(filepath.Join(s.dir, tree, "b"), 0o777))
	wantKeys(t, s, "a/k")
	if _, err := s.Get(ctx, filepath.ToSlash(tree), kv.All()); !errors.Is(err, kv.ErrInvalidKey) {
		t.Errorf("Get of a temporary: %v", err)
	}
	var names []kv.DirEntry
	for e, err := range s.ListDir(ctx, "") {
		must.Do(t, err)
		names = append(names, e)
	}
	if !slices.Equal(names, []kv.DirEntry{{Name: "a", Prefix: true}}) {
		t.Errorf("ListDir shows %v", names)
	}
	if n, err := s.Clean(ctx, time.Hour); n != 0 || err != nil {
		t.Errorf("Clean of young temporaries: %d, %v", n, err)
	}
	if n, err := s.Clean(ctx, -time.Hour); n != 4 || err != nil {
		t.Errorf("Clean: %d, %v, want 4", n, err)
	}
	wantNoTemps(t, s)
	wantKeys(t, s, "a/k")
}

// TestChangedInPlace truncates and rewrites a file under a located value, as
// other programs may.
func TestChangedInPlace(t *testing.T) {
	s := open(t, nil)
	set(t, s, "k", strings.Repeat("x", 10_000))
	path := filepath.Join(s.dir, "k")
	v := must.Get(s.Locate(ctx, "k"))(t)
	view := func() error { return v.View(ctx, kv.Last(10), func([]byte) error { return nil }) }
	must.Do(t, view())
	must.Do(t, os.Link(path, path+"2"))
	if err := view(); err != nil {
		t.Errorf("after a second hard link: %v", err)
	}
	must.Do(t, os.Truncate(path, 5000))
	if err := view(); !errors.Is(err, kv.ErrChanged) {
		t.Errorf("after truncation: %v", err)
	}
	must.Do(t, os.Truncate(path, 10_000))
	must.Do(t, os.Chtimes(path, time.Time{}, time.Unix(1, 0)))
	if err := view(); !errors.Is(err, kv.ErrChanged) {
		t.Errorf("after a change of the same size: %v", err)
	}
	// Truncated between opening and reading.
	if err := readFull(bytes.NewReader([]byte("abc")), make([]byte, 4), 0); !errors.Is(err, kv.ErrChanged) {
		t.Errorf("a file that ends early: %v", err)
	}
}

func TestTwoStores(t *testing.T) {
	dir := t.TempDir()
	a, b := openAt(t, dir, &Options{NoSync: true}), openAt(t, dir, &Options{NoSync: true})
	var wg sync.WaitGroup
	for g, s := range []*Store{a, b, a, b} {
		wg.Go(func() {
			for i := range 150 {
				key := fmt.Sprintf("d/%d/%d", i%3, g)
				if err := s.Set(ctx, key, []byte(key)); err != nil {
					t.Error(err)
				}
				if err := s.Delete(ctx, key); err != nil { // removes d/… under the others
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	wantKeys(t, a)
}

func TestPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may do everything")
	}
	s := open(t, nil)
	set(t, s, "a/k", "v")
	dir := filepath.Join(s.dir, "a")
	must.Do(t, os.Chmod(dir, 0))
	defer os.Chmod(dir, 0o777)
	_, getErr := s.Get(ctx, "a/k", kv.All())
	_, listErr := kv.Keys(ctx, s, "")
	for what, err := range map[string]error{"get": getErr, "list": listErr, "set": s.Set(ctx, "a/x", nil)} {
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Directories on a very long way are made in one go.
func TestDeepKey(t *testing.T) {
	s := open(t, &Options{NoSync: true})
	key := strings.Repeat("a/", 1900) + "x"
	set(t, s, key, "deep")
	set(t, s, strings.Repeat("a/", 5)+"b/c/y", "beside")
	if got, err := kv.Get(ctx, s, key); err != nil || string(got) != "deep" {
		t.Errorf("it is %q, %v", got, err)
	}
	if err := s.Set(ctx, key+"/z", nil); err == nil {
		t.Error("a key below a key was set")
	}
	must.Do(t, s.Delete(ctx, key))
	if keys, err := kv.Keys(ctx, s, ""); err != nil || len(keys) != 1 {
		t.Errorf("keys %q, %v", keys, err)
	}
}

// half is a value that fails after half of its bytes.
type half struct{ kv.Bytes }

var errHalf = errors.New("half of it")

func (h half) Stream(_ context.Context, fn func([]byte) error) error {
	if err := fn(h.Bytes[:len(h.Bytes)/2]); err != nil {
		return err
	}
	return errHalf
}

// TestSetReader writes a value of a reader, which is read in pieces.
func TestSetReader(t *testing.T) {
	s := must.Get(Open(t.TempDir(), &Options{NoSync: true}))(t)
	defer s.Close()
	const size = 20 << 20
	r := &longest{Reader: bytes.NewReader(bytes.Repeat([]byte("zarr"), size/4))}
	must.Do(t, s.SetValue(ctx, "k", kv.FromReaderAt(r, size, kv.ID{})))
	if v := must.Get(s.Locate(ctx, "k"))(t); v.Size() != size || r.n > 8<<20 {
		t.Errorf("%d bytes, read %d at a time", v.Size(), r.n)
	}
}

// longest notes the longest read.
type longest struct {
	*bytes.Reader
	n int
}

func (l *longest) ReadAt(b []byte, off int64) (int, error) {
	l.n = max(l.n, len(b))
	return l.Reader.ReadAt(b, off)
}

// TestSetValue writes values in pieces: whole, or not at all.
func TestSetValue(t *testing.T) {
	s, from := open(t, nil), open(t, nil)
	long := strings.Repeat("0123456789abcdef", (9<<20)/16) // of two pieces
	set(t, from, "k", long)
	v := must.Get(from.Locate(ctx, "k"))(t)
	must.Do(t, s.SetValue(ctx, "new/dir/k", v))
	wantValue(t, s, "new/dir/k", long)
	must.Do(t, s.SetValue(ctx, "new/dir/k", kv.Bytes("short")))
	wantValue(t, s, "new/dir/k", "short")
	for _, key := range []string{"new/dir/k", "other/k"} {
		if err := s.SetValue(ctx, key, half{kv.Bytes(long)}); err != errHalf {
			t.Errorf("a value that cannot be read: %v", err)
		}
	}
	set(t, from, "k", "changed")
	if err := s.SetValue(ctx, "new/dir/k", v); !errors.Is(err, kv.ErrChanged) {
		t.Errorf("a file that changed: %v", err)
	}
	wantValue(t, s, "new/dir/k", "short")
	wantKeys(t, s, "new/dir/k")
	if left, err := filepath.Glob(filepath.Join(s.dir, "new/dir/*")); err != nil || len(left) != 1 {
		t.Errorf("files %q, %v", left, err)
	}
}

func TestStamp(t *testing.T) {
	s := open(t, nil)
	must.Do(t, s.Set(t.Context(), "a", []byte("abc")))
	at := time.Unix(1_700_000_000, 123_456_789)
	name := filepath.Join(s.dir, "a")
	must.Do(t, os.Chtimes(name, time.Time{}, at))
	v := must.Get(s.Locate(t.Context(), "a"))(t)
	got := kv.StampOf(v)
	if _, rest, _ := strings.Cut(got.ETag, "-"); rest != fmt.Sprintf("%x-3", at.UnixMicro()) || !got.Modified.Equal(at) {
		t.Errorf("%+v", got)
	}
}
