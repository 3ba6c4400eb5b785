package dirkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/kv/internal/temp"
)

func (s *Store) beginWrite(ctx context.Context, key string) (rel string, err error) {
	rel, err = s.begin(ctx, key)
	if err == nil && s.opts.ReadOnly {
		err = kv.ErrReadOnly
	}
	return rel, err
}

// attempts bounds how often a write begins again because another process removed
// its directory.
const attempts = 200

// Set implements kv.Writer. Missing directories are made. Set is atomic, and
// durable unless Options.NoSync is set. It fails if the key is a directory that
// is not empty, or a name above it is a file.
func (s *Store) Set(ctx context.Context, key string, value []byte) error {
	return s.write(ctx, key, func(w io.Writer) error {
		_, err := w.Write(value)
		return err
	})
}

// SetValue is Set for a value that need not be in memory at once: if
// [kv.Streams] is true it is read in pieces. Errors of reading it are returned
// unchanged.
func (s *Store) SetValue(ctx context.Context, key string, v kv.Value) error {
	var unread error
	err := s.write(ctx, key, func(w io.Writer) error {
		var unwritten error
		unread = kv.Stream(ctx, v, func(b []byte) error {
			_, unwritten = w.Write(b)
			return unwritten
		})
		if unwritten != nil {
			unread = nil
			return unwritten
		}
		if unread != nil {
			return errUnread
		}
		return nil
	})
	if unread != nil {
		return unread
	}
	return err
}

// errUnread means that a value could not be read.
var errUnread = errors.New("value not read")

// write sets a key; fill writes the value.
func (s *Store) write(ctx context.Context, key string, fill func(io.Writer) error) error {
	rel, err := s.beginWrite(ctx, key)
	if err != nil {
		return err
	}
	for range attempts {
		if err = s.set(rel, fill); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err = s.mkdirAll(filepath.Dir(rel)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return s.fail("set", rel, fmt.Errorf("a name above it is a file: %w", err))
	case errors.Is(err, errIsDir):
		return s.fail("set", rel, fmt.Errorf("there are keys below it: %w", err))
	}
	return s.fail("set", rel, err)
}

// errIsDir means that a directory has the name of a key.
var errIsDir = errors.New("is a directory")

func (s *Store) set(rel string, fill func(io.Writer) error) error {
	tmp := temp.Name(rel)
	err := s.fsys.writeFile(tmp, !s.opts.NoSync, fill)
	if err == nil {
		err = s.place(tmp, rel)
	}
	if err != nil {
		// A temporary that cannot be removed either is invisible and harmless:
		// its error is dropped.
		_ = s.fsys.remove(tmp)
		return err
	}
	err = s.syncDir(filepath.Dir(rel))
	if errors.Is(err, fs.ErrNotExist) {
		// It was removed with its directory, by a process that syncs the
		// removal. Setting it again could overwrite a newer value of another
		// writer.
		err = nil
	}
	return err
}

// place renames a finished temporary to rel, after removing an empty directory
// of that name: programs that delete only files leave such directories.
func (s *Store) place(tmp, rel string) error {
	err := s.fsys.rename(tmp, rel)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if fi, e := s.fsys.lstat(rel); e != nil || !fi.IsDir() {
		return err
	}
	if s.fsys.rmdir(rel) != nil {
		return errIsDir
	}
	return s.fsys.rename(tmp, rel)
}

// mkdirAll makes a directory and those above it, durably.
func (s *Store) mkdirAll(dir string) error {
	var missing []string // below dir
	for ; dir != "."; dir = filepath.Dir(dir) {
		err := s.fsys.mkdir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, filepath.Base(dir))
			continue
		}
		if errors.Is(err, fs.ErrExist) {
			var fi fs.FileInfo
			if fi, err = s.fsys.stat(dir); err == nil && !fi.IsDir() {
				err = syscall.ENOTDIR
			}
		} else if err == nil {
			err = s.syncDir(filepath.Dir(dir))
		}
		if err != nil {
			return err
		}
		break
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Reverse(missing)
	return s.fsys.mkdirs(dir, missing, !s.opts.NoSync)
}

func (s *Store) syncDir(dir string) error {
	if s.opts.NoSync {
		return nil
	}
	return s.fsys.syncDir(dir)
}

// Delete implements kv.Writer. Directories that become empty are removed, except
// the base directory. A directory is no key, so deleting its name does nothing.
func (s *Store) Delete(ctx context.Context, key string) error {
	rel, err := s.beginWrite(ctx, key)
	if err != nil {
		return err
	}
	fi, err := s.fsys.lstat(rel)
	if err == nil && !fi.IsDir() {
		err = s.fsys.remove(rel)
	}
	if err != nil {
		if s.readError("delete", rel, err) == kv.ErrNotFound {
			return nil
		}
		return s.fail("delete", rel, err)
	}
	if fi.IsDir() {
		return nil
	}
	return s.fail("delete", rel, s.removed(filepath.Dir(rel)))
}

// removed makes a removal from dir durable. First it removes dir and the
// directories above it that are empty.
func (s *Store) removed(dir string) error {
	for dir != "." && s.fsys.rmdir(dir) == nil {
		dir = filepath.Dir(dir)
	}
	for {
		err := s.syncDir(dir)
		if !errors.Is(err, fs.ErrNotExist) || dir == "." {
			return err
		}
		// Another process removed it, and may not have synced yet.
		dir = filepath.Dir(dir)
	}
}

// DeletePrefix implements kv.PrefixDeleter. All keys of a directory vanish at
// once: the directory is renamed to a temporary name, and then removed.
func (s *Store) DeletePrefix(ctx context.Context, prefix string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case s.closed.Load():
		return kv.ErrClosed
	case s.opts.ReadOnly:
		return kv.ErrReadOnly
	}
	if name, isDir := strings.CutSuffix(prefix, "/"); isDir {
		return s.deleteDir(name)
	}
	dir := prefix[:strings.LastIndexByte(prefix, '/')+1]
	found, _, err := s.readDir(ctx, dir, func(entry []byte) bool { return bytes.HasPrefix(entry, []byte(prefix[len(dir):])) })
	if err != nil || found.len() == 0 {
		return s.gone("delete prefix", dir, err)
	}
	rel := ""
	for i := range found.len() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if rel, err = native.rel(dir + strings.TrimSuffix(found.name(i), "/")); err != nil {
			return err // readDir has checked it
		}
		if err := s.gone("delete prefix", rel, s.deleteEntry(rel)); err != nil {
			return err
		}
	}
	return s.fail("delete prefix", rel, s.removed(filepath.Dir(rel)))
}

// deleteDir removes all keys below a name.
func (s *Store) deleteDir(name string) error {
	rel, err := native.rel(name)
	if err != nil {
		return nil // no key can be below it
	}
	fi, err := s.fsys.stat(rel)
	if err == nil && !fi.IsDir() {
		return nil
	}
	if err == nil {
		err = s.deleteEntry(rel)
	}
	if err == nil {
		err = s.removed(filepath.Dir(rel))
	}
	return s.gone("delete prefix", rel, err)
}

// gone returns nil for the error of a missing path.
func (s *Store) gone(op, rel string, err error) error {
	if err == nil || s.readError(op, rel, err) == kv.ErrNotFound {
		return nil
	}
	return s.fail(op, rel, err)
}

// deleteEntry removes a file, a link, or a directory with its contents.
func (s *Store) deleteEntry(rel string) error {
	fi, err := s.fsys.lstat(rel)
	switch {
	case err != nil:
		return err
	case !fi.IsDir():
		return s.fsys.remove(rel)
	}
	tmp := temp.Name(rel)
	if err := s.fsys.rename(rel, tmp); err != nil {
		return err
	}
	if fi, err := s.fsys.lstat(tmp); err == nil && !fi.IsDir() {
		return s.fsys.rename(tmp, rel) // it became a key meanwhile
	}
	return s.removeTree(tmp)
}

// removeTree removes a directory with its contents. A Set that found it before
// it was renamed may still write a file there; its rename then fails, and it
// begins again.
func (s *Store) removeTree(tmp string) error {
	var err error
	for range attempts {
		err = s.fsys.removeAll(tmp)
		if !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) {
			break
		}
	}
	return err
}
