package meta

import "github.com/zarrdb/zarrdb/zarr/internal/jsontext"

import "strings"

// The names under which the documents of the early v3 draft are parsed and
// printed; a [DraftLayout] has their keys.
const (
	DocArrayDraft = "array.json"
	DocGroupDraft = "group.json"
)

// draftEntry begins the format that a draft store names in its entry document.
const draftEntry = "https://purl.org/zarr/spec/protocol/core/3.0"

// IsDraft3Entry reports whether doc, found under the key zarr.json, is the entry
// document of a store in the early v3 draft, rather than the metadata of a v3
// node.
func IsDraft3Entry(doc []byte) bool {
	if len(doc) > 1<<16 || jsontext.Check(doc) != nil {
		return false
	}
	obj, _ := jsontext.Members(doc)
	format, _ := jsontext.String(obj.Get("zarr_format"))
	suffix, ok := obj.Lookup("metadata_key_suffix")
	return strings.HasPrefix(format, draftEntry) && (!ok || string(suffix) == `".json"`)
}

// DraftLayout is how the early v3 draft maps paths to keys.
//
//	DraftSuffix  meta/foo.g/bar.a/array.json      data/foo.g/bar.a/0.0
//	DraftRoot    meta/root/foo/bar.array.json     data/root/foo/bar/c0/0
//
// Groups may have no document: then they exist because something lies below
// them. Paths have no slashes around them; "" is the root.
type DraftLayout uint8

// DraftSuffix is the layout in the text of the draft. DraftRoot is the layout
// of later drafts, which zarr-python 2 wrote as an experiment.
const (
	DraftSuffix DraftLayout = iota
	DraftRoot
)

// MetaPrefix returns the prefix of the keys of all documents.
func (l DraftLayout) MetaPrefix() string {
	if l == DraftRoot {
		return "meta/root"
	}
	return "meta/"
}

// ArrayKey returns the key of the metadata of the array at path.
func (l DraftLayout) ArrayKey(path string) string {
	switch {
	case l == DraftSuffix:
		return "meta/" + draftPath(path, "a") + DocArrayDraft
	case path == "":
		return "meta/root.array.json"
	}
	return "meta/root/" + path + ".array.json"
}

// GroupKey returns the key of the metadata of the group at path.
func (l DraftLayout) GroupKey(path string) string {
	switch {
	case l == DraftSuffix:
		return "meta/" + draftPath(path, "g") + DocGroupDraft
	case path == "":
		return "meta/root.group.json"
	}
	return "meta/root/" + path + ".group.json"
}

// GroupPrefix returns the prefix of the keys of the documents of all nodes
// below the group at path.
func (l DraftLayout) GroupPrefix(path string) string {
	switch {
	case l == DraftSuffix:
		return "meta/" + draftPath(path, "g")
	case path == "":
		return "meta/root/"
	}
	return "meta/root/" + path + "/"
}

// ChunkPrefix returns the prefix of the keys of the chunks of the array at
// path; the [ChunkKeys] of its metadata spell the rest.
func (l DraftLayout) ChunkPrefix(path string) string {
	switch {
	case l == DraftSuffix:
		return "data/" + draftPath(path, "a")
	case path == "":
		return "data/root/"
	}
	return "data/root/" + path + "/"
}

// ParseKey returns the node whose document has the key; ok is false if it is
// not the key of a document.
func (l DraftLayout) ParseKey(key string) (path string, array, ok bool) {
	rest, ok := strings.CutPrefix(key, l.MetaPrefix())
	if !ok {
		return "", false, false
	}
	if l == DraftRoot {
		path, array = strings.CutSuffix(rest, ".array.json")
		if !array {
			if path, ok = strings.CutSuffix(rest, ".group.json"); !ok {
				return "", false, false
			}
		}
		name, below := strings.CutPrefix(path, "/")
		return name, array, path == "" || below && name != ""
	}
	names := strings.Split(rest, "/")
	switch names[len(names)-1] {
	case DocArrayDraft:
		array = true
	case DocGroupDraft:
	default:
		return "", false, false
	}
	names = names[:len(names)-1]
	for i, n := range names {
		suffix := ".g"
		if array && i == len(names)-1 {
			suffix = ".a"
		}
		if names[i], ok = strings.CutSuffix(n, suffix); !ok || names[i] == "" {
			return "", false, false
		}
	}
	return strings.Join(names, "/"), array, true
}

// draftPath marks every name of path as a group and the last as kind, each with
// a slash behind it.
func draftPath(path, kind string) string {
	if path == "" {
		return ""
	}
	return strings.ReplaceAll(path, "/", ".g/") + "." + kind + "/"
}
