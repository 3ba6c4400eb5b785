package osfs

import (
	"errors"
	"github.com/zarrdb/zarrdb/internal/must"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A directory that was removed is not made again for what lies in it.
func TestMkdirBelow(t *testing.T) {
	root := filepath.Join(t.TempDir(), "db")
	if err := MkdirBelow(FS, root, filepath.Join(root, "a", "b"), 0o777); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a missing directory: %v", err)
	}
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
	must.Do(t, os.Mkdir(root, 0o777))
	for range 2 {
		if err := MkdirBelow(FS, root, filepath.Join(root, "a", "b"), 0o777); err != nil {
			t.Error(err)
		}
	}
	if fi, err := os.Stat(filepath.Join(root, "a", "b")); err != nil || !fi.IsDir() {
		t.Errorf("%v, %v", fi, err)
	}
	beside := filepath.Join(filepath.Dir(root), "beside", "c")
	if err := MkdirBelow(FS, root, beside, 0o777); err != nil {
		t.Error(err)
	}
}
