//go:build unix

package txn

import (
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// allocated is the size of the blocks of all files below dir.
func allocated(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st syscall.Stat_t
		if err == nil {
			err = syscall.Stat(path, &st)
		}
		n += int64(st.Blocks) * 512
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// cpuTime is what this process has used of processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
