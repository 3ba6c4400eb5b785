package codecs

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/zarrdb/zarrdb/zarr/dtype"
)

var (
	// ErrCorrupt marks encoded bytes that do not decode to what the metadata
	// says. It survives every wrapping up to the command line.
	ErrCorrupt = errors.New("codecs: corrupt data")

	// ErrUnknown means that no codec of that name is registered.
	ErrUnknown = errors.New("codecs: unknown codec")

	// ErrConfig means that a codec's configuration is not allowed, by itself
	// or for the data type and shape that it is bound to.
	ErrConfig = errors.New("codecs: bad configuration")
)

// Rep describes what flows between two codecs: the elements of one chunk, or
// bytes.
type Rep struct {
	// Array says that the bytes are the elements of an array in the memory
	// layout of dtype: C order of Shape, little-endian.
	Array bool
	// Type, Shape and Fill describe the array. Fill is one element, in memory
	// layout; for variable-length types its bytes without offsets.
	Type  dtype.Type
	Shape []int
	Fill  []byte
	// Size is the number of bytes, -1 if it depends on the data. For arrays of
	// fixed-size types it is always known.
	Size int64
	// Max bounds the number of bytes where Size is -1: a decoder stops with
	// ErrCorrupt before it produces more.
	Max int64
}

// Codec is a parsed codec: it knows its configuration and nothing of the
// data yet. Safe for concurrent use.
type Codec interface {
	// Name is the registered name under which it was parsed.
	Name() string
	// Config prints the configuration as it must be stored, or nil for none.
	Config() json.RawMessage
	// Bind fixes what comes in on the encoding side and returns the running
	// stage and what goes out, or an error that is ErrConfig and names codec
	// and field.
	Bind(in Rep) (Stage, Rep, error)
}

// Stage is a bound codec. Safe for concurrent use. Both methods append to dst
// and return it; src is only read and not kept. Decode fails with ErrCorrupt
// rather than append more than the bound Rep allows.
type Stage interface {
	Encode(dst, src []byte) ([]byte, error)
	Decode(dst, src []byte) ([]byte, error)
}

// Source is the encoded value that a partial decode reads ranges of.
// kv.Value has this shape on top of a range constructor.
type Source interface {
	// Size is the length in bytes.
	Size() int64
	// ReadRange calls fn once with n bytes from off on; they are invalid when
	// fn returns.
	ReadRange(ctx context.Context, off, n int64, fn func([]byte) error) error
}

// Box is a hyper-rectangle inside a chunk: Start and Count per dimension, in
// elements.
type Box struct {
	Start, Count []int
}

// Dst is where the elements of a Box are put: element (0, …, 0) at
// Data[Offset], and one step along dimension d moves Strides[d] bytes. Only
// for fixed-size types; the element itself is contiguous.
type Dst struct {
	Data    []byte
	Offset  int
	Strides []int
}

// PartialStage is an optional interface of an array-to-bytes stage that can
// decode a part of a chunk from a part of its bytes.
type PartialStage interface {
	Stage
	// DecodeBox writes the elements of box into dst.
	DecodeBox(ctx context.Context, src Source, box Box, dst Dst) error
}
