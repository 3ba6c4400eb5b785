// Package refs reads, writes and serves reference sets: lists that say for each
// key of a store which bytes of which file are its value.
//
//	{                                                         key    value
//	  ".zgroup": {"zarr_format": 2},                          bytes of its own
//	  "t/0.0":   ["s3://bucket/a.nc", 21394, 107],            107 bytes of a file
//	  "t/0.1":   ["part.bin"]                                 a whole file
//	}
//
// kerchunk, VirtualiZarr and others write such sets for NetCDF, HDF5, GRIB and
// TIFF files, which then read as Zarr. A set is a JSON file of version 0 or 1
// (References specification) or a folder of parquet files.
//
//	            ┌─ Open ──────────────── View: a store, key by key
//	JSON ───────┤
//	parquet ────┼─ ReadJSON, ReadParquet ─── entries ── WriteJSON, WriteParquet
//	            └─ OpenParquetSet ────── columns of one array after the other
//
// Opening and reading follow no URL. A [View] follows those that its [Rules]
// let through, with the [Opener] that it is given.
package refs
