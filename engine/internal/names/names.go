// Package names has the names of metadata documents, and the arithmetic of node
// paths and keys that all of the engine shares.
//
//	era5/temp/zarr.json      a key: Dir("era5/temp") + V3
//	└─ node ─┘└document┘
//
// A node path has no slashes around it; "" is the root.
package names

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/zarrdb/zarrdb/zarr/meta"
)

// Names of the documents that Zarr v1, v2 and v3 keep beside chunks.
const (
	V1Array    = meta.DocArrayV1
	V1Attrs    = meta.DocAttrsV1
	V3         = meta.DocV3
	V2Array    = meta.DocArrayV2
	V2Group    = meta.DocGroupV2
	V2Attrs    = meta.DocAttrsV2
	V2Metadata = meta.DocConsolidatedV2
)

// Documents lists the names of a format's documents, where these tell which
// other keys are chunks. The slice is the caller's.
func Documents(v meta.Version) []string {
	switch v {
	case meta.V1:
		return []string{V1Array, V1Attrs}
	case meta.V2:
		return []string{V2Array, V2Group, V2Attrs, V2Metadata}
	case meta.V3:
		return []string{V3}
	}
	return nil
}

// IsDocument reports whether a key is the metadata of a node in any format.
func IsDocument(key string) bool {
	switch name := path.Base(key); name {
	case V3, V2Array, V2Group, V2Attrs, V2Metadata, V1Array, V1Attrs:
		return true
	default: // the early v3 draft
		return strings.HasSuffix(name, "group.json") || strings.HasSuffix(name, "array.json")
	}
}

// Dir is the key prefix of everything at and below a node path.
func Dir(path string) string {
	if path == "" {
		return ""
	}
	return path + "/"
}

// Parent is the path of the group above.
func Parent(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }

// Join is a path below another; "" is that itself.
func Join(above, path string) string {
	if path == "" {
		return above
	}
	return Dir(above) + path
}

// Relative is a path as seen from one above it.
func Relative(path, above string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, above), "/")
}

// Clean removes slashes around a path.
func Clean(path string) string { return strings.Trim(path, "/") }

// Above compares keys: those with fewer groups above them come first, else it goes by the bytes.
func Above(a, b string) int {
	return cmp.Or(strings.Count(a, "/")-strings.Count(b, "/"), strings.Compare(a, b))
}

// CheckPath refuses paths that a format does not allow.
func CheckPath(v meta.Version, path string) error {
	clean, err := meta.CleanPathV2(path)
	if v == meta.V3 {
		clean, err = meta.CleanPath(path)
	}
	if err == nil && clean != path {
		err = fmt.Errorf("%w: %q", meta.ErrPath, path)
	}
	return err
}
