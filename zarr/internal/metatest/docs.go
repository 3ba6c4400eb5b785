// Package metatest has what tests of metadata and of stores share: documents to be
// changed member by member, and rows of demands of a specification.
//
//	ArrayDoc ─ Edit ─▶ document ─ Row.Check ─▶ parsed and printed, or refused
package metatest

import (
	"encoding/json"
	"testing"

	"github.com/zarrdb/zarrdb/zarr/internal/jsontext"
)

// ArrayDoc is a v3 array to be changed member by member.
const ArrayDoc = `{"zarr_format": 3, "node_type": "array", "shape": [4, 6], "data_type": "int16",
 "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
 "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
 "fill_value": 7, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}`

// GroupDoc is a v3 group.
const GroupDoc = `{"zarr_format": 3, "node_type": "group"}`

// ArrayDocV2 is a v2 array to be changed member by member.
const ArrayDocV2 = `{"zarr_format": 2, "shape": [4, 6], "chunks": [2, 3], "dtype": "<i2", "compressor": {"id": "zlib", "level": 1},
 "fill_value": 7, "order": "C", "filters": null}`

// ArrayDocV1 is a v1 array to be changed member by member.
const ArrayDocV1 = `{"zarr_format": 1, "shape": [4, 6], "chunks": [2, 3], "dtype": "<i2", "compression": "zlib", "compression_opts": 1,
 "fill_value": 7, "order": "C"}`

// EntryDocDraft is the entry document of a store in the early v3 draft.
const EntryDocDraft = `{"extensions": [], "metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0", "metadata_key_suffix": ".json", "zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0"}`

// ArrayDocDraft is an array of the early v3 draft.
const ArrayDocDraft = `{"attributes": {}, "chunk_grid": {"chunk_shape": [4, 3], "separator": "/", "type": "regular"}, "chunk_memory_layout": "C",
 "compressor": {"codec": "https://purl.org/zarr/spec/codec/zlib/1.0", "configuration": {"level": 1}}, "data_type": "<i4", "extensions": [], "fill_value": 0, "shape": [6, 5]}`

// Edit sets members of a document, in place or at the end; an empty value
// removes one.
func Edit(t testing.TB, doc string, set ...string) string {
	t.Helper()
	list, ok := jsontext.Members(json.RawMessage(doc))
	if !ok {
		t.Fatal(doc)
	}
	for i := 0; i < len(set); i += 2 {
		name, value := set[i], json.RawMessage(set[i+1])
		var out []jsontext.Member
		done := false
		for _, m := range list {
			if m.Name == name {
				if done = true; len(value) == 0 {
					continue
				}
				m.Value = value
			}
			out = append(out, m)
		}
		if !done && len(value) > 0 {
			out = append(out, jsontext.Member{Name: name, Value: value})
		}
		list = out
	}
	return string(jsontext.Join(list))
}
