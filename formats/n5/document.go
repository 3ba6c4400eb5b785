package n5

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/zarrdb/zarrdb/codecs"
	"github.com/zarrdb/zarrdb/formats"
)

// node is a directory of a container as a Zarr node.
type node struct {
	doc []byte // zarr.json
	// counts is the number of blocks along each dimension of a dataset, nil for a group.
	counts []int64
}

// implicitGroup is a directory without attributes (file-system specification, item 1).
var implicitGroup = &node{doc: []byte(`{"zarr_format":3,"node_type":"group","attributes":{}}`)}

// parseNode makes the Zarr document of a directory from its attributes file. root
// says that it is the root of the container, whose version is no attribute. A
// dataset that cannot be read becomes an array that cannot be opened.
func parseNode(text []byte, root bool) *node {
	a, err := parseAttributes(text)
	if err != nil {
		return refused(dataset{}, err)
	}
	if !a.isDataset() {
		return &node{doc: codecs.Object("zarr_format", 3, "node_type", "group", "attributes", a.user(root, false))}
	}
	d, err := parseDataset(a)
	if err != nil {
		return refused(d, err)
	}
	dataType, fill, chain, err := d.encoding()
	if err != nil {
		return refused(d, err)
	}
	return &node{counts: d.counts(), doc: codecs.Object(
		"zarr_format", 3, "node_type", "array", "shape", d.shape, "data_type", dataType,
		"chunk_grid", formats.Named("regular", codecs.Object("chunk_shape", d.blocks)),
		"chunk_key_encoding", formats.Named("v2", codecs.Object("separator", "/")),
		"fill_value", fill, "codecs", chain, "attributes", a.user(root, true),
		"dimension_names", d.dimensionNames())}
}

// refused is a dataset that is not read.
func refused(d dataset, err error) *node {
	r := formats.Refusal{Scheme: scheme, Err: err}
	n := &node{counts: []int64{}}
	if errors.Is(err, formats.ErrUnsupported) && len(d.shape) > 0 {
		r.Shape, r.Chunks = d.shape, d.blocks
		n.counts = d.counts()
	}
	n.doc = r.Document()
	return n
}

func (d *dataset) counts() []int64 {
	n := make([]int64, len(d.shape))
	for i, size := range d.shape {
		if size > 0 {
			n[i] = (size-1)/d.blocks[i] + 1
		}
	}
	return n
}

// user returns the attributes as a JSON object, without the ones that describe
// the container and the dataset.
func (a attributes) user(root, isDataset bool) json.RawMessage {
	out := []any{}
	for _, m := range a {
		switch m.name {
		case memberVersion:
			if root {
				continue
			}
		case memberDimensions, memberBlockSize, memberDataType, memberCompression, memberOldType:
			if isDataset {
				continue
			}
		}
		out = append(out, m.name, m.value)
	}
	return codecs.Object(out...)
}

// numbers are the data types whose blocks are arrays of numbers, spelled as in Zarr.
var numbers = []string{"uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64"}

// encoding returns data type, fill value and codecs of the Zarr array. Errors are
// ErrUnsupported or ErrFormat.
func (d *dataset) encoding() (dataType string, fill any, chain json.RawMessage, err error) {
	compressor, err := compressorOf(d.compression, d.dataType)
	if err != nil {
		return "", nil, nil, err
	}
	inner := []json.RawMessage{}
	switch {
	case d.dataType == "string":
		inner = append(inner, codecs.Object("name", "bytes"))
	case slices.Contains(numbers, d.dataType):
		order := make([]int, len(d.shape))
		for i := range order {
			order[i] = len(order) - 1 - i
		}
		inner = append(inner, formats.Named("transpose", codecs.Object("order", order)), formats.Named("bytes", codecs.Object("endian", "big")))
	default:
		return "", nil, nil, formats.Unsupported("dataType %q", d.dataType)
	}
	if compressor != nil {
		inner = append(inner, compressor)
	}
	name, fill := "n5_default", any(0)
	if d.dataType == "string" {
		name, fill = stringCodec, ""
	}
	chain, err = json.Marshal([]json.RawMessage{formats.Named(name, codecs.Object("codecs", inner))})
	return d.dataType, fill, chain, err
}
