package cli

import (
	"encoding/json"
	"strconv"

	"github.com/zarrdb/zarrdb/zarr"
)

// info is the output of info --json.
type info struct {
	NodeType       string          `json:"node_type"`
	ZarrFormat     int             `json:"zarr_format"`
	Path           string          `json:"path"`
	Shape          []int64         `json:"shape,omitempty"`
	DataType       json.RawMessage `json:"data_type,omitempty"`
	ChunkShape     json.RawMessage `json:"chunk_shape,omitempty"`
	Codecs         json.RawMessage `json:"codecs,omitempty"`
	FillValue      json.RawMessage `json:"fill_value,omitempty"`
	DimensionNames []*string       `json:"dimension_names,omitempty"`
	Attributes     zarr.Attributes `json:"attributes"`
	Error          string          `json:"error,omitempty"` // why values cannot be read
}

// MarshalJSON prints an empty shape too, which omitempty would drop.
func (i info) MarshalJSON() ([]byte, error) {
	type plain info
	if i.NodeType != "array" || len(i.Shape) > 0 {
		return json.Marshal(plain(i))
	}
	return json.Marshal(struct {
		plain
		Shape []int64 `json:"shape"`
	}{plain(i), []int64{}})
}

// nodeInfo describes a node. Data type, codecs and fill value have the form of
// the node's metadata; the three members of v2 with codecs are one object.
func nodeInfo(n *zarr.Node) (info, error) { return metaInfo(n.Path(), n.Meta()) }

// metaInfo is nodeInfo of metadata, which may be that of an array that cannot be opened.
func metaInfo(path string, m *zarr.Meta) (info, error) {
	out := info{NodeType: "group", ZarrFormat: formatNumber(m.Version), Path: path, Attributes: m.Attributes}
	if !m.Array {
		return out, nil
	}
	out.NodeType, out.Shape, out.DimensionNames = "array", m.Shape, m.DimensionNames
	docs, err := m.Print()
	if err != nil {
		return out, err
	}
	for _, doc := range docs {
		var members map[string]json.RawMessage
		if doc, err = zarr.StrictJSON(doc); err == nil {
			err = json.Unmarshal(doc, &members)
		}
		if err != nil {
			return out, err
		}
		if members["shape"] == nil || members["zarr_format"] == nil {
			continue // attributes
		}
		out.FillValue = members["fill_value"]
		if out.DataType = members["data_type"]; out.DataType == nil {
			out.DataType = members["dtype"]
		}
		if out.Codecs = members["codecs"]; out.Codecs == nil {
			out.Codecs, err = json.Marshal(map[string]json.RawMessage{
				"order": members["order"], "filters": members["filters"], "compressor": members["compressor"],
			})
		}
		out.ChunkShape = members["chunk_grid"]
		if m.Grid != nil && m.Grid.Regular() != nil {
			out.ChunkShape, err = json.Marshal(m.Grid.Regular())
		} else if out.ChunkShape == nil {
			out.ChunkShape = members["chunks"]
		}
	}
	return out, err
}

// formatNumber is the "zarr_format" of a version.
func formatNumber(v zarr.Version) int {
	if v == zarr.Draft3 {
		return 3
	}
	n, _ := strconv.Atoi(v.String())
	return n
}
