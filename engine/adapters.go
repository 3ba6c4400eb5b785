package engine

import (
	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/kv"
)

// How URLs are followed; package [github.com/zarrdb/zarrdb/engine/source] describes
// it.
type (
	// Adapters maps URL schemes to what opens them.
	Adapters = source.Adapters
	// Adapter is one step of a pipeline.
	Adapter = source.Adapter
	// Root opens the first part of a pipeline.
	Root = source.Root
	// Env is what opening one URL shares.
	Env = source.Env
	// Place is how far a URL pipeline has been followed.
	Place = source.Place
	// Kind is what kind of resource a URL names.
	Kind = source.Kind
	// Evidence is the data of a place for format detection.
	Evidence = source.Evidence
	// Follow says where references may lead.
	Follow = source.Follow
	// Mapping replaces the prefix From of the URLs of references by To.
	Mapping = source.Mapping
	// RemoteOptions say how the roots of servers ask them.
	RemoteOptions = source.RemoteOptions
)

// The kinds. Either is a path of which only the store can tell.
const (
	Either    = source.Either
	File      = source.File
	Directory = source.Directory
	Dataset   = source.Dataset
)

var (
	// ErrFormat means that a resource is not, or not unambiguously, of a format
	// that can be read.
	ErrFormat = source.ErrFormat
	// ErrForbidden means that a reference leads where [Follow] does not allow it to.
	ErrForbidden = source.ErrForbidden
	// ErrUnreachable means that the bytes which a reference names do not exist.
	ErrUnreachable = source.ErrUnreachable
)

// IsForbidden reports whether an error is about what a reference or a symbolic link
// leads to and [Follow] does not allow.
func IsForbidden(err error) bool { return source.IsForbidden(err) }

// NewAdapters returns a registry without schemes.
func NewAdapters() *Adapters { return source.NewAdapters() }

// DefaultAdapters returns a new registry with the built-in schemes.
func DefaultAdapters() *Adapters { return source.DefaultAdapters() }

// RemoteRoots returns the roots of servers by scheme, for [Adapters.ReplaceRoot].
func RemoteRoots(o *RemoteOptions) map[string]Root { return source.RemoteRoots(o) }

// DefaultCodecs returns a new registry of all codecs that stores, reference sets and
// foreign formats are read with.
func DefaultCodecs() *codecs.Registry { return source.DefaultCodecs() }

// Memory returns the store that memory:NAME/ names. It is made when it is
// first asked for.
func Memory(name string) *kv.Mem { return source.Memory(name) }

// PlainURL spells the root of a URL pipeline as reference sets do, without
// escapes.
func PlainURL(url string) (string, error) { return source.PlainURL(url) }
