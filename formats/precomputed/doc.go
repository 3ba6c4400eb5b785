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
// into chunks. Chunks at the border are cut, so the chunk grid is rectilinear. The
// members "resolution" (nanometres) and "voxel_offset" (voxels) of a scale are
// attributes of its array, and the other members of "info" are attributes of the
// root. A group also has an attribute "multiscales" as in OME-NGFF.
//
// A volume of one scale is that array itself, as tensorstore opens it (scale_index 0),
// and found under its key, too. The scales of other volumes are named by their
// keys, or by their numbers where one of the keys is no name of a Zarr node.
//
// A chunk of a sharded scale is found by a part of the shard index and one minishard
// index, which are read once and kept in bounded memory.
//
// The encodings raw, jpeg, png and compressed_segmentation are read; compresso, jxl and other
// encodings are refused by name: the array is listed, and opening it gives the reason.
package precomputed
