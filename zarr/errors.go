package zarr

import (
	"errors"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/internal/fault"
	"github.com/zarrdb/zarrdb/kv"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

var (
	// ErrNotFound means that there is no array or group at a path.
	ErrNotFound = fault.New("zarr: not found", fault.ErrNotFound)

	// ErrMetadata means that a metadata document breaks the specification or
	// asks for something that is not supported. The error is a [FieldError].
	ErrMetadata = meta.ErrMetadata

	// ErrPath means that a path or a node name is not allowed.
	ErrPath = meta.ErrPath

	// ErrNoForm means that metadata cannot be written in a format version.
	ErrNoForm = meta.ErrNoForm

	// ErrCorrupt means that stored bytes are damaged: it
	// matches [codecs.ErrCorrupt] and [kv.ErrCorrupt] inside an [Error].
	ErrCorrupt = fault.New("zarr: corrupt data", fault.ErrCorrupt)
)

// Error is the error of operations on nodes: the operation, the path, and the
// reason.
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

// Is makes the sentinels of the layers below match the sentinels of this package.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrCorrupt:
		return errors.Is(e.Err, codecs.ErrCorrupt) || errors.Is(e.Err, kv.ErrCorrupt)
	case ErrNotFound:
		return errors.Is(e.Err, kv.ErrNotFound)
	}
	return false
}

// Unreadable returns path and metadata of an array that [Open] or [Walk] could not open, from
// their error err. ok is false for other errors. The cause is the metadata of the array: an
// unknown codec, data type, fill value, chunk_grid or chunk_key_encoding, or a damaged
// document. The keys of the array can be copied. m holds what was understood: the grid may be
// nil, and the documents are missing if they are not JSON. A zarr.json that is not JSON counts
// as the document of an array.
func Unreadable(err error) (path string, m *Meta, ok bool) {
	var at *Error
	var e *FieldError
	if !errors.As(err, &at) || !errors.As(at.Err, &e) || e.Array == nil {
		return "", nil, false
	}
	return at.Path, e.Array, true
}
