// Package temp names temporary files, which stores rename to their final names.
package temp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Prefix begins the names of temporaries. No key of a directory store has such
// a name, and no listing shows it.
const Prefix = ".zarrdb-tmp-"

// Name returns a new name beside path. It does not depend on path's own name,
// which may already be as long as the file system allows.
func Name(path string) string {
	return filepath.Join(filepath.Dir(path), fmt.Sprintf("%s%016x", Prefix, rand.Uint64()))
}

// Is reports whether name, the last element of a path, names a temporary file.
func Is(name string) bool { return strings.HasPrefix(name, Prefix) }

// SyncDir makes the names in the open directory f durable, as far as the
// system can: Windows and some network file systems cannot.
func SyncDir(f *os.File) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	err := f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// SyncFolder is [SyncDir] of the folder that path lies in.
func SyncFolder(path string) error {
	f, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer f.Close()
	return SyncDir(f)
}
