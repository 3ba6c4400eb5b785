package pack

import (
	"errors"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Discard removes the packs in dir that were written under an incarnation, with
// their marks, durably. Packs of other incarnations, and other files, stay. A
// missing dir is no error; after an error of fs some packs may be removed. No
// store may have them open.
func Discard(fs vfs.FS, dir string, incarnation [8]byte) error {
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		id, suffix, ok := parseName(name)
		switch suffix {
		case packSuffix, goneSuffix, packSuffix + rewriteSuffix:
		default:
			ok = false
		}
		if ok && id.Incarnation() == incarnation {
			if err := fs.Remove(fs.PathJoin(dir, name)); err != nil {
				return err
			}
		}
	}
	return syncDir(fs, dir)
}
