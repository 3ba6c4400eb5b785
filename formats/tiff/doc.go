// Package tiff reads TIFF files: classic and BigTIFF, both byte orders, strips and
// tiles, pages and pyramids, with the tags of OME-TIFF, GeoTIFF and COG.
//
//	header ▶ directory ▶ directory …        pages: width, height, tags
//	          └▶ sub-directories            smaller versions of a page
//	            offsets, lengths ▶ tiles    read when a tile is looked up
//
// The resulting nodes:
//
//	one page              an array [y, x, channel] at the root
//	several pages         a group of arrays 0, 1, …
//	a page with levels    a group of arrays 0 (the largest), 1, …
//	several such pages    a group of groups and arrays
//	OME-TIFF              instead of its pages an array [t, c, z, y, x] for each image,
//	                      with a sixth dimension channel where pixels have several samples
//
// Levels are sub-directories (SubIFDs), or pages marked as reduced resolution
// after the full page, as in a COG. Masks are pages of their own.
//
// A chunk is a tile or a strip, referenced where it lies. Documents are Zarr v3,
// because a shorter last strip needs a rectilinear grid, which v2 does not have.
// Bytes are decoded by codecs that other implementations have: bytes,
// numcodecs.zlib, zstd and numcodecs.lzma, and imagecodecs_delta, _floatpred,
// _packints, _lzw, _packbits, _jpeg, _webp and _png as the Python package
// imagecodecs registers them for Zarr v3.
//
// Samples are not converted: palettes are attributes, and pixels where white is
// zero are not inverted. Colours that JPEG stores as YCbCr become RGB.
package tiff
