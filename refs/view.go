package refs

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/zarrdb/zarrdb/kv"
)

// Opener opens an allowed file: path below root, both as in [Place]. A missing
// file is kv.ErrNotFound. It must be safe for concurrent use.
//
// It should not follow symbolic links out of root: the rules cannot see them. A
// view of root, as dirkv is one of a folder, does so by itself.
type Opener func(ctx context.Context, root, path string) (kv.Value, error)

// Options of a view. nil and the zero value work: then the set can be listed,
// and inline values can be read.
type Options struct {
	// Rules say which URLs are followed. Default: none.
	Rules Rules

	// Open opens allowed files. Default: every URL is ErrForbidden.
	Open Opener

	// Read bounds the reading of the set.
	Read ReadOptions

	// MaxTable bounds the memory of a JSON set, in bytes. Default 2 GiB.
	MaxTable int64

	// CacheBytes bounds the partitions of a parquet set in memory. The last one
	// used stays even if it is larger. Default 64 MiB.
	CacheBytes int64
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	out.Read = out.Read.withDefaults()
	if out.MaxTable <= 0 {
		out.MaxTable = 2 << 30
	}
	if out.CacheBytes <= 0 {
		out.CacheBytes = 64 << 20
	}
	return out
}

// View is a reference set as a store that can be read and listed. Keys are
// found as fsspec finds them. Safe for concurrent use.
//
// A value whose file is missing or too short is [ErrUnreachable], one whose URL
// may not be followed [ErrForbidden]; neither is kv.ErrNotFound, so that no
// layer above mistakes it for a chunk that was never written.
type View struct {
	set  Set
	urls *resolver
	open Opener

	mu    sync.Mutex
	files map[string]*located // by URL as in the set
}

var (
	_ kv.ReadLister = (*View)(nil)
	_ kv.DirLister  = (*View)(nil)
	_ kv.Locator    = (*View)(nil)
	_ kv.Validator  = (*section)(nil)
)

// located is a file that was found.
type located struct {
	kv.Value
	mapped bool // it lies elsewhere than its URL says
}

// Set is a reference set: JSON, parquet, or a foreign format that is read as one.
// It is safe for concurrent use.
type Set interface {
	// Lookup returns the reference of a key as it stands in the set, or
	// kv.ErrNotFound.
	Lookup(ctx context.Context, key string) (Reference, error)

	// List yields the keys in byte order, as [kv.Lister] says. Keys of [Reference]s
	// that are Optional may be among them only if their file exists.
	List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error]

	// Entries yields the whole set, each key once and in any order. The caller
	// owns the slices of inline values.
	Entries(ctx context.Context) iter.Seq2[Entry, error]
}

// Open opens the set name in dir: a JSON file, or the prefix of a parquet set
// (empty, or with or without a slash at its end). Errors: [ErrInvalid] if it is
// neither, kv.ErrNotFound if it does not exist.
func Open(ctx context.Context, dir kv.Reader, name string, o *Options) (*View, error) {
	if name != "" && name[len(name)-1] != '/' {
		v, err := kv.Locate(ctx, dir, name)
		if err == nil {
			return OpenJSON(ctx, v, o)
		}
		if !errors.Is(err, kv.ErrNotFound) {
			return nil, err
		}
	}
	return OpenParquet(ctx, kv.Sub(dir, name), o)
}

// OpenJSON reads a JSON set into memory (about 32 bytes for each reference, and
// its key).
func OpenJSON(ctx context.Context, v kv.Value, o *Options) (*View, error) {
	opts := o.withDefaults()
	return newView(opts, func() (Set, error) {
		t, err := buildTable(ReadJSON(ctx, v, &opts.Read), opts.MaxTable)
		if err != nil {
			return nil, err
		}
		return t, nil
	})
}

// OpenParquet opens the parquet set in dir. It reads only the metadata;
// partitions are read on demand and kept up to Options.CacheBytes. dir must be
// readable as long as the view is used.
func OpenParquet(ctx context.Context, dir kv.Reader, o *Options) (*View, error) {
	opts := o.withDefaults()
	return newView(opts, func() (Set, error) {
		s, err := openPartitions(ctx, dir, opts)
		if err != nil {
			return nil, err
		}
		return s, nil
	})
}

// NewView returns a view of a set that is open.
func NewView(set Set, o *Options) (*View, error) {
	return newView(o.withDefaults(), func() (Set, error) { return set, nil })
}

func newView(opts Options, open func() (Set, error)) (*View, error) {
	urls, err := newResolver(opts.Rules)
	if err != nil {
		return nil, err
	}
	set, err := open()
	if err != nil {
		return nil, err
	}
	return &View{set: set, urls: urls, open: opts.Open, files: map[string]*located{}}, nil
}

// Lookup returns the reference of a key as it stands in the set, or
// kv.ErrNotFound.
func (v *View) Lookup(ctx context.Context, key string) (Reference, error) {
	return v.set.Lookup(ctx, key)
}

// Entries yields the whole set, each key once: a JSON set in the order of keys,
// a parquet set as [ReadParquet] does.
func (v *View) Entries(ctx context.Context) iter.Seq2[Entry, error] { return v.set.Entries(ctx) }

func (v *View) Get(ctx context.Context, key string, rng kv.Range) ([]byte, error) {
	val, err := v.Locate(ctx, key)
	if err != nil {
		return nil, err
	}
	b, err := kv.ReadValue(ctx, val, rng)
	if errors.Is(err, kv.ErrChanged) {
		// The file was rewritten since another key of it was located.
		if val, err = v.Locate(ctx, key); err == nil {
			b, err = kv.ReadValue(ctx, val, rng)
		}
	}
	return b, err
}

// Locate implements [kv.Locator]. If the file has an identity, the value has
// one, made of the file's identity and the range.
func (v *View) Locate(ctx context.Context, key string) (kv.Value, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ref, err := v.set.Lookup(ctx, key)
	if err != nil {
		return nil, err
	}
	if ref.Inline() {
		return kv.Bytes(ref.Data), nil
	}
	file, err := v.file(ctx, ref.URL)
	if ref.Optional && errors.As(err, new(*MissingError)) {
		return nil, kv.ErrNotFound
	}
	if err != nil {
		return nil, keyError(key, err)
	}
	if !file.mapped {
		if err := kv.StampOf(file.Value).Meets(ref.Condition); err != nil {
			v.forget(ref.URL, file) // another version may come
			return nil, keyError(key, fmt.Errorf("%s: %w", quoteURL(ref.URL), err))
		}
	}
	size := file.Size()
	if ref.Whole() {
		ref.Offset, ref.Length = 0, size
	}
	if ref.Offset > size || ref.Length > size-ref.Offset {
		return nil, keyError(key, fmt.Errorf("%w: bytes from %d on, %d of them, of %s, which has %d",
			ErrUnreachable, ref.Offset, ref.Length, quoteURL(ref.URL), size))
	}
	return &section{view: v, file: file, key: key, url: ref.URL, off: ref.Offset, n: ref.Length}, nil
}

// maxFiles bounds the files that stay located.
const maxFiles = 4096

// file returns the located file of a URL.
func (v *View) file(ctx context.Context, url string) (*located, error) {
	v.mu.Lock()
	file, ok := v.files[url]
	v.mu.Unlock()
	if ok {
		return file, nil
	}
	at, err := v.urls.resolve(url)
	if err != nil {
		return nil, err
	}
	if v.open == nil {
		return nil, forbidden(url, "no URLs are followed")
	}
	value, err := v.open(ctx, at.Root, at.Path)
	if err != nil {
		if errors.Is(err, kv.ErrNotFound) { // hidden: the key is not missing
			return nil, &MissingError{at}
		}
		return nil, fmt.Errorf("%s: %w", quoteURL(at.URL()), err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.files) >= maxFiles {
		for other := range v.files { // any one
			delete(v.files, other)
			break
		}
	}
	file = &located{value, at.Mapped}
	v.files[url] = file
	return file, nil
}

// forget drops a located file. The next read locates the file again.
func (v *View) forget(url string, file *located) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.files[url] == file {
		delete(v.files, url)
	}
}

func (v *View) List(ctx context.Context, opts kv.ListOptions) iter.Seq2[string, error] {
	return v.set.List(ctx, opts)
}

// ListDir implements [kv.DirLister] where the set does.
func (v *View) ListDir(ctx context.Context, prefix string) iter.Seq2[kv.DirEntry, error] {
	if d, ok := v.set.(kv.DirLister); ok {
		return d.ListDir(ctx, prefix)
	}
	return func(yield func(kv.DirEntry, error) bool) { yield(kv.DirEntry{}, errors.ErrUnsupported) }
}

// section is a part of a file as a value.
type section struct {
	view     *View
	file     *located
	key, url string
	off, n   int64
}

func (s *section) Size() int64 { return s.n }

func (s *section) ID() kv.ID {
	id := s.file.ID()
	if id == (kv.ID{}) || s.off == 0 && s.n == s.file.Size() {
		return id
	}
	b := append(make([]byte, 0, 64), "refs: part of a file"...)
	b = append(b, id[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.off))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.n))
	sum := sha256.Sum256(b)
	return kv.ID(sum[:len(id)])
}

// Validator implements [kv.Validator]: the validator of the file.
func (s *section) Validator() string {
	if v, ok := s.file.Value.(kv.Validator); ok {
		return v.Validator()
	}
	return ""
}

func (s *section) View(ctx context.Context, rng kv.Range, fn func([]byte) error) error {
	off, n, err := rng.Resolve(s.n)
	if err != nil {
		return err
	}
	called := false
	err = s.file.View(ctx, kv.Span(s.off+off, n), func(b []byte) error {
		called = true
		return fn(b)
	})
	return s.failed(err, called)
}

var _ kv.Spreader = (*section)(nil)

// Spread implements [kv.Spreader].
func (s *section) Spread() kv.Spread { return kv.SpreadOf(s.file.Value) }

// failed converts an error of reading the file, but not one of the callback.
func (s *section) failed(err error, callers bool) error {
	if err == nil || callers {
		return err
	}
	if errors.Is(err, kv.ErrChanged) {
		s.view.forget(s.url, s.file)
	}
	if errors.Is(err, kv.ErrNotFound) {
		err = fmt.Errorf("%w: %s is gone", ErrUnreachable, quoteURL(s.url))
	}
	return keyError(s.key, err)
}
