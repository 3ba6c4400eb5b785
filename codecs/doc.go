// Package codecs turns the elements of a chunk into stored bytes and back, as
// the codec chains of Zarr v1, v2 and v3 say.
//
// There are three steps, and each finds its own kind of error:
//
//	metadata ──Registry.ParseV3──▶ Chain ──Chain.Bind(Rep)──▶ *Bound ──Decode, Encode …
//	          Registry.ParseV2     (values that print         (data type, shape and fill
//	                                as they were read)         are fixed; safe for
//	                                                           concurrent use)
//
// Parsing looks at the configuration of each codec alone, binding at whether
// the codecs suit the data type, the shape and each other, and what runs
// afterwards can only fail because the stored bytes are wrong ([ErrCorrupt]).
//
// A chain is a list of codecs in encoding order. What flows between two of
// them is described by a [Rep]:
//
//	elements ─▶ array→array … ─▶ array→bytes ─▶ bytes→bytes … ─▶ stored bytes
//	            transpose, delta   bytes, shards,   gzip, zstd,
//	                               vlen-utf8        blosc, crc32c
//
// Both sides of every stage are byte slices; a [Rep] tells what they mean.
// Elements in memory are always little-endian and in C order; see
// [dtype.Type] for the layout of variable-length types.
//
// v2 metadata has no array→bytes codec of its own and stores the byte order
// in the data type. Its order, filters and compressor become the same chain,
// with a transpose for order F and a bytes codec at the place where the first
// codec wants bytes.
//
// Parts of a chunk are read with [Bound.DecodeBox]: shards fetch their index
// and the inner chunks that are touched, plain bytes fetch byte ranges, blosc
// fetches blocks; everything else is decoded whole.
//
// Decoders treat their input as hostile: what comes out is bounded by the
// bound shape before anything is allocated.
package codecs
