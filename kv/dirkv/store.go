package dirkv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zarrdb/zarrdb/kv"
)

// Options of a store. Nil and the zero value are ready to use.
type Options struct {
	// ReadOnly makes every write kv.ErrReadOnly. Default: false.
	ReadOnly bool

	// NoSync makes writes durable only with [Store.Sync]. It is for output that
	// is used only when complete, such as an export: a crash before may leave
	// empty or partly written files. Default: each Set and Delete is durable
	// when it returns.
	NoSync bool

	// Follow lists folders that symbolic links may lead to from the directory,
	// for reading; "/" allows all. Writes never follow them. Default: none.
	Follow []string
}

// Store is a directory as a kv.Store. Safe for concurrent use, also by several
// processes.
type Store struct {
	dir    string // absolute
	self   fs.FileInfo
	opts   Options
	src    *following
	fsys   fsys
	closed atomic.Bool
}

var (
	_ kv.Store         = (*Store)(nil)
	_ kv.Locator       = (*Store)(nil)
	_ kv.DirLister     = (*Store)(nil)
	_ kv.PrefixDeleter = (*Store)(nil)
)

// Open opens an existing directory. dir is a path, relative to the working
// directory or absolute; it may be a symbolic link. A missing one is
// fs.ErrNotExist. Close the store when done.
func Open(dir string, opts *Options) (*Store, error) {
	s := &Store{}
	if opts != nil {
		s.opts = *opts
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("dirkv: open %s: %w", dir, err)
	}
	fi, err := os.Stat(abs)
	if err != nil {
		return nil, fmt.Errorf("dirkv: %w", pathError("open", abs, err))
	}
	if !fi.IsDir() {
		return nil, fmt.Errorf("dirkv: %w", pathError("open", abs, syscall.ENOTDIR))
	}
	root, err := openRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("dirkv: %w", pathError("open", abs, err))
	}
	if s.self, err = root.Stat("."); err != nil {
		_ = root.Close()
		return nil, fmt.Errorf("dirkv: %w", pathError("open", abs, err))
	}
	s.dir = abs
	s.src = &following{source: newSource(root, abs), dir: abs, folders: s.opts.Follow}
	s.fsys = rootFS{root, abs}
	return s, nil
}

// Create makes the directory, with its parents, unless it exists, and opens it.
// Existing contents stay.
func Create(dir string, opts *Options) (*Store, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("dirkv: create: %w", err)
	}
	return Open(dir, opts)
}

// InPlace reports whether the path that was opened still leads to the base
// directory. A store stays with its directory, even if that is renamed or
// replaced.
func (s *Store) InPlace() bool {
	now, err := os.Stat(s.dir)
	return err == nil && os.SameFile(now, s.self)
}

// Close releases the directory. Every operation afterwards is kv.ErrClosed,
// values located before included.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return kv.ErrClosed
	}
	return s.src.close()
}

// Get implements kv.Reader. A key that names a directory is not found.
func (s *Store) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	rel, err := s.begin(ctx, key)
	if err != nil {
		return nil, err
	}
	f, in, err := s.src.open(rel)
	if err != nil {
		return nil, s.readError("get", rel, err)
	}
	defer f.Close()
	off, n, err := rng.Resolve(in.size)
	if err != nil {
		return nil, err
	}
	if err := kv.CheckHeld(n); err != nil {
		return nil, s.fail("get", rel, err)
	}
	b := make([]byte, n)
	if err := readFull(f, b, off); err != nil {
		return nil, s.fail("get", rel, err)
	}
	return b, nil
}

// Locate implements kv.Locator. A value holds no open file, so any number may be
// located. Each View opens the file again, and fails with kv.ErrChanged if its
// inode, size or times differ.
func (s *Store) Locate(ctx context.Context, key string) (kv.Value, error) {
	rel, err := s.begin(ctx, key)
	if err != nil {
		return nil, err
	}
	in, err := s.src.stat(rel)
	if err != nil {
		return nil, s.readError("locate", rel, err)
	}
	return &value{s, rel, in}, nil
}

// begin starts an operation on a key: it makes the checks that need no file
// system, and returns the relative path.
func (s *Store) begin(ctx context.Context, key string) (rel string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if s.closed.Load() {
		return "", kv.ErrClosed
	}
	rel, err = native.rel(key)
	if err == nil && len(s.dir)+1+len(rel) > maxPath {
		return "", fmt.Errorf("dirkv: %w: path of %d bytes", kv.ErrInvalidKey, len(s.dir)+1+len(rel))
	}
	return rel, err
}

// maxPath is the longest path that Linux opens. os.Root resolves name by name
// and would make longer ones, which no other program could read.
const maxPath = 4095

// errNotAFile means that a path is a directory or another special file.
var errNotAFile = errors.New("not a regular file")

// readError converts an error of the system to one that kv.Reader specifies.
func (s *Store) readError(op, rel string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == errNotAFile {
		return kv.ErrNotFound
	}
	return s.fail(op, rel, err)
}

// fail wraps an error with operation and path. errors.Is and errors.As reach
// the system's error through it.
func (s *Store) fail(op, rel string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrClosed) && s.closed.Load():
		return kv.ErrClosed
	case errors.Is(err, syscall.ENAMETOOLONG):
		err = fmt.Errorf("%w: %w", kv.ErrInvalidKey, pathError(op, filepath.Join(s.dir, rel), err))
	default:
		err = pathError(op, filepath.Join(s.dir, rel), err)
	}
	return fmt.Errorf("dirkv: %w", err)
}

// pathError prefixes an error with operation and path, and drops those of the
// system's error.
func pathError(op, path string, err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		err = e.Err
	case *os.LinkError:
		err = e.Err
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

var (
	_ kv.Validator = (*value)(nil)
	_ kv.Stamped   = (*value)(nil)
)

// value is a located file.
type value struct {
	s    *Store
	rel  string
	info info
}

func (v *value) Size() int64 { return v.info.size }

// ID implements kv.Value. It is zero: a file can change.
func (v *value) ID() kv.ID { return kv.ID{} }

// Validator implements [kv.Validator]: the time of the last change, in
// nanoseconds since 1970, and the size.
func (v *value) Validator() string {
	return fmt.Sprintf("mtime:%d size:%d", v.info.modified, v.info.size)
}

func (v *value) Stamp() kv.Stamp {
	at := time.Unix(0, v.info.modified)
	out := kv.Stamp{ETag: fmt.Sprintf("%x-%x-%x", v.info.ino, max(at.UnixMicro(), 0), v.info.size), Modified: at}
	if v.info.changed != 0 {
		out.Changed = time.Unix(0, v.info.changed)
	}
	return out
}

func (v *value) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	if _, _, err := rng.Resolve(v.info.size); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if v.s.closed.Load() {
		return kv.ErrClosed
	}
	f, now, err := v.s.src.open(v.rel)
	if err != nil {
		if v.s.readError("view", v.rel, err) == kv.ErrNotFound {
			return v.changed()
		}
		return v.s.readError("view", v.rel, err)
	}
	defer f.Close()
	if !now.same(v.info) {
		return v.changed()
	}
	var fromFn error
	err = kv.FromReaderAt(f, now.size, kv.ID{}).View(ctx, rng, func(b []byte) error {
		fromFn = fn(b)
		return fromFn
	})
	switch {
	case err == nil || fromFn != nil || ctx.Err() != nil:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return v.changed() // truncated since it was opened
	}
	return v.s.fail("view", v.rel, err)
}

var _ kv.Streamer = (*value)(nil)

// Stream implements [kv.Streamer]. A file that changes meanwhile is kv.ErrChanged.
func (v *value) Stream(ctx context.Context, fn func([]byte) error) error {
	return kv.Pieces(ctx, v, 0, v.info.size, fn)
}

func (v *value) changed() error {
	return fmt.Errorf("dirkv: view %s: %w", filepath.Join(v.s.dir, v.rel), kv.ErrChanged)
}

// readFull fills b from off on. A file that ends early was truncated since it
// was opened.
func readFull(f io.ReaderAt, b []byte, off int64) error {
	if len(b) == 0 {
		return nil
	}
	n, err := f.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == io.EOF {
		return fmt.Errorf("%w while it was read", kv.ErrChanged)
	}
	return err
}
