// Package codecs encodes the elements of a chunk to stored bytes and decodes
// them, with the codec chains of Zarr v1, v2 and v3.
//
// There are three steps, and each finds its own kind of error:
//
//	metadata ──Registry.ParseV3──▶ Chain ──Chain.Bind(Rep)──▶ *Bound ──Decode, Encode …
//	          Registry.ParseV2     (values that print         (data type, shape and fill
//	                                as they were read)         are fixed; safe for
//	                                                           concurrent use)
//
// Parsing checks the configuration of each codec, and binding checks that the
// codecs fit the data type, the shape and each other. After that, running fails
// only if the stored bytes are wrong ([ErrCorrupt]).
//
// A chain is a list of codecs in encoding order. A [Rep] describes the data
// between two of them:
//
//	elements ─▶ array→array … ─▶ array→bytes ─▶ bytes→bytes … ─▶ stored bytes
//	            transpose, delta   bytes, shards,   gzip, zstd,
//	                               vlen-utf8        blosc, crc32c
//
// Both sides of every stage are byte slices; a [Rep] gives their meaning.
// Elements in memory are always little-endian and in C order; see [dtype.Type]
// for the layout of variable-length types.
//
// v2 metadata has no array→bytes codec of its own and stores the byte order
// in the data type. Its order, filters and compressor become the same chain,
// with a transpose for order F and a bytes codec before the first codec that
// takes bytes.
//
// Parts of a chunk are read with [Bound.DecodeBox]: shards fetch their index and
// the needed inner chunks, plain bytes fetch byte ranges, blosc fetches blocks;
// everything else is decoded whole.
//
// Decoders treat their input as hostile: the bound shape limits the output
// before memory is allocated.
//
// This package has the chain, the codecs that it must know (bytes, transpose,
// shards) and the compressors. Other packages build on it:
//
//	builtin   the registry of all of them
//	filter    numbers to numbers, and bits: delta, cast_value, shuffle …
//	object    elements of variable length: vlen-utf8, json2, msgpack2 …
//	blosc, lz4, zstd, inflate, lzma, pco, kernels   formats of bytes, without a chain
package codecs
