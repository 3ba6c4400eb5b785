//go:build unix

package txn

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
)

// allocated is the size of the blocks of all files below dir, each once. Files
// may come and go meanwhile.
func allocated(t *testing.T, dir string) (n int64) {
	t.Helper()
	type file struct{ dev, ino uint64 }
	seen := map[file]bool{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st syscall.Stat_t
		if err == nil {
			err = syscall.Stat(path, &st)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		f := file{uint64(st.Dev), uint64(st.Ino)}
		if err == nil && !seen[f] {
			seen[f] = true
			n += int64(st.Blocks) * 512
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return n
}
