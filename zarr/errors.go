package zarr

import (
	"errors"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
)

var (
	// ErrNotFound means that there is no array or group at a path.
	ErrNotFound = fault.New("zarr: not found", fault.ErrNotFound)

	// ErrMetadata means that a metadata document breaks the specification or
	// asks for something that is not supported. The error is a [FieldError].
	ErrMetadata = errors.New("zarr: bad metadata")

	// ErrCorrupt means that stored bytes are not what they should be: it
	// matches [codecs.ErrCorrupt] and [kv.ErrCorrupt] inside an [Error].
	ErrCorrupt = fault.New("zarr: corrupt data", fault.ErrCorrupt)

	// ErrPath means that a path or a node name is not allowed.
	ErrPath = errors.New("zarr: bad path")

	// ErrNoForm means that metadata cannot be written in a format version.
	ErrNoForm = errors.New("zarr: has no form in this format version")
)

// Error is what operations on nodes return: what was done, where, and why it
// failed.
type Error struct {
	// Op is the operation: "open", "read", "create" …
	Op string
	// Path is the node without slashes around it; "" is the root.
	Path string
	Err  error
}

// Error returns "op path: cause"; the root is written as a slash.
func (e *Error) Error() string {
	path := e.Path
	if path == "" {
		path = "/"
	}
	return e.Op + " " + path + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Is makes the sentinels of the layers below match those of this package.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrCorrupt:
		return errors.Is(e.Err, codecs.ErrCorrupt) || errors.Is(e.Err, kv.ErrCorrupt)
	case ErrNotFound:
		return errors.Is(e.Err, kv.ErrNotFound)
	}
	return false
}

// FieldError says which member of which metadata document is wrong. It is an
// [ErrMetadata]; what Err is shows too, such as [codecs.ErrUnknown].
type FieldError struct {
	// Doc is the last component of the document's key, such as "zarr.json".
	Doc string
	// Field is the path of the member in the document, as in
	// "chunk_grid.configuration.chunk_shape[1]"; "" is the whole document, or
	// Err names the member itself.
	Field string
	Err   error

	unknown *Meta // see [UnknownCodec]
}

// Error returns "document: field: cause".
func (e *FieldError) Error() string {
	s := e.Doc + ": "
	if e.Field != "" {
		s += e.Field + ": "
	}
	return s + e.Err.Error()
}

// UnknownCodec returns path and metadata of the array that err, from [Open] or
// [Walk], is about if it cannot be opened because a codec of it is not known, and
// only for that as far as can be seen: the documents as they are, shape, chunk grid
// and chunk keys, and the data type unless that codec tells it; no codecs. Its
// chunks can be copied.
func UnknownCodec(err error) (path string, m *Meta, ok bool) {
	var at *Error
	var e *FieldError
	if !errors.As(err, &at) || !errors.As(at.Err, &e) || e.unknown == nil {
		return "", nil, false
	}
	return at.Path, e.unknown, true
}

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }

// Is makes every FieldError an ErrMetadata.
func (e *FieldError) Is(target error) bool { return target == ErrMetadata }
