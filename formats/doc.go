// Package formats says what a foreign format is to this module: a reference set that
// speaks Zarr. A format synthesises the documents of Zarr (zarr.json, or .zarray and
// .zattrs) and says of every chunk in which range of which file its bytes lie.
//
//	n5, tiff, ocdbt … ──Format.Open──▶ refs.Set ──engine──▶ keys ▶ zarr, codecs
//	  a folder each                    key ▶ bytes, or file + range
//
// Because it is a reference set, all that reference sets have works without further
// code: caches, joined and parallel requests, links, checks, export to kerchunk, and
// servers. Codecs named in the documents decode the chunks; a format supplies those
// that Zarr lacks.
//
// A format knows nothing of databases or URLs. It is registered by one line in the
// table of the engine; docs/extend.md shows one whole.
package formats
