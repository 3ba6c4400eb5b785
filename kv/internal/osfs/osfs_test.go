package osfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zarrdb/zarrdb/internal/must"
)

// A file that is open keeps its bytes when its name goes to another one.
func TestOpenFileLosesItsName(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	old := create(t, name, "old")
	must.Do(t, FS.Remove(name))
	if _, err := FS.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed file: %v", err)
	}
	wantText(t, old, "old")

	next := create(t, name, "next")
	must.Do(t, create(t, name+".tmp", "last").Close())
	if err := FS.Rename(name+".tmp", name); errors.Is(err, fs.ErrPermission) {
		t.Skip("the file system replaces no open file")
	} else if err != nil {
		t.Fatal(err)
	}
	wantText(t, next, "next")
	last := must.Get(FS.Open(name))(t)
	defer last.Close()
	wantText(t, last, "last")
}

// Create makes a new file in the place of an old one, whose other name keeps its bytes.
func TestCreate(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	create(t, name, "old")
	must.Do(t, FS.Link(name, name+".link"))
	create(t, name, "new")
	if b, err := os.ReadFile(name + ".link"); err != nil || string(b) != "old" {
		t.Errorf("the other name has %q, %v", b, err)
	}
	again, err := FS.ReuseForWrite(name+".link", name, vfs.WriteCategoryUnspecified)
	if errors.Is(err, fs.ErrPermission) {
		t.Skip("the file system replaces no open file")
	} else if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	wantText(t, again, "old")
}

// Errors have the whole path.
func TestErrors(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	var path *fs.PathError
	if _, err := FS.Open(name); !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &path) || path.Path != name {
		t.Error(err)
	}
	var link *os.LinkError
	if err := FS.Rename(name, name+"2"); !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &link) || link.Old != name {
		t.Error(err)
	}
}

func create(t *testing.T, name, text string) vfs.File {
	t.Helper()
	f := must.Get(FS.Create(name, vfs.WriteCategoryUnspecified))(t)
	t.Cleanup(func() { _ = f.Close() })
	must.Get(f.Write([]byte(text)))(t)
	return f
}

func wantText(t *testing.T, f vfs.File, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := f.ReadAt(b, 0); err != nil || string(b) != want {
		t.Errorf("got %q, %v, want %q", b, err, want)
	}
}
