//go:build !linux

package dirkv

import (
	"context"
	"io/fs"
	"os"
	"runtime"

	"github.com/zarrdb/zarrdb/kv"
)

// syncAll syncs file by file and directory by directory.
func (s *Store) syncAll(ctx context.Context) error {
	for key, err := range s.List(ctx, kv.ListOptions{}) {
		if err != nil {
			return err
		}
		f, err := s.src.root.OpenFile(key, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		err = f.Sync()
		f.Close()
		if err != nil {
			return err
		}
	}
	if runtime.GOOS == "windows" {
		return nil
	}
	return fs.WalkDir(s.src.root.FS(), ".", func(rel string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return s.fsys.syncDir(rel)
	})
}
