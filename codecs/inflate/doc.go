// Package inflate decodes deflate data that is in memory as a whole: raw
// (RFC 1951), with the zlib frame (RFC 1950) and with the gzip frame
// (RFC 1952).
//
//	          ┌ bits ┐ lookup  ┌───────┐ literal: a byte
//	stream -> │ word │ ------> │ entry │ length, then a distance: a copy
//	          └──────┘ 11 bits └───────┘ else: subtable, end of block
//	              ^                │
//	              └─ drop its bits ┘
//
// Chunks are decoded whole, and NetCDF-4 and HDF5 files have zlib behind a byte
// shuffle, so this is a hot path: no reader, no window, no copy out of it. The
// output itself is the window.
//
// The inner loop exists twice: in Go, and for amd64 with BMI2 in assembly. The
// rest, including the ends of input and output, is plain Go that checks every
// step. The build tag noasm leaves out the assembly.
//
// Streams are accepted exactly if compress/flate, compress/zlib and
// compress/gzip accept them; the tests compare. The one exception are reserved
// flags in a gzip header, which RFC 1952 tells a decoder to refuse.
package inflate
