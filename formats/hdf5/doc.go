// Package hdf5 reads HDF5 and NetCDF-4 files as reference sets (HDF5 File Format
// Specification 3.0, with the layout message 5 of HDF5 2.0). Nothing of their arrays is
// copied: chunks are ranges of the file.
//
//	superblock ─▶ root group ─▶ groups, level by level        when the file is opened
//	                 │             └▶ datasets: space, type, layout, filters, attributes
//	                 ▼
//	dimension scales ─▶ names and lengths of dimensions       (dims.go)
//	                 ▼
//	formats.Tree     a/zarr.json   made when it is asked for  (set.go)
//	                 a/c/0/1       index ─▶ offset, length    (index_*.go)
//
// What Zarr has no form for stays in the set: its document says why it is not read.
// Chunks that skip filters of their array, and texts of variable length, have no range
// that fits; they are values of the set (inline.go).
package hdf5
