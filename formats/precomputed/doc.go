// Package precomputed reads volumes in the precomputed format of Neuroglancer
// (src/datasource/precomputed of github.com/google/neuroglancer) as Zarr arrays, and
// writes them.
//
//	info                 ▶  zarr.json         an array if there is one scale, else a group
//	                        KEY/zarr.json     an array for each scale, by its key
//	KEY/0-64_0-64_0-64   ▶  KEY/c/0/0/0/0     its chunks, as they are
//	KEY/1f.shard         ▶  KEY/c/5/3/8/0     a range of a shard
//
// Arrays have the dimensions x, y, z and channel, in this order; channels are never cut
// into chunks. Chunks at the border are cut, which a rectilinear chunk grid says. The
// members "resolution" (nanometres) and "voxel_offset" (voxels) of a scale are
// attributes of its array, what else "info" says of the volume those of the root; a
// group has an attribute "multiscales" besides, like that of OME-NGFF.
//
// A volume of one scale is that array itself, as tensorstore opens it (scale_index 0),
// and found under its key, too. The scales of others are named by their keys, or by
// their numbers where one of the keys is no name of a Zarr node.
//
// Of a sharded scale, a chunk is found by a part of the shard index and one minishard
// index, which are kept in bounded memory and read once.
//
// The encodings raw, jpeg, png and compressed_segmentation are read; compresso, jxl and
// others are refused by name: the array is listed, and opening it gives the reason.
package precomputed
