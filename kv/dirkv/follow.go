package dirkv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// ErrOutside means that a symbolic link leads out of the directory, to a place
// that [Options.Follow] does not allow.
var ErrOutside = errors.New("a symbolic link leads out of the directory")

// following reads files of the base and, through symbolic links, of the folders
// that [Options.Follow] allows. Each of those is opened once as a base of its
// own, so links may not leave it either.
type following struct {
	*source
	dir     string
	folders []string

	mu     sync.Mutex
	opened map[string]*source // by folder, links in its path resolved
}

// elsewhere is called after reading rel below the base gave err. If rel leads
// into an allowed folder, it calls fn with that folder and path.
func (s *following) elsewhere(rel string, err error, fn func(in *source, rel string) error) error {
	if err == errNotAFile || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrClosed) {
		return err
	}
	to, e := filepath.EvalSymlinks(filepath.Join(s.dir, rel))
	if e != nil {
		return err
	}
	for _, folder := range s.folders {
		folder, below, ok := below(folder, to)
		if !ok {
			continue
		}
		in, e := s.folder(folder)
		if e != nil {
			return e
		}
		return fn(in, below)
	}
	if _, _, inside := below(s.dir, to); inside {
		return err
	}
	return fmt.Errorf("%w, to %s", ErrOutside, to)
}

// below returns a folder with the links in its path resolved, and the path of to in
// it; ok is false if it lies elsewhere.
func below(folder, to string) (real, path string, ok bool) {
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", "", false
	}
	path, err = filepath.Rel(real, to)
	return real, path, err == nil && filepath.IsLocal(path)
}

// folder opens an allowed folder, which stays open until the store is closed.
func (s *following) folder(folder string) (*source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in := s.opened[folder]; in != nil {
		return in, nil
	}
	root, err := openRoot(folder)
	if err != nil {
		return nil, err
	}
	if s.opened == nil {
		s.opened = map[string]*source{}
	}
	s.opened[folder] = newSource(root, folder)
	return s.opened[folder], nil
}

func (s *following) open(rel string) (f openFile, in info, err error) {
	if f, in, err = s.source.open(rel); err != nil {
		err = s.elsewhere(rel, err, func(to *source, rel string) (e error) {
			f, in, e = to.open(rel)
			return e
		})
	}
	return f, in, err
}

func (s *following) stat(rel string) (in info, err error) {
	if in, err = s.source.stat(rel); err != nil {
		err = s.elsewhere(rel, err, func(to *source, rel string) (e error) {
			in, e = to.stat(rel)
			return e
		})
	}
	return in, err
}

func (s *following) openDir(rel string) (f *os.File, in info, err error) {
	if f, in, err = s.source.openDir(rel); err != nil {
		err = s.elsewhere(rel, err, func(to *source, rel string) (e error) {
			f, in, e = to.openDir(rel)
			return e
		})
	}
	return f, in, err
}

// linkMode returns the type of a symbolic link's target: a directory, a file, or
// something else (0). fs.ErrNotExist means that the target is missing.
func (s *following) linkMode(rel string) (fs.FileMode, error) {
	f, _, err := s.openDir(rel)
	if err == nil {
		f.Close()
		return fs.ModeDir, nil
	}
	if _, err = s.stat(rel); err == errNotAFile {
		return fs.ModeIrregular, nil
	}
	return 0, err
}

func (s *following) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := []error{s.source.close()}
	for _, in := range s.opened {
		errs = append(errs, in.close())
	}
	s.opened = nil
	return errors.Join(errs...)
}
