package zarr

import (
	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
	"github.com/zarrdb/zarrdb/zarr/meta"
)

// The metadata of nodes, which package meta parses and prints.
type (
	// Meta is the metadata of an array or a group.
	Meta = meta.Meta
	// Attributes are the user attributes of a node, in stored order.
	Attributes = meta.Attributes
	// Version is the format that a node's metadata is stored in.
	Version = meta.Version
	// Grid says how an array is cut into chunks.
	Grid = meta.Grid
	// ChunkKeys spells the coordinates of a chunk as a key below its array.
	ChunkKeys = meta.ChunkKeys
	// FieldError says which member of which metadata document is wrong.
	FieldError = meta.FieldError
)

// The formats. Draft3 is the early v3 protocol draft with keys below meta/ and
// data/; it is not V3.
const (
	V1     = meta.V1
	V2     = meta.V2
	V3     = meta.V3
	Draft3 = meta.Draft3
)

// MaxRank is the largest number of dimensions that an array may have.
const MaxRank = meta.MaxRank

// ParseAttributes parses the text of a JSON object; see [meta.ParseAttributes].
func ParseAttributes(text []byte) (Attributes, error) { return meta.ParseAttributes(text) }

// StrictJSON returns a metadata document with bare NaN, Infinity and -Infinity, which
// Python writes, as strings: encoding/json refuses them. The slice is the caller's again
// afterwards.
func StrictJSON(doc []byte) ([]byte, error) {
	if err := jsontext.Check(doc); err != nil {
		return nil, err
	}
	return jsontext.AppendStrict(nil, doc), nil
}
