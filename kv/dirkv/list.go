package dirkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/kv"
)

// entries are the names of one directory, those of sub-directories with a
// slash at the end, in one block of memory: about 25 bytes for the name of a
// chunk, so that a directory of ten million files can still be listed.
//
// Sorted by these bytes they are in the order of the keys below them:
// "a-b" < "a.b" < "a/" < "a0".
type entries struct {
	text  []byte
	spans []span
}

type span struct{ off, end int }

func (e *entries) len() int          { return len(e.spans) }
func (e *entries) of(s span) []byte  { return e.text[s.off:s.end] }
func (e *entries) name(i int) string { return string(e.of(e.spans[i])) }

// add appends a name unless keep refuses it.
func (e *entries) add(name string, isDir bool, keep func(entry []byte) bool) {
	s := span{off: len(e.text)}
	e.text = append(e.text, name...)
	if isDir {
		e.text = append(e.text, '/')
	}
	s.end = len(e.text)
	if !keep(e.of(s)) {
		e.text = e.text[:s.off]
		return
	}
	e.spans = append(e.spans, s)
}

func (e *entries) sortByKey() {
	slices.SortFunc(e.spans, func(a, b span) int { return bytes.Compare(e.of(a), e.of(b)) })
}

func (e *entries) sortByName() {
	slash := []byte("/")
	slices.SortFunc(e.spans, func(a, b span) int {
		return bytes.Compare(bytes.TrimSuffix(e.of(a), slash), bytes.TrimSuffix(e.of(b), slash))
	})
}

// readBatch is the number of names read at a time.
const readBatch = 1024

// readDir reads the names in the directory dir, which is empty or ends in a
// slash, that could be keys or begin keys, in no order. The errors are the
// system's.
func (s *Store) readDir(ctx context.Context, dir string, keep func(entry []byte) bool) (*entries, info, error) {
	rel := ""
	if dir != "" {
		var err error
		if rel, err = native.rel(strings.TrimSuffix(dir, "/")); err != nil {
			return nil, info{}, fs.ErrNotExist // no key can be below it
		}
	}
	f, in, err := s.src.openDir(rel)
	if err != nil {
		return nil, info{}, err
	}
	defer f.Close()
	found := &entries{}
	err = eachEntry(ctx, f, func(e fs.DirEntry) error {
		if native.validNames(e.Name()) != nil || kv.ValidKey(e.Name()) != nil {
			return nil
		}
		mode := e.Type()
		if mode&fs.ModeSymlink != 0 {
			at := filepath.Join(rel, e.Name())
			fi, err := s.fsys.stat(at)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil // its target is missing
			case err == nil:
				mode = fi.Mode()
			default:
				mode, err = s.src.linkMode(at)
			}
			if err != nil {
				return fmt.Errorf("link %s: %w", e.Name(), err)
			}
		}
		if mode.IsDir() || mode.IsRegular() {
			found.add(e.Name(), mode.IsDir(), keep)
		}
		return nil
	})
	return found, in, err
}

// eachEntry calls fn for what is in the directory f, in no order.
func eachEntry(ctx context.Context, f *os.File, fn func(fs.DirEntry) error) error {
	for {
		batch, err := f.ReadDir(readBatch)
		for _, e := range batch {
			if err := fn(e); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// List implements kv.Lister. It holds the names of one directory at each level.
func (s *Store) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		w := walk{s: s, ctx: ctx, opts: opts, yield: yield}
		start := opts.Prefix[:strings.LastIndexByte(opts.Prefix, '/')+1]
		if err := w.dir(start); err != nil && err != errStop {
			yield("", err)
		}
	}
}

// walk is one listing.
type walk struct {
	s     *Store
	ctx   context.Context
	opts  kv.ListOptions
	yield func(string, error) bool
	n     int    // keys yielded
	above []info // the directories from the start to the current one
}

// errStop means that the caller left the loop over the listing.
var errStop = errors.New("stop")

// checkEvery is the number of keys yielded between two checks of the context.
const checkEvery = 256

// dir yields the keys below dir, which is empty or ends in a slash.
func (w *walk) dir(dir string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if w.s.closed.Load() {
		return kv.ErrClosed
	}
	found, in, err := w.s.readDir(w.ctx, dir, func(entry []byte) bool { return w.wants(dir, entry) })
	if err != nil {
		if w.ctx.Err() != nil {
			return err
		}
		return w.s.gone("list", dir, err) // it may have been removed since it was seen
	}
	for _, a := range w.above {
		if a.sameFile(in) {
			return w.s.fail("list", dir, errors.New("a symbolic link leads to a directory above it"))
		}
	}
	w.above = append(w.above, in)
	defer func() { w.above = w.above[:len(w.above)-1] }()
	found.sortByKey()
	for i := range found.len() {
		full := dir + found.name(i)
		if strings.HasSuffix(full, "/") {
			if err := w.dir(full); err != nil {
				return err
			}
			continue
		}
		if w.n++; w.n%checkEvery == 0 {
			if err := w.ctx.Err(); err != nil {
				return err
			}
		}
		if !w.yield(full, nil) {
			return errStop
		}
	}
	return nil
}

// wants reports whether an entry of dir is a key to yield, or a directory that
// may contain some.
func (w *walk) wants(dir string, entry []byte) bool {
	prefix, ok := strings.CutPrefix(w.opts.Prefix, dir)
	if !ok {
		prefix = "" // dir begins with the prefix
	}
	if entry[len(entry)-1] != '/' {
		return bytes.HasPrefix(entry, []byte(prefix)) && dir+string(entry) > w.opts.After
	}
	if !bytes.HasPrefix(entry, []byte(prefix)) {
		return false
	}
	// Keys below the entry begin with it, so After is behind all of them or
	// begins with it too.
	full := dir + string(entry)
	return full > w.opts.After || strings.HasPrefix(w.opts.After, full)
}

// ListDir implements kv.DirLister.
func (s *Store) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	return func(yield func(kv.DirEntry, error) bool) {
		err := ctx.Err()
		switch {
		case err != nil:
		case s.closed.Load():
			err = kv.ErrClosed
		case prefix != "" && !strings.HasSuffix(prefix, "/"):
			err = fmt.Errorf("%w: prefix %q of a directory does not end with a slash", kv.ErrInvalidKey, prefix)
		}
		if err != nil {
			yield(kv.DirEntry{}, err)
			return
		}
		found, _, err := s.readDir(ctx, prefix, func([]byte) bool { return true })
		if err != nil {
			if ctx.Err() == nil {
				err = s.gone("list", prefix, err)
			}
			if err != nil {
				yield(kv.DirEntry{}, err)
			}
			return
		}
		found.sortByName()
		for i := range found.len() {
			name, isDir := strings.CutSuffix(found.name(i), "/")
			if !yield(kv.DirEntry{Name: name, Prefix: isDir}, nil) {
				return
			}
		}
	}
}
