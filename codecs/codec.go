package codecs

import (
	"context"
	"encoding/json"
)

// Kind is the input and output of a codec when encoding (Zarr v3 core, section
// Codecs).
type Kind uint8

// The kinds, in the order in which they may follow each other in a chain.
const (
	ArrayToArray Kind = 1 + iota
	ArrayToBytes
	BytesToBytes
)

// String returns the name in the specification.
func (k Kind) String() string {
	switch k {
	case ArrayToArray:
		return "array -> array"
	case ArrayToBytes:
		return "array -> bytes"
	case BytesToBytes:
		return "bytes -> bytes"
	}
	return "invalid codec kind"
}

// Codec is a parsed codec: it has its configuration and is not bound to data.
// Safe for concurrent use.
type Codec interface {
	// Config prints the configuration for metadata: a JSON object, or nil
	// without one. For a v2 codec the "id" is left out.
	Config() json.RawMessage

	// Bind fixes the input of encoding and returns the running stage and its
	// output. Errors are ErrConfig; [BadField] makes one about a member of the
	// configuration, to which the chain adds the position of the codec.
	//
	// A nil Stage leaves the bytes unchanged.
	//
	// In a v2 chain an array-to-array codec may be bound to bytes, after a
	// filter that makes bytes; it returns an error if its configuration does not
	// name the type of elements.
	Bind(in Rep) (Stage, Rep, error)
}

// NewCodec returns a codec of a configuration as [Codec.Config] prints it, and of a function
// that binds it.
func NewCodec(config json.RawMessage, bind func(in Rep) (Stage, Rep, error)) Codec {
	return codec{config, bind}
}

type codec struct {
	config json.RawMessage
	bind   func(in Rep) (Stage, Rep, error)
}

func (c codec) Config() json.RawMessage         { return c.config }
func (c codec) Bind(in Rep) (Stage, Rep, error) { return c.bind(in) }

// Stage is a bound codec. Safe for concurrent use. Both methods append to dst
// and return it; src is only read, not kept, and does not overlap dst. Decode
// fails with ErrCorrupt rather than append more than the bound Rep allows.
//
// The caller of Decode has checked the length of src if the output Rep has a
// size, and checks the appended length if the input Rep has one. The caller of
// Encode passes as many bytes as the input Rep has.
type Stage interface {
	Encode(dst, src []byte) ([]byte, error)
	Decode(dst, src []byte) ([]byte, error)
}

// InPlaceStage is an optional interface of a stage whose input and output
// have the same length and that can work without a second buffer.
type InPlaceStage interface {
	Stage
	EncodeInPlace(b []byte) error
	DecodeInPlace(b []byte) error
}

// ViewStage is an optional interface of a stage that decodes to a part of its
// input, such as a checksum.
type ViewStage interface {
	Stage
	// DecodeView returns a slice of src.
	DecodeView(src []byte) ([]byte, error)
}

// RangeStage is an optional interface of a bytes-to-bytes stage that can
// decode a part of its output from a part of its input.
type RangeStage interface {
	Stage
	// Open returns the decoded bytes as a Source that reads from src no more
	// than it needs. It is used by one goroutine and dropped without notice.
	Open(ctx context.Context, src Source) (Source, error)
}

// partialStage is an optional interface of an array-to-bytes stage that can
// decode a part of a chunk from a part of its bytes.
type partialStage interface {
	Stage
	// DecodeBox writes the elements of box into dst.
	DecodeBox(ctx context.Context, src Source, box Box, dst Dst) error
}

// Source is the encoded value that a partial decode reads ranges of.
// kv.Value has this shape on top of a range constructor.
type Source interface {
	// Size is the length in bytes.
	Size() int64
	// ReadRange calls fn once with the n bytes from off on, which lie inside
	// the value; they are invalid when fn returns. The error of fn is returned
	// as it is.
	ReadRange(ctx context.Context, off, n int64, fn func([]byte) error) error
}

// Extent is a range of a Source: N bytes from Off on.
type Extent struct{ Off, N int64 }

// RangesSource is an optional interface of a Source that reads several ranges
// faster at a time than one after the other, such as a value on a server.
type RangesSource interface {
	Source
	// ReadsRanges reports whether this source does so; a wrapper asks the source
	// it wraps.
	ReadsRanges() bool
	// ReadRanges calls fn once for each range, with its number, as ReadRange
	// does for one: in any order, and from several goroutines at a time. All
	// calls have returned when it returns. The first error ends it.
	ReadRanges(ctx context.Context, ranges []Extent, fn func(i int, b []byte) error) error
}

// Gapper is an optional interface of a Source for which a read costs more, or
// less, than usual.
type Gapper interface {
	// Gap is the number of unwanted bytes between two ranges up to which one
	// ReadRange of both costs less than two.
	Gap() int64
}

// gapOf returns the Gap of src. The default is 16 KiB, which take about as long to read as a
// system call.
func gapOf(src Source) int64 {
	if g, ok := src.(Gapper); ok {
		return g.Gap()
	}
	return 16 << 10
}

// Bytes is a Source in memory.
type Bytes []byte

// Size returns the length.
func (b Bytes) Size() int64 { return int64(len(b)) }

// ReadRange passes the bytes themselves to fn.
func (b Bytes) ReadRange(_ context.Context, off, n int64, fn func([]byte) error) error {
	return fn(b[off : off+n])
}

// inMemory returns the bytes of a Source that has them in memory.
func inMemory(src Source) ([]byte, bool) {
	switch b := src.(type) {
	case Bytes:
		return b, true
	case *Bytes:
		return *b, true
	}
	return nil, false
}

// Box is a hyper-rectangle inside a chunk: Start and Count per dimension, in
// elements.
type Box struct {
	Start, Count []int
}

// Dst is where the elements of a Box are put: element (0, …, 0) at
// Data[Offset], and one step along dimension d moves Strides[d] bytes, which
// may be negative. Only for fixed-size types; the element itself is
// contiguous.
type Dst struct {
	Data    []byte
	Offset  int
	Strides []int
}

// Src is where the elements of a Box are taken from, laid out like a Dst.
type Src = Dst
