package kv

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/zarrdb/zarrdb/internal/fault"
)

var (
	// ErrNotFound is returned, unwrapped and without allocation, by Get and
	// Locate when a key has no value. Layers above turn it into a fill value
	// or into an error with a path.
	ErrNotFound = fault.New("kv: not found", fault.ErrNotFound)

	// ErrRange means that a range does not lie inside a value.
	ErrRange = errors.New("kv: range outside value")

	// ErrTooLarge means that a value is longer than the reader allows, or that
	// it would have to be in memory at once and is longer than MaxHeld.
	ErrTooLarge = errors.New("kv: value too large")

	// ErrCorrupt marks stored bytes that fail their own checks. It survives
	// every wrapping up to the command line.
	ErrCorrupt = fault.New("kv: corrupt", fault.ErrCorrupt)

	// ErrChanged means that the key of a value that was located, or whose tag is
	// wanted, was set or deleted since. Locate or read it again.
	ErrChanged = errors.New("kv: value changed since it was located")

	// ErrInvalidKey means that a view cannot hold a key of this form.
	ErrInvalidKey = errors.New("kv: invalid key")

	// ErrReadOnly is returned by writes to a view that was opened for reading.
	ErrReadOnly = fault.New("kv: read-only", fault.ErrReadOnly)

	// ErrClosed is returned by every operation on a closed view.
	ErrClosed = fault.New("kv: closed", fault.ErrClosed)
)

// Reader is a readable view.
type Reader interface {
	// Get returns the bytes of key that rng selects. The caller owns the
	// slice. A key without a value is ErrNotFound, a range that does not lie
	// inside the value ErrRange. Safe for concurrent use.
	Get(ctx context.Context, key string, rng Range) ([]byte, error)
}

// Lister is a listable view.
type Lister interface {
	// List yields every key that begins with opts.Prefix, in byte order and
	// each once. The sequence ends after the first error. Keys set or deleted
	// while it runs may or may not appear.
	List(ctx context.Context, opts ListOptions) iter.Seq2[string, error]
}

// ListOptions narrow a listing. The zero value lists everything.
type ListOptions struct {
	// Prefix is a string prefix, not a path: "a" matches "a/b" and "ab".
	Prefix string
	// After leaves out keys up to and including it.
	After string
}

// Has reports whether the listing includes key.
func (o ListOptions) Has(key string) bool {
	return strings.HasPrefix(key, o.Prefix) && (o.After == "" || key > o.After)
}

// HasBelow reports whether the listing may include keys that begin with prefix.
func (o ListOptions) HasBelow(prefix string) bool {
	if !strings.HasPrefix(prefix, o.Prefix) && !strings.HasPrefix(o.Prefix, prefix) {
		return false
	}
	return o.After < prefix || strings.HasPrefix(o.After, prefix)
}

// Writer is a writeable view.
type Writer interface {
	// Set stores value under key and replaces any value there. The caller owns
	// the slice again when Set returns. Safe for concurrent use; of concurrent
	// sets to one key, one wins whole.
	Set(ctx context.Context, key string, value []byte) error

	// Delete removes key. A key without a value is no error.
	Delete(ctx context.Context, key string) error
}

// Replacer is an optional interface of a Writer to whose keys other processes write too.
type Replacer interface {
	// Replace sets key, or deletes it if value is nil, if its value still has the identity was;
	// the zero ID is no value. Otherwise the error is [ErrChanged], and nothing has changed.
	Replace(ctx context.Context, key string, value []byte, was ID) error
}

// ReadLister is a view that can be read and listed.
type ReadLister interface {
	Reader
	Lister
}

// Store is a view that can be read, listed and written.
type Store interface {
	Reader
	Lister
	Writer
}

// ID identifies immutable bytes: two values with the same ID have the same bytes
// for ever, whichever view they are read from. The zero ID means unknown.
type ID [20]byte

// Value is a located value, which may be read in ranges any number of times. It
// is valid as long as its view. If its key is set or deleted and the view does
// not keep the old bytes, reads fail with ErrChanged; they never return bytes
// of another version than the located one. Safe for concurrent use.
type Value interface {
	// Size is the length in bytes.
	Size() int64

	// ID identifies the bytes, or is zero where the view cannot promise that
	// they never change.
	ID() ID

	// View calls fn once with the bytes that rng selects. They belong to the
	// view, may be mapped from a file, must not be changed, and are invalid
	// when fn returns. The error of fn is returned as it is.
	View(ctx context.Context, rng Range, fn func([]byte) error) error
}

// Validator is an optional interface of a Value whose bytes another program may
// change: a file, or an object of a server.
type Validator interface {
	// Validator returns a short text that another version of the bytes would not
	// have, for example "etag:…", or the time of the last change and the size;
	// "" if nothing is known. It describes the located version; a read of
	// another version is [ErrChanged].
	Validator() string
}

// Locator is an optional interface of a Reader; use [Locate].
type Locator interface {
	// Locate finds key without reading its bytes. Errors are those of Get.
	Locate(ctx context.Context, key string) (Value, error)
}

// DirEntry is one child that ListDir yields: a key, or a prefix below which
// there are keys. A name may be both and then is yielded twice, key first.
type DirEntry struct {
	// Name is the last component, without slash.
	Name string
	// Prefix says that keys begin with the listed prefix + Name + "/".
	Prefix bool
}

// DirLister is an optional interface of a Lister; use [ListDir].
type DirLister interface {
	// ListDir yields the direct children of prefix, which is empty or ends in
	// a slash, ordered by name.
	ListDir(ctx context.Context, prefix string) iter.Seq2[DirEntry, error]
}

// PrefixDeleter is an optional interface of a Writer; use [DeletePrefix].
type PrefixDeleter interface {
	// DeletePrefix removes every key that begins with prefix.
	DeletePrefix(ctx context.Context, prefix string) error
}
