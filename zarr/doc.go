// Package zarr reads and writes arrays and groups in the formats Zarr v1, v2
// and v3, and reads those in the early v3 draft, over any view of keys and bytes.
//
//	zarr.json      .zarray .zattrs      meta attrs      array.json
//	     │               │                   │               │
//	  ParseV3      ParseV2Array           ParseV1      ParseDraft3Array
//	     └───────────────┴─────────┬─────────┴───────────────┘
//	                               ▼
//	                            [Meta]                  one model
//	       ┌──────────────┬────────┴──────┬─────────────────┐
//	     [Grid]      [ChunkKeys]    codecs.Chain      dtype.Type, fill value
//	  which chunk    its key        its bytes         its elements
//
// A node is an array or a group. An array is cut into chunks by its grid; the
// coordinates of a chunk are spelled as its key, its elements encoded by the
// chain of codecs as the value of that key. A missing chunk holds the fill
// value.
//
// Metadata is parsed and printed without any I/O. Parsing is strict and safe
// on hostile documents: sizes, nesting and products are checked before memory
// is reserved, every refusal is a [FieldError] that names document and member.
// Printing is faithful: a document that was not changed is printed byte for
// byte, and a change of one member leaves the text of the others alone.
package zarr
