// Package formats defines a foreign format for this module: a reference set that
// speaks Zarr. A format synthesises the documents of Zarr (zarr.json, or .zarray and
// .zattrs) and names the file and range of the bytes of every chunk.
//
//	n5, tiff, ocdbt … ──Format.Open──▶ refs.Set ──engine──▶ keys ▶ zarr, codecs
//	  a folder each                    key ▶ bytes, or file + range
//
// Because it is a reference set, all that reference sets have works without further
// code: caches, joined and parallel requests, links, checks, export to kerchunk, and
// servers. Codecs named in the documents decode the chunks; a format supplies
// codecs that Zarr lacks.
//
// A format knows nothing of databases or URLs. It is registered by one line in the
// table of the engine; docs/extend.md shows one whole.
package formats
