package dirkv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zarrdb/zarrdb/kv/internal/temp"
)

// Replace puts a new file or directory in the place of what is at path, and then
// removes that. write makes the new one under a name of its own in the same
// folder, which no listing of a [Store] shows. If write fails, or the new one
// cannot be put in place, path is as it was and nothing else is left. A symbolic
// link at path is replaced, not followed. The exchange is durable when Replace
// returns; what write makes is for write to sync.
//
// Where the system can exchange two names (Linux), there is something at path at
// every moment. Elsewhere there is nothing for the time between two renames, and
// a crash in it leaves the old one under a temporary name.
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
	dir, err := os.Open(filepath.Dir(path))
	if err == nil {
		err = temp.SyncDir(dir)
		dir.Close()
	}
	// Now tmp is the old one.
	if err := errors.Join(err, os.RemoveAll(tmp)); err != nil {
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
