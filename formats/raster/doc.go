// Package raster is the common part of the image formats. A file holds one
// image, which is the one chunk of an array [y, x, channel]; a codec of the
// Python package imagecodecs decodes it.
//
//	i.png ──Open: header──▶ Info ──▶ zarr.json    shape, data type, codec
//	      ◀──────────────────────── c/0/0/0       the whole file
//	      ──Stage.Decode──▶ image.Image ──Append──▶ elements of the chunk
//
// A format provides two functions: one reads the header, which defines the
// array, the other decodes the file. Both get hostile files. Before memory is
// reserved, the header is compared with the array, and the decoded size with the
// largest one of a file of that length.
package raster
