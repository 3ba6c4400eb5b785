package dirkv

import (
	"context"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/temp"
)

// Sync makes all earlier writes durable. It is needed only with Options.NoSync.
// On Linux it flushes the file system of the base directory, elsewhere every
// file.
func (s *Store) Sync(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.closed.Load() {
		return kv.ErrClosed
	}
	return s.fail("sync", "", s.syncAll(ctx))
}

// Clean removes temporary files of crashed writers, and returns how many. It
// keeps files younger than age, which a writer may still use: an hour is plenty.
func (s *Store) Clean(ctx context.Context, age time.Duration) (removed int, err error) {
	if s.closed.Load() {
		return 0, kv.ErrClosed
	}
	if s.opts.ReadOnly {
		return 0, kv.ErrReadOnly
	}
	before := time.Now().Add(-age)
	err = s.eachTemp(ctx, "", func(rel string) error {
		fi, err := s.fsys.lstat(rel)
		if err != nil || fi.ModTime().After(before) {
			return err
		}
		if err := s.fsys.removeAll(rel); err != nil {
			return err
		}
		removed++
		return nil
	})
	return removed, err
}

// eachTemp calls fn for every temporary below the directory rel. Links are not
// followed.
func (s *Store) eachTemp(ctx context.Context, rel string, fn func(rel string) error) error {
	f, _, err := s.src.openDir(rel)
	if err != nil {
		return s.gone("clean", rel, err)
	}
	var temps, below []string
	err = eachEntry(ctx, f, func(e fs.DirEntry) error {
		switch path := filepath.Join(rel, e.Name()); {
		case e.Name() == lockName:
		case temp.Is(e.Name()):
			temps = append(temps, path)
		case e.IsDir():
			below = append(below, path)
		}
		return nil
	})
	f.Close()
	if err != nil {
		return s.fail("clean", rel, err)
	}
	for _, path := range temps {
		if err := s.gone("clean", path, fn(path)); err != nil {
			return err
		}
	}
	for _, path := range below {
		if err := s.eachTemp(ctx, path, fn); err != nil {
			return err
		}
	}
	return nil
}
