package dirkv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zarrdb/zarrdb/kv/internal/temp"
)

// Replace replaces the file or directory at path by a new one, and removes the
// old one. write makes the new one under a temporary name in the same folder,
// which no listing of a [Store] shows. If write or the exchange fails, path is
// unchanged and the new one is removed. A symbolic link at path is replaced, not
// followed. The exchange is durable when Replace returns; write itself syncs the
// contents.
//
// Linux exchanges the two names in one step, so path always exists. Other
// systems rename twice: between the renames path is missing, and a crash then
// leaves the old one under a temporary name.
func Replace(path string, write func(name string) error) (err error) {
	if path, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("dirkv: replace: %w", err)
	}
	tmp := temp.Name(path)
	if err := write(tmp); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	if err := exchange(tmp, path); err != nil {
		return errors.Join(fmt.Errorf("dirkv: replace %s: %w", path, err), os.RemoveAll(tmp))
	}
	// Now tmp is the old one.
	if err := errors.Join(temp.SyncFolder(path), os.RemoveAll(tmp)); err != nil {
		return fmt.Errorf("dirkv: replace %s: the new one is in place, but: %w", path, err)
	}
	return nil
}

// renames is exchange by two renames.
func renames(a, b string) error {
	old := temp.Name(b)
	err := os.Rename(b, old)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Rename(a, b)
	}
	if err != nil {
		return err
	}
	if err := os.Rename(a, b); err != nil {
		return errors.Join(err, os.Rename(old, b))
	}
	return os.Rename(old, a)
}
