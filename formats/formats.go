package formats

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/refs"
)

var (
	// ErrFormat means that something is not in the format, or not as its
	// specification says: it is damaged, or was never in it.
	ErrFormat = errors.New("formats: not in the format")

	// ErrUnsupported means that something is in the format, and uses a part of it
	// that is not read. The message names the part.
	ErrUnsupported = errors.New("formats: not supported")

	// ErrNoVersion means that a store with versions lacks the requested version.
	ErrNoVersion = fault.New("formats: no such version", fault.ErrNotFound)
)

// Invalid returns an error that is ErrFormat and kv.ErrCorrupt.
func Invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w: %s", ErrFormat, kv.ErrCorrupt, fmt.Sprintf(format, args...))
}

// Other returns an error that is ErrFormat for a file that begins as files of another
// format may: it is not damaged.
func Other(format string) error {
	return fmt.Errorf("%w: the file does not begin as %s files do", ErrFormat, format)
}

// Unsupported returns an error that is ErrUnsupported.
func Unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

// Format is one foreign format, a line in the table of the engine.
type Format struct {
	// Scheme is the scheme of its URL adapter, in lower case (ZEP 8).
	Scheme string

	// Directory says that it is made of a directory of files; else of one file.
	Directory bool

	// Store says that the set is a store of keys with versions ([Versioned]), in which
	// any Zarr hierarchy may lie; else the set is the hierarchy.
	Store bool

	// Open reads as much as the documents need. The set is used by many
	// goroutines at a time, until base is closed. Errors are ErrFormat,
	// ErrUnsupported, ErrNoVersion, or errors of reading.
	Open func(ctx context.Context, base Base, o Options) (refs.Set, error)

	// Detect reports whether something is in the format; nil if it is never
	// detected. It must be false for stores that another format detects.
	Detect func(Evidence) bool

	// Files are the names of the files of a directory that Detect looks into.
	Files []string

	// Head is how many bytes of the beginning of its file Open reads first. A server is
	// asked for them in the request that finds the file. 0 for a directory.
	Head int64

	// Gap is how many bytes between two chunks in one file of a server are read to save
	// a request, where that is more than the server's own: for formats that keep chunks
	// that are read together near one another, but not side by side.
	Gap int64

	// Codecs are the codecs in its documents that Zarr does not have.
	Codecs []codecs.Entry

	// Plan prepares to write the node at path in src, and all below it, in the format;
	// nil if the format is only read, or written by Create. src must be a kv.Lister unless path
	// is an array. It is read when the plan is written, too. A node that the format
	// cannot express is ErrUnsupported.
	Plan func(ctx context.Context, src kv.Reader, path string, o WriteOptions) (Plan, error)

	// Create begins a new store of a format with versions, branches and tags, which holds
	// nodes of Zarr v3 alone and can refer to ranges of absolute URLs; nil if the format is
	// only read, or written by Plan. Files of an older store are overwritten where names
	// are equal.
	Create func(ctx context.Context, files Files) (Writer, error)
}

// Written reports whether the format can be written.
func (f *Format) Written() bool { return f.Plan != nil || f.Create != nil }

// Base is where something in a foreign format lies.
type Base struct {
	// Files reads the directory of the format, or the directory around its file.
	// References of the set name files in it by their key, as it is. It may be a
	// kv.Lister and more; a web server is not.
	Files kv.Reader

	// Name is the key of the file in Files, "" if the format is a directory.
	Name string

	// File is that file, nil if the format is a directory.
	File kv.Value
}

// Options of opening. The zero value works.
type Options struct {
	// Version names the version to open, as the URL spells it without "@" and
	// decoded: "v12" or a time for ocdbt, "branch.B", "tag.T" or an id for icechunk. "" is the
	// newest of the default branch. It is "" for formats without versions.
	Version string

	// Skipped, if not nil, is called with keys that are left out, because no store can
	// have keys like them. Safe for concurrent use.
	Skipped func(key string)

	// Warn, if not nil, is called with a text for the user that is not an error: the left-out part,
	// and why. The text does not name the file. Safe for concurrent use.
	Warn func(text string)
}

// Warned calls Warn, if it is set.
func (o *Options) Warned(format string, args ...any) {
	if o.Warn != nil {
		o.Warn(fmt.Sprintf(format, args...))
	}
}

// Evidence is the evidence for detection: the beginning of a file, or files of
// a directory.
type Evidence struct {
	// Head is the beginning of a file, at most 64 KiB; nil for a directory.
	Head []byte
	// File returns the beginning of one of Format.Files in a directory, nil if it is
	// not there. It is nil for a file.
	File func(name string) []byte
}

// Has reports whether a directory holds one of Format.Files.
func (e Evidence) Has(name string) bool { return e.File != nil && e.File(name) != nil }

// Versioned is an optional interface of the set of a format with versions.
type Versioned interface {
	refs.Set

	// Version is the version that was opened.
	Version() Version

	// History yields the version that was opened and its ancestors, newest first.
	// The sequence ends after the first error.
	History(ctx context.Context) iter.Seq2[Version, error]

	// Names returns the branches and tags, sorted by kind and name; none if the
	// format has none.
	Names(ctx context.Context) ([]Name, error)

	// At opens another version by its ID. It shares data that was read already.
	At(ctx context.Context, id string) (Versioned, error)

	// Changes yields the keys whose values differ from an earlier version, in any
	// order and each once: with its value, or Deleted. "" stands for an empty version.
	// The cost grows with the changes where the format allows it.
	Changes(ctx context.Context, since string) iter.Seq2[Change, error]
}

// Version is one version of a format with versions.
type Version struct {
	// ID is its name, in the form that Options.Version takes.
	ID string
	// Parents are the IDs of the versions before it, none for the first.
	Parents []string
	Time    time.Time
	// Message and Author are "" where the format has none.
	Message, Author string
	// Properties are kept with a version that is written, where the format has them. Not
	// set by reading.
	Properties map[string]string
}

// Name is a branch or a tag.
type Name struct {
	Tag  bool
	Name string
	// ID is the ID of its version.
	ID string
}

// NamesLike returns names for branches and tags in a format that does not allow every name:
// the result of like for prefix and name. like returns allowed names unchanged. Where another branch
// or tag has a name, "_" follows it: where one name stands for both, a branch hides a tag.
func NamesLike(names []Name, prefix string, like func(string) string) map[Name]string {
	out := make(map[Name]string, len(names))
	taken := make(map[string]bool, len(names))
	for _, tags := range []bool{false, true} { // names that need no change keep it, branches first
		for _, n := range names {
			if name := prefix + n.Name; n.Tag == tags && like(name) == name && !taken[name] {
				out[n], taken[name] = name, true
			}
		}
	}
	for _, n := range names {
		if out[n] != "" {
			continue
		}
		name := like(prefix + n.Name)
		for taken[name] {
			name += "_"
		}
		out[n], taken[name] = name, true
	}
	return out
}

// Change is a key whose value another version does not have.
type Change struct {
	refs.Entry
	// Deleted says that the key has no value any more.
	Deleted bool
}
