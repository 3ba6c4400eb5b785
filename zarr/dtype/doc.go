// Package dtype describes the elements of Zarr arrays: the data types of Zarr
// v1, v2 and v3 as one value type, their names in metadata, their fill values as
// JSON, and the layout of elements in memory.
//
//	"<i4"  "float16"  {"name": "struct", …}      metadata       ParseV2, ParseV3
//	                    │   ▲                                   PrintV2, PrintV3
//	                    ▼   │
//	                   [Type]                    the model
//	                    │   ▲
//	                    ▼   │
//	  01 00 00 00 02 00 00 00 …                  element bytes, little-endian
//	                    │   ▲
//	                    ▼   │
//	     1  "NaN"  "0x7fc00001"  "AAAA"          fill values    ParseFillV2, ParseFillV3
//	                                                            PrintFillV2, PrintFillV3
//
// Elements of a fixed-size type lie one after another, each [Type.Size] bytes,
// every scalar little-endian. Elements of a variable-length type are offsets and
// bytes, see [Variable]. Stored chunks may differ; codecs convert them to this
// layout and use [Type.Words] to swap bytes.
//
// Parsing takes untrusted text: nesting, element size and the number of fields
// are limited, and nothing is allocated before it is checked. The package does
// no I/O and keeps no state; everything in it is safe for concurrent use.
package dtype
