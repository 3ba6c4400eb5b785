package precomputed

import (
	"encoding/json"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
)

// document is the name of the Zarr document of a node.
const document = "zarr.json"

// dimensions are the names of the dimensions of every array.
var dimensions = []string{"x", "y", "z", "channel"}

// group returns the document of a volume with several scales.
func (v *volume) group() []byte {
	axes := []any{}
	for _, name := range dimensions[:3] {
		axes = append(axes, codecs.Object("name", name, "type", "space", "unit", "nanometer"))
	}
	axes = append(axes, codecs.Object("name", dimensions[3], "type", "channel"))
	datasets := []any{}
	for _, s := range v.Scales {
		d := []any{"path", s.name}
		var r []float64
		if json.Unmarshal(s.Resolution, &r) == nil && len(r) == 3 {
			moved := make([]float64, 4)
			for i := range 3 {
				moved[i] = float64(s.Offset[i]) * r[i]
			}
			d = append(d, "coordinateTransformations", []any{
				codecs.Object("type", "scale", "scale", append(r, 1)),
				codecs.Object("type", "translation", "translation", moved),
			})
		}
		datasets = append(datasets, codecs.Object(d...))
	}
	attributes := append([]any{"multiscales", []any{codecs.Object("axes", axes, "datasets", datasets)}}, v.attributes...)
	return codecs.Object("zarr_format", 3, "node_type", "group", "attributes", codecs.Object(attributes...))
}

// array returns the document of a scale. suffix is the suffix of compressed files, or "".
func (v *volume) array(s *scale, suffix string) []byte {
	chain, err := s.codecs(v.DataType, suffix)
	if s.refused != nil {
		err = s.refused
	}
	if err != nil {
		return formats.Refusal{Scheme: scheme, Err: err, Shape: s.shape(), Chunks: append(s.chunk[:], s.channels)}.Document()
	}
	attributes := []any{}
	if s.name == "" {
		attributes = append(attributes, v.attributes...)
	}
	if s.Resolution != nil {
		attributes = append(attributes, "resolution", s.Resolution)
	}
	attributes = append(append(attributes, "voxel_offset", s.Offset), s.members...)
	return codecs.Object(
		"zarr_format", 3, "node_type", "array", "shape", s.shape(), "data_type", v.DataType, "chunk_grid", s.grid(),
		"chunk_key_encoding", formats.Named("default", codecs.Object("separator", "/")),
		"fill_value", 0, "codecs", chain, "attributes", codecs.Object(attributes...), "dimension_names", dimensions)
}

func (s *scale) shape() []int64 {
	return []int64{int64(s.Size[0]), int64(s.Size[1]), int64(s.Size[2]), s.channels}
}

// grid returns the chunk grid: rectilinear where chunks are cut at the border.
func (s *scale) grid() json.RawMessage {
	regular, empty := true, false
	edges := make([]any, 4)
	for d := range 3 {
		size, chunk := int64(s.Size[d]), s.chunk[d]
		edges[d] = formats.Edges(size, chunk)
		regular = regular && size%chunk == 0
		empty = empty || size == 0
	}
	if regular || empty {
		return formats.Named("regular", codecs.Object("chunk_shape", append(s.chunk[:], s.channels)))
	}
	edges[3] = s.channels
	return formats.Named("rectilinear", codecs.Object("kind", "inline", "chunk_shapes", edges))
}
