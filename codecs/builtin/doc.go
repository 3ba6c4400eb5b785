// Package builtin joins the packages of codecs: it has the registry that arrays
// are read and written with unless a program passes another one.
//
//	         builtin.Registry
//	        ╱        │        ╲
//	codecs/filter    │    codecs/object
//	        ╲        │        ╱
//	              codecs
//
// A codec with a format of its own, such as an image format, comes with the
// package of the format: see [github.com/zarrdb/zarrdb/formats].
package builtin
