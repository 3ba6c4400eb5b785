// Package netcdf3 reads classic NetCDF files: CDF-1, CDF-2 with offsets of 64 bits, and
// CDF-5 with sizes of 64 bits too.
//
//	"CDF" 1, 2 or 5 │ records │ dimensions │ attributes │ variables
//	variables of fixed size, each in one piece
//	record 0: a part of each variable with the record dimension
//	record 1: …
//
// What comes of it:
//
//	a file                        a group with its attributes
//	a variable of fixed size      an array whose chunks lie in one piece ([formats.Contiguous])
//	a variable with records       a chunk a record; one chunk of all records, which is
//	                              copied together when it is asked for, where a record has
//	                              less than 4 KiB and all have up to 16 MiB
//	the only one with records     an array in one piece: nothing lies between its records
//
// Documents are Zarr v3 with big-endian elements; characters are bytes, as netCDF4 shows
// them. Attributes are as netCDF4 shows them.
package netcdf3
