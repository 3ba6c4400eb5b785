package cli

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// writeFile writes a file atomically. A new file gets the permissions of the
// umask, a replaced one keeps its own; the target of a symbolic link is
// replaced, not the link. A special file, such as a pipe, is written to.
func writeFile(name string, fill func(io.Writer) error) error {
	perm := fs.FileMode(0o666)
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return &fs.PathError{Op: "write", Path: name, Err: errors.New("it is a directory")}
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return filled(f, fill)
	case err == nil:
		perm = info.Mode().Perm()
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return err
		}
	}
	f, err := createBeside(name, perm)
	if err != nil {
		return err
	}
	if info != nil { // the umask may differ from the old permissions
		err = f.Chmod(perm)
	}
	if err = errors.Join(err, filled(f, fill)); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// filled writes a file and closes it.
func filled(f *os.File, fill func(io.Writer) error) error {
	w := bufio.NewWriterSize(f, 256<<10)
	return errors.Join(fill(w), w.Flush(), f.Close())
}

// createBeside makes a new file in the folder of another.
func createBeside(name string, perm fs.FileMode) (*os.File, error) {
	for {
		path := filepath.Join(filepath.Dir(name), ".zarrdb-"+strconv.FormatUint(rand.Uint64(), 36))
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		var pe *fs.PathError
		switch {
		case errors.Is(err, fs.ErrExist):
			continue
		case errors.As(err, &pe):
			err = &fs.PathError{Op: "write", Path: name, Err: pe.Err} // not the temporary's name
		}
		return f, err
	}
}
