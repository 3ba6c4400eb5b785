// Package blosc reads and writes the chunk format of the C library Blosc 1,
// which Zarr calls the codec "blosc".
//
//	┌────────┬──────────────┬───────────────────┬───────────────────┬─
//	│ header │ block starts │ block: streams    │ block             │ …
//	│ 16     │ 4 each       │ size, data, size… │                   │
//	└────────┴──────────────┴───────────────────┴───────────────────┴─
//
// The bytes are cut into blocks of equal size, the last one shorter. Each is
// shuffled by itself (see package kernels) and compressed by itself, as one
// stream or, so that each byte of the elements gets a stream of its own, as
// many as an element has bytes. So a part can be read without decoding the
// rest: see [Index]. And a long chunk is decoded by several goroutines, as many as
// there are processors that decode no other.
//
// The header (little-endian):
//
//	0      version of the format: 2
//	1      version of the compressed streams: 1
//	2      flags: 1 byte shuffle, 2 stored, 4 bit shuffle, 8 reserved,
//	       16 not split; the upper three bits are the compressor
//	3      bytes of an element
//	4–7    size of the data
//	8–11   size of a block
//	12–15  size of the frame, header included
//
// A stored frame is the header and the raw data, not shuffled. A block start is
// an offset in the frame. A stream as long as its data is stored raw.
//
// It reads all output of the C library, and the C library reads its output; with
// lz4 the two usually write the same bytes.
package blosc
