package index

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/zarrdb/zarrdb/kv"
)

type zipEntry struct {
	name   string
	method uint16
	data   string
}

// zipped writes a zip file.
func zipped(t testing.TB, fs vfs.FS, file string, entries ...zipEntry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		to, err := w.CreateHeader(&zip.FileHeader{Name: e.name, Method: e.method})
		if err == nil {
			_, err = io.WriteString(to, e.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	writeWhole(t, fs, file, b.Bytes())
	return b.Bytes()
}

func writeWhole(t testing.TB, fs vfs.FS, file string, b []byte) {
	t.Helper()
	f, err := fs.Create(file, WriteCategory)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(bytes.Clone(b)) // a vfs.File may change what it gets
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestZip(t *testing.T) {
	mem := vfs.NewMem()
	zipped(t, mem, "b.zip", zipEntry{"FORMAT", zip.Store, "1"}, zipEntry{"d/", zip.Store, ""}, zipEntry{"d/one", zip.Store, "first"}, zipEntry{"d/e/two", zip.Store, ""})
	z, err := OpenZip(mem, "b.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for dir, want := range map[string][]string{"b.zip": {"FORMAT", "d"}, "b.zip/d": {"e", "one"}, "b.zip/d/": {"e", "one"}, "b.zip/none": nil} {
		if got, err := z.List(dir); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", dir, got, err)
		}
	}
	f, err := z.Open(z.PathJoin("b.zip", "d", "one"))
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 9)
	if n, err := f.ReadAt(b, 1); n != 4 || err != io.EOF || string(b[:n]) != "irst" {
		t.Errorf("%q, %v", b[:n], err)
	}
	if fi, err := f.Stat(); err != nil || fi.Size() != 5 || fi.IsDir() {
		t.Errorf("%v, %v", fi, err)
	}
	if fi, err := z.Stat("b.zip/d"); err != nil || !fi.IsDir() {
		t.Errorf("%v, %v", fi, err)
	}
	if err := z.Verify(context.Background(), "d/one"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"b.zip/nope", "b.zip/d/on", "other"} {
		if _, err := z.Open(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, created := z.Create("b.zip/n", WriteCategory)
	_, write := f.Write([]byte("x"))
	_, at := f.WriteAt([]byte("x"), 0)
	_, opened := z.OpenReadWrite("b.zip/d/one", WriteCategory)
	_, reused := z.ReuseForWrite("b.zip/d/one", "b.zip/n", WriteCategory)
	_, locked := z.Lock("b.zip/LOCK")
	for i, err := range []error{
		created, write, at, opened, reused, locked, f.Preallocate(0, 1), z.Link("b.zip/d/one", "b.zip/n"), z.Remove("b.zip/d/one"),
		z.RemoveAll("b.zip"), z.Rename("b.zip/d/one", "b.zip/n"), z.MkdirAll("b.zip/n", 0o755),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("write %d: %v", i, err)
		}
	}
}

func TestZipRefuses(t *testing.T) {
	mem := vfs.NewMem()
	for _, name := range []string{"../x", "/x", "a//b", "a/./b", `a\b`, "c:x", ".."} {
		zipped(t, mem, "b.zip", zipEntry{name, zip.Store, "1"})
		if _, err := OpenZip(mem, "b.zip"); !errors.Is(err, kv.ErrCorrupt) {
			t.Errorf("%q: %v", name, err)
		}
	}
	zipped(t, mem, "b.zip", zipEntry{"x", zip.Store, "1"}, zipEntry{"x", zip.Store, "2"})
	if _, err := OpenZip(mem, "b.zip"); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("twice: %v", err)
	}
	zipped(t, mem, "b.zip", zipEntry{"x", zip.Deflate, "1"})
	if _, err := OpenZip(mem, "b.zip"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("compressed: %v", err)
	}
	if _, err := OpenZip(mem, "none.zip"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// FuzzZip opens damaged zip files and reads whatever is in them.
func FuzzZip(f *testing.F) {
	f.Add(zipped(f, vfs.NewMem(), "b.zip", zipEntry{"FORMAT", zip.Store, "1"}, zipEntry{"d/one", zip.Store, "first"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		mem := vfs.NewMem()
		writeWhole(t, mem, "b.zip", b)
		z, err := OpenZip(mem, "b.zip")
		if err != nil {
			return
		}
		defer z.Close()
		for _, name := range z.Names() {
			whole := z.Verify(context.Background(), name)
			f, err := z.Open("b.zip/" + name)
			if err != nil {
				if whole == nil {
					t.Fatalf("%q is whole and cannot be opened: %v", name, err)
				}
				continue
			}
			got, err := io.ReadAll(f)
			if fi, statErr := f.Stat(); err != nil || statErr != nil || int64(len(got)) != fi.Size() {
				t.Fatalf("%q: %d bytes, %v %v", name, len(got), err, statErr)
			}
		}
	})
}
