// Package refs reads, writes and serves reference sets: lists that map each key
// of a store to a byte range of a file.
//
//	{                                                         key    value
//	  ".zgroup": {"zarr_format": 2},                          bytes of its own
//	  "t/0.0":   ["s3://bucket/a.nc", 21394, 107],            107 bytes of a file
//	  "t/0.1":   ["part.bin"]                                 a whole file
//	}
//
// kerchunk, VirtualiZarr and other programs write such sets for NetCDF, HDF5,
// GRIB and TIFF files, which then read as Zarr. A set is a JSON file of version
// 0 or 1 (References specification) or a folder of parquet files.
//
//	            ┌─ Open ──────────────── View: a store, key by key
//	JSON ───────┤
//	parquet ────┼─ ReadJSON, ReadParquet ─── entries ── WriteJSON, WriteParquet
//	            └─ OpenParquetSet ────── columns of one array after the other
//
// Opening and reading a set follow no URL. A [View] follows the URLs that its
// [Rules] allow, through its [Opener].
package refs
