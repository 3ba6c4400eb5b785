// Package raster is what the formats of images have in common. A file holds one image,
// which is the one chunk of an array [y, x, channel]; a codec of the Python package
// imagecodecs decodes it.
//
//	i.png ──Open: header──▶ Info ──▶ zarr.json    shape, data type, codec
//	      ◀──────────────────────── c/0/0/0       the whole file
//	      ──Stage.Decode──▶ image.Image ──Append──▶ elements of the chunk
//
// A format brings two functions: one reads the header, which says what the array is,
// the other decodes the file. Both see hostile files. Before memory is reserved, the
// header of the file is compared with what the array says, and its size with how much
// a file of that length can hold.
package raster
