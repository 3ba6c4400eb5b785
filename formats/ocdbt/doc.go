// Package ocdbt reads OCDBT stores: the versioned key-value store of
// tensorstore (driver "ocdbt"), a B+tree in files that are never changed. The Zarr
// hierarchy in its keys is read as it is.
//
//	manifest.ocdbt ─▶ newest generations ─▶ root ─▶ interior nodes ─▶ leaf nodes ─▶ values
//	        └─▶ version tree ─▶ older generations ─▶ root …           └ short values
//
// All but the manifest lies in data files, where a node or a value is named by
// file, offset and length. A part that did not change between two generations is
// the same node, so that [Set.Changes] does not enter it.
//
// The format is defined in google/tensorstore, tensorstore/kvstore/ocdbt/index.rst.
// Keys are any bytes there; keys that no other store can have are left out.
package ocdbt
