package engine

import "github.com/zarrdb/zarrdb/engine/internal/names"

// Short names of what the files of URL pipelines use.
const (
	docV1Array    = names.V1Array
	docV1Attrs    = names.V1Attrs
	docV3         = names.V3
	docV2Array    = names.V2Array
	docV2Group    = names.V2Group
	docV2Attrs    = names.V2Attrs
	docV2Metadata = names.V2Metadata
)

func dir(path string) string       { return names.Dir(path) }
func parent(path string) string    { return names.Parent(path) }
func cleanPath(path string) string { return names.Clean(path) }
