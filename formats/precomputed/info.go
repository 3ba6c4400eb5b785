package precomputed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
)

// infoFile describes a volume.
const infoFile = "info"

// Limits of an info file.
const (
	maxInfo   = 16 << 20 // bytes
	maxScales = 1000
)

// volumeType is the "@type" of a volume.
const volumeType = "neuroglancer_multiscale_volume"

// integer is a JSON number without a fraction, "8.0" too, as some writers spell it.
type integer int64

func (n *integer) UnmarshalJSON(text []byte) error {
	var f float64
	if err := json.Unmarshal(text, (*int64)(n)); err == nil {
		return nil
	}
	if err := json.Unmarshal(text, &f); err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return fmt.Errorf("%.40s is not an integer", text)
	}
	*n = integer(f)
	return nil
}

// volume is an info file.
type volume struct {
	Type     string   `json:"@type"`
	Kind     string   `json:"type"`
	DataType string   `json:"data_type"`
	Channels *integer `json:"num_channels"`
	Scales   []*scale `json:"scales"`

	attributes []any // names and values of the other members
}

// scale is one resolution of a volume.
type scale struct {
	Key        string          `json:"key"`
	Size       []integer       `json:"size"`
	Resolution json.RawMessage `json:"resolution"`
	Offset     []integer       `json:"voxel_offset"`
	ChunkSizes [][]integer     `json:"chunk_sizes"`
	Encoding   string          `json:"encoding"`
	BlockSize  []integer       `json:"compressed_segmentation_block_size"`
	Sharding   *sharding       `json:"sharding"`

	members  []any  // names and values of the other members
	name     string // of the array, "" if it is the root
	lost     bool   // its chunks cannot be found
	channels int64
	chunk    [3]int64 // the first of ChunkSizes
	counts   [4]int64 // chunks along each dimension
	refused  error    // why it is not read
}

// parseInfo parses an info file. Errors are ErrFormat or ErrUnsupported; if only one
// scale is not supported, the error is in its field refused.
func parseInfo(text []byte) (*volume, error) {
	v := &volume{}
	text = bytes.ToValidUTF8(text, []byte("\ufffd")) // members of it become members of documents
	if err := json.Unmarshal(text, v); err != nil {
		return nil, formats.Invalid("info: %v", err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, formats.Invalid("info: %v", err)
	}
	if v.Type != "" && v.Type != volumeType {
		return nil, formats.Unsupported("info: @type %q, which is not a volume", v.Type)
	}
	v.DataType = strings.ToLower(v.DataType)
	if !slices.Contains(dataTypes, v.DataType) {
		return nil, formats.Unsupported("info: data_type %q", v.DataType)
	}
	channels := integer(1)
	if v.Channels != nil {
		channels = *v.Channels
	}
	if channels < 1 || channels > math.MaxInt32 {
		return nil, formats.Invalid("info: num_channels: %d", channels)
	}
	if len(v.Scales) == 0 || len(v.Scales) > maxScales {
		return nil, formats.Invalid("info: scales: %d of them", len(v.Scales))
	}
	for i, s := range v.Scales {
		if s == nil {
			return nil, formats.Invalid("info: scales[%d]: not an object", i)
		}
		s.channels = int64(channels)
		if err := s.check(v.DataType); err != nil {
			return nil, fmt.Errorf("%w (info: scales[%d])", err, i)
		}
	}
	v.name()
	v.attributes = others(members, volumeMembers)
	var scales []map[string]json.RawMessage
	if err := json.Unmarshal(members["scales"], &scales); err != nil {
		return nil, formats.Invalid("info: %v", err)
	}
	for i, s := range v.Scales {
		s.members = others(scales[i], append(scaleMembers, "resolution", "voxel_offset"))
	}
	return v, nil
}

// others returns names and values of the unknown members, ordered by name.
func others(m map[string]json.RawMessage, known []string) (list []any) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(known, name) {
			list = append(list, name, m[name])
		}
	}
	return list
}

// volumeMembers and scaleMembers are members of "info" and of a scale that are no
// attributes.
var (
	volumeMembers = []string{"@type", "data_type", "num_channels", "scales"}
	scaleMembers  = []string{"key", "size", "chunk_sizes", "encoding", "compressed_segmentation_block_size", "sharding"}
)

// dataTypes are the data types of volumes; the specification has the unsigned types and float32.
var dataTypes = []string{"uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32"}

// name gives the arrays their names.
func (v *volume) name() {
	if len(v.Scales) == 1 {
		return
	}
	seen := map[string]bool{}
	good := true
	for _, s := range v.Scales {
		good = good && isName(s.Key) && !seen[s.Key]
		seen[s.Key] = true
	}
	for i, s := range v.Scales {
		if s.name = s.Key; !good {
			s.name = fmt.Sprint(i)
		}
	}
}

// isName reports whether a Zarr v3 node may have a name, and no document has that name.
func isName(s string) bool {
	return s != "" && strings.Trim(s, ".") != "" && !strings.HasPrefix(s, "__") && !strings.Contains(s, "/") && s != document
}

// check checks a scale.
func (s *scale) check(dataType string) error {
	if len(s.Size) != 3 || s.Offset != nil && len(s.Offset) != 3 {
		return formats.Invalid("size or voxel_offset: not three integers")
	}
	if len(s.ChunkSizes) == 0 || len(s.ChunkSizes[0]) != 3 {
		return formats.Invalid("chunk_sizes: not a list of three integers each")
	}
	if s.Offset == nil {
		s.Offset = make([]integer, 3)
	}
	for d := range 3 {
		size, chunk, offset := int64(s.Size[d]), int64(s.ChunkSizes[0][d]), int64(s.Offset[d])
		if size < 0 || chunk < 1 || chunk > math.MaxInt32 {
			return formats.Invalid("size %d in chunks of %d", size, chunk)
		}
		if offset > 1<<61 || offset < -1<<61 || size > 1<<61 {
			return formats.Invalid("size %d at voxel_offset %d", size, offset)
		}
		s.chunk[d] = chunk
		if size > 0 {
			s.counts[d] = (size-1)/chunk + 1
		}
	}
	s.counts[3] = 1
	clean := path.Clean(s.Key)
	switch {
	case s.Key == "" || strings.ContainsRune(s.Key, 0):
		return formats.Invalid("key: %q", s.Key)
	case strings.HasPrefix(clean, "../") || clean == ".." || strings.HasPrefix(clean, "/"):
		s.refused, s.lost = formats.Unsupported("key %q: outside of the volume", s.Key), true
	}
	s.Key = clean
	if s.Sharding != nil {
		if err := s.Sharding.check(); err != nil {
			return err
		}
		if mortonBits(s.counts) > 64 {
			return formats.Invalid("sharding: the numbers of %v chunks have more than 64 bits", s.counts[:3])
		}
		if e := s.Sharding.unsupported(); e != nil {
			s.refused, s.lost = e, true
		}
	}
	if _, err := s.codecs(dataType, ""); err != nil && s.refused == nil {
		s.refused = err
	}
	return nil
}

// suffixes are the suffixes of compressed files, as cloud-volume writes them to file
// systems, with their codecs; nil is not read.
var suffixes = map[string]json.RawMessage{
	".gz":   gzipped,
	".zstd": formats.Named("zstd", codecs.Object("level", 3, "checksum", false)),
	".xz":   formats.Named("numcodecs.lzma", codecs.Object("format", 1, "check", -1, "preset", 6)),
	".bz2":  formats.Named("numcodecs.bz2", codecs.Object("level", 9)),
	".br":   nil,
}

var gzipped = formats.Named("gzip", codecs.Object("level", 6))

// codecs returns the codecs of the chunks. suffix is the suffix of compressed files,
// or "". Errors are ErrUnsupported or ErrFormat.
func (s *scale) codecs(dataType, suffix string) ([]json.RawMessage, error) {
	var out []json.RawMessage
	transpose := func(order ...int) { out = append(out, formats.Named("transpose", codecs.Object("order", order))) }
	switch encoding := strings.ToLower(s.Encoding); encoding {
	case "raw":
		transpose(3, 2, 1, 0)
		out = append(out, formats.Named("bytes", codecs.Object("endian", "little")))
	case "compressed_segmentation":
		if dataType != "uint32" && dataType != "uint64" {
			return nil, formats.Unsupported("encoding %q of %s", s.Encoding, dataType)
		}
		if len(s.BlockSize) != 3 {
			return nil, formats.Invalid("compressed_segmentation_block_size: not three integers")
		}
		transpose(3, 2, 1, 0)
		out = append(out, formats.Named(segmentationCodec, codecs.Object("block_size", s.BlockSize)))
	case "jpeg", "png":
		bits16 := encoding == "png" && dataType == "uint16"
		if dataType != "uint8" && !bits16 || s.channels > 4 || encoding == "jpeg" && s.channels != 1 && s.channels != 3 {
			return nil, formats.Unsupported("encoding %q of %s with %d channels", s.Encoding, dataType, s.channels)
		}
		transpose(2, 1, 0, 3)
		out = append(out, codecs.Object("name", imageCodec(encoding)))
	default:
		return nil, formats.Unsupported("encoding %q", s.Encoding)
	}
	if s.Sharding != nil && s.Sharding.Data == "gzip" {
		suffix = ".gz"
	}
	if suffix != "" {
		if suffixes[suffix] == nil {
			return nil, formats.Unsupported("files compressed as %q", suffix)
		}
		out = append(out, suffixes[suffix])
	}
	return out, nil
}
