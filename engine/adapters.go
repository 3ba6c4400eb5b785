package engine

import (
	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/engine/source"
	"github.com/zarrdb/zarrdb/kv"
)

// How URLs are followed; package [github.com/zarrdb/zarrdb/engine/source] describes
// it, and has the types for adapters of a program's own.
type (
	// Adapters maps URL schemes to functions that open them.
	Adapters = source.Adapters
	// Follow says where references may lead.
	Follow = source.Follow
	// Mapping replaces the prefix From of the URLs of references by To.
	Mapping = source.Mapping
	// MissingError is ErrUnreachable because a file is missing; it has the place.
	MissingError = source.MissingError
)

var (
	// ErrFormat means that a resource is not, or not unambiguously, of a format
	// that can be read.
	ErrFormat = source.ErrFormat
	// ErrForbidden means that a reference leads where [Follow] does not allow it to.
	ErrForbidden = source.ErrForbidden
	// ErrUnreachable means that the bytes which a reference names do not exist.
	ErrUnreachable = source.ErrUnreachable
	// ErrUnknownCodec means that an array has a codec that is not known here. Its keys can
	// be copied.
	ErrUnknownCodec = codecs.ErrUnknown
)

// DefaultAdapters returns a new registry with the built-in schemes.
func DefaultAdapters() *Adapters { return source.DefaultAdapters() }

// Memory returns the store that memory:NAME/ names. It is made when it is
// first asked for.
func Memory(name string) *kv.Mem { return source.Memory(name) }
