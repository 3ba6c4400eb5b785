// Package icechunk reads and writes Icechunk repositories: a directory whose files say
// of every version of a Zarr hierarchy where each chunk lies.
//
//	repo, or refs/branch.B/ref.json, refs/tag.T/ref.json     branch or tag ▶ snapshot
//	 └▶ snapshots/ID      nodes: path ▶ zarr.json, and of arrays the manifests
//	     └▶ manifests/ID  chunk coordinates ▶ bytes, a part of chunks/ID, or of a URL
//	transactions/ID       which nodes and chunks a snapshot changed
//
// Specification versions 1, 2 and 2.1 are read; version 1 is written. A snapshot is a
// refs.Set and a formats.Versioned. Of an array with several manifests, only
// manifests that cover the wanted chunks are read; files are kept in bounded memory,
// which all versions of one repository share.
//
// Files are a header of 39 bytes and a flatbuffer, mostly compressed with zstd. Offsets
// and counts in them are checked before they are followed.
package icechunk
