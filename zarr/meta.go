package zarr

import (
	"encoding/json"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/zarr/dtype"
)

// Version is the format that a node's metadata is stored in.
type Version uint8

// The formats. Draft3 is the early v3 protocol draft with keys below meta/ and
// data/; it is not V3.
const (
	V1 Version = 1 + iota
	V2
	V3
	Draft3
)

// Meta is the metadata of an array or a group: one model for every format
// version. Parsing and printing it does no I/O. A Meta is not changed after
// parsing; whoever changes one changes a Clone.
type Meta struct {
	Version Version
	// Array says what kind of node this is; the fields from Shape to
	// DimensionNames are set for arrays only.
	Array bool
	// Attributes holds the user attributes in stored order, each value
	// verbatim.
	Attributes Attributes

	// Shape is the length of each dimension in elements.
	Shape []int64
	Type  dtype.Type
	Grid  Grid
	Keys  ChunkKeys
	// Fill is one element in memory layout (for variable-length types, its
	// bytes). NullFill says that v2 metadata has null there: the value of a
	// missing chunk is undefined and read as zeros.
	Fill     []byte
	NullFill bool
	// Codecs is the parsed chain in encoding order. The order, filters and
	// compressor of v1 and v2 are one chain too.
	Codecs codecs.Chain
	// DimensionNames has an entry per dimension or is nil; an entry that is
	// null is nil. For v2 they come from xarray's _ARRAY_DIMENSIONS attribute.
	DimensionNames []*string

	// Consolidated holds the nodes below this group by path relative to it
	// where the metadata document carries them (v3 inline), or nil.
	Consolidated map[string]*Meta

	// extra keeps members that the model has no place for (must_understand:
	// false), so that printing loses nothing.
	extra map[string]json.RawMessage
}

// Grid says how an array is cut into chunks. Implementations: regular and
// rectilinear.
type Grid interface {
	// Rank is the number of dimensions.
	Rank() int
	// ChunkShape returns the shape of the chunk at the given coordinates as it
	// is encoded (edge chunks of a regular grid are whole). dst is appended to.
	ChunkShape(dst []int, coords []int64) []int
	// Range returns the first chunk and one past the last that touch elements
	// lo to hi (exclusive, hi > lo) along dimension dim.
	Range(dim int, lo, hi int64) (first, end int64)
	// Start returns the first element along dim of the chunk with index i.
	Start(dim int, i int64) int64
	// Count returns the number of chunks along dim for an array that is n
	// elements long there.
	Count(dim int, n int64) int64
	// Regular returns the chunk shape if all chunks have the same, else nil.
	Regular() []int
}
