package meta

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// CheckName reports whether a stored Zarr v3 node may have the name: not empty, no
// slash, not "." or "..", UTF-8. Errors are ErrPath. Other writers use names that Zarr
// v3 reserves, such as __xarray_dataarray_variable__: see [CheckNewPath].
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: a node name is not empty", ErrPath)
	case strings.Contains(name, "/"):
		return fmt.Errorf("%w: %q contains a slash", ErrPath, name)
	case name == ".", name == "..":
		return fmt.Errorf("%w: %q consists of periods", ErrPath, name)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: %q is not UTF-8", ErrPath, name)
	}
	return nil
}

// maxDepth bounds the names of a path. Every walk ends there, even if links form
// a cycle.
const maxDepth = 512

// CheckDepth reports whether a clean path has at most maxDepth names.
func CheckDepth(path string) error {
	if n := strings.Count(path, "/") + 1; n > maxDepth {
		return fmt.Errorf("%w: %d names, over the limit of %d", ErrPath, n, maxDepth)
	}
	return nil
}

// CleanPath returns a Zarr v3 node path without the slash that it may begin
// with; the root is "" or "/". Every name must pass [CheckName], so a slash at
// the end or two in a row are refused, and so are more than 512 names. Errors are ErrPath.
func CleanPath(path string) (string, error) {
	clean := strings.TrimPrefix(path, "/")
	if clean == "" {
		return "", nil
	}
	if err := CheckDepth(clean); err != nil {
		return "", err
	}
	for name := range strings.SplitSeq(clean, "/") {
		if err := CheckName(name); err != nil {
			return "", fmt.Errorf("%w in path %q", err, path)
		}
	}
	return clean, nil
}

// CheckNewPath reports whether a node may be made at a clean path in a format,
// in addition to the rules for stored names. In v3 no name consists of periods or
// begins with the reserved "__" (Zarr v3 core, Node names). No node may be named like
// a metadata document of Zarr v2 or v3, or in v1 of v1, which the specifications do
// not mention: its keys would be mistaken for, or collide with, the metadata of the
// group above. Existing nodes with such names are opened and copied like any
// node. Errors are ErrPath.
func CheckNewPath(v Version, path string) error {
	for name := range strings.SplitSeq(path, "/") {
		switch {
		case v != V3 || name == "":
		case strings.Trim(name, ".") == "":
			return fmt.Errorf("%w: %q consists of periods in path %q", ErrPath, name, path)
		case strings.HasPrefix(name, "__"):
			return fmt.Errorf("%w: %q begins with the reserved __ in path %q", ErrPath, name, path)
		}
		switch name {
		case DocArrayV1, DocAttrsV1:
			if v != V1 {
				continue
			}
		case DocV3, DocArrayV2, DocGroupV2, DocAttrsV2, DocConsolidatedV2:
		default:
			continue
		}
		return fmt.Errorf("%w: %q is the name of a metadata document, and of no node", ErrPath, name)
	}
	return nil
}

// CleanPathV2 normalises a logical path as Zarr v2 demands: backslashes become slashes, slashes at
// the ends and repeated ones go. A segment that is "." or ".." is ErrPath, and so are more than
// 512. (Zarr v2, Logical storage paths.) Zarr v1 and the early v3 draft use it too.
func CleanPathV2(path string) (string, error) {
	var b strings.Builder
	for name := range strings.SplitSeq(strings.ReplaceAll(path, `\`, "/"), "/") {
		switch name {
		case "":
			continue
		case ".", "..":
			return "", fmt.Errorf("%w: segment %q in %q", ErrPath, name, path)
		}
		if b.Len() > 0 {
			b.WriteByte('/')
		}
		b.WriteString(name)
	}
	if err := CheckDepth(b.String()); err != nil {
		return "", err
	}
	return b.String(), nil
}
