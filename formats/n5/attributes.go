package n5

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/zarrdb/zarrdb/formats"
)

// attributesFile holds the attributes of a group or dataset.
const attributesFile = "attributes.json"

// maxAttributes bounds the length of an attributes file, in bytes.
const maxAttributes = 16 << 20

// maxRank is the largest number of dimensions that is read, as for Zarr arrays.
const maxRank = 32

// The members of a dataset (file-system specification, item 4). compressionType is
// a member of version 1, shardSize and codecs of drafts of version 5.
const (
	memberVersion     = "n5"
	memberDimensions  = "dimensions"
	memberBlockSize   = "blockSize"
	memberDataType    = "dataType"
	memberCompression = "compression"
	memberOldType     = "compressionType"
	memberShards      = "shardSize"
	memberCodecs      = "codecs"
	memberAxes        = "axes" // of tensorstore: the names of the dimensions
)

// member is one attribute with its text.
type member struct {
	name  string
	value json.RawMessage
}

// attributes are the members of an attributes file in their order, each name once:
// of a name that stands twice the last counts.
type attributes []member

// parseAttributes parses an attributes file. Errors are ErrFormat.
func parseAttributes(text []byte) (attributes, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	t, err := dec.Token()
	if err != nil || t != json.Delim('{') {
		return nil, formats.Invalid("%s: not a JSON object", attributesFile)
	}
	var list attributes
	at := map[string]int{}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		var value json.RawMessage
		if err == nil && ok {
			err = dec.Decode(&value)
		}
		if err != nil {
			return nil, formats.Invalid("%s: %v", attributesFile, err)
		}
		if i, twice := at[name]; twice {
			list[i].value = value
			continue
		}
		at[name] = len(list)
		list = append(list, member{name, value})
	}
	if _, err = dec.Token(); err == nil {
		if _, err = dec.Token(); err == nil {
			err = errors.New("something follows the object")
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, formats.Invalid("%s: %v", attributesFile, err)
	}
	return list, nil
}

// get returns a member, nil if it is missing.
func (a attributes) get(name string) json.RawMessage {
	for _, m := range a {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// isDataset reports whether the attributes describe a dataset: then all three
// mandatory members without a default are there.
func (a attributes) isDataset() bool {
	return a.get(memberDimensions) != nil && a.get(memberBlockSize) != nil && a.get(memberDataType) != nil
}

// dataset is the parsed members of a dataset.
type dataset struct {
	shape, blocks []int64
	dataType      string
	compression   attributes
	names         []string // of the dimensions, nil if they have none
}

// parseDataset reads the members of a dataset. Errors are ErrFormat or
// ErrUnsupported; with the latter, shape and blocks are valid.
func parseDataset(a attributes) (d dataset, err error) {
	if err := json.Unmarshal(a.get(memberDimensions), &d.shape); err != nil {
		return d, formats.Invalid("dimensions: not a list of integers")
	}
	if err := json.Unmarshal(a.get(memberBlockSize), &d.blocks); err != nil {
		return d, formats.Invalid("blockSize: not a list of integers")
	}
	if len(d.shape) == 0 || len(d.shape) != len(d.blocks) {
		return d, formats.Invalid("blockSize: %d dimensions, and dimensions has %d", len(d.blocks), len(d.shape))
	}
	for i := range d.shape {
		if d.shape[i] < 0 {
			return d, formats.Invalid("dimensions: %d is negative", d.shape[i])
		}
		if d.blocks[i] < 1 || d.blocks[i] > math.MaxInt32 {
			return d, formats.Invalid("blockSize: %d is not in 1 to %d", d.blocks[i], math.MaxInt32)
		}
	}
	if len(d.shape) > maxRank {
		err := formats.Unsupported("%d dimensions, more than %d", len(d.shape), maxRank)
		d.shape, d.blocks = nil, nil
		return d, err
	}
	if err := json.Unmarshal(a.get(memberDataType), &d.dataType); err != nil {
		return d, formats.Invalid("dataType: not a string")
	}
	if raw := a.get(memberCompression); raw != nil {
		if d.compression, err = parseAttributes(raw); err != nil {
			return d, formats.Invalid("compression: not an object")
		}
	} else if raw := a.get(memberOldType); raw != nil {
		d.compression = attributes{{"type", raw}}
	}
	for _, name := range []string{memberShards, memberCodecs} {
		if a.get(name) != nil && d.compression == nil {
			return d, formats.Unsupported("%s: sharded datasets", name)
		}
	}
	if d.compression == nil {
		return d, formats.Invalid("compression: missing")
	}
	d.names = axes(a.get(memberAxes), len(d.shape))
	return d, nil
}

// axes returns the names of the dimensions, nil if raw is not a list of as many
// different names. "" is a dimension without a name.
func axes(raw json.RawMessage, rank int) []string {
	var names []string
	if json.Unmarshal(raw, &names) != nil || len(names) != rank {
		return nil
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return nil
		}
		seen[name] = name != ""
	}
	return names
}

// dimensionNames returns the names of the dimensions, dim_0 and so on for
// dimensions without a name: xarray opens Zarr v3 arrays only with names.
func (d *dataset) dimensionNames() []string {
	names := make([]string, len(d.shape))
	for i := range names {
		if names[i] = fmt.Sprintf("dim_%d", i); d.names != nil && d.names[i] != "" {
			names[i] = d.names[i]
		}
	}
	return names
}
