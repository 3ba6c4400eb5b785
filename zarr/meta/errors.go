package meta

import "errors"

var (
	// ErrMetadata means that a metadata document breaks the specification or
	// asks for something that is not supported. The error is a [FieldError].
	ErrMetadata = errors.New("zarr: bad metadata")

	// ErrPath means that a path or a node name is not allowed.
	ErrPath = errors.New("zarr: bad path")

	// ErrNoForm means that metadata cannot be written in a format version.
	ErrNoForm = errors.New("zarr: has no form in this format version")
)

// FieldError says which member of which metadata document is wrong. It is an [ErrMetadata];
// errors.Is also finds the kind of Err, such as [codecs.ErrUnknown].
type FieldError struct {
	// Doc is the last component of the document's key, such as "zarr.json".
	Doc string
	// Field is the path of the member in the document, as in
	// "chunk_grid.configuration.chunk_shape[1]"; "" is the whole document, or
	// Err names the member itself.
	Field string
	Err   error

	// Array, if not nil, is the metadata of an array that cannot be opened, as far as
	// it was understood.
	Array *Meta
}

// Error returns "document: field: cause".
func (e *FieldError) Error() string {
	s := e.Doc + ": "
	if e.Field != "" {
		s += e.Field + ": "
	}
	return s + e.Err.Error()
}

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }

// Is makes every FieldError an ErrMetadata.
func (e *FieldError) Is(target error) bool { return target == ErrMetadata }
