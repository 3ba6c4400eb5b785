package osfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// MkdirBelow makes a directory and its missing parents, but not root: if root is gone,
// for example because somebody removed the database, the error is fs.ErrNotExist and
// nothing is made. In another file system than the operating system's, and for a dir
// that does not lie below root, it is MkdirAll.
func MkdirBelow(files vfs.FS, root, dir string, perm os.FileMode) error {
	below, err := filepath.Rel(root, dir)
	if vfs.Root(files) != vfs.Default || err != nil || !filepath.IsLocal(below) {
		return files.MkdirAll(dir, perm)
	}
	path := root
	for name := range strings.SplitSeq(below, string(filepath.Separator)) {
		path = filepath.Join(path, name)
		switch err := os.Mkdir(path, perm); {
		case err == nil:
			giveDir(path)
		case !errors.Is(err, fs.ErrExist):
			return err
		}
	}
	return nil
}
