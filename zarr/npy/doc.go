// Package npy reads and writes .npy files, the file format of single numpy
// arrays (NEP 1), with the data types that Zarr arrays have.
//
//	"\x93NUMPY" version   length   {'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }   elements
//	                               └──────── a Python literal, padded with spaces ─────────┘
//
// A file is written with elements in memory layout (see [dtype.Type]): packed,
// little-endian, in C order. Files of any byte order, order of dimensions and
// padding between fields are read into memory layout. Objects, which are pickled
// there, are refused: unpickling runs code.
package npy
