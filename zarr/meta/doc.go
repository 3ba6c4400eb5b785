// Package meta parses, prints and converts the metadata documents of Zarr arrays
// and groups. It does no I/O.
//
//	zarr.json      .zarray .zattrs      meta attrs      array.json
//	     │               │                   │               │
//	  ParseV3      ParseV2Array           ParseV1      ParseDraft3Array
//	     └───────────────┴─────────┬─────────┴───────────────┘
//	                               ▼
//	                             Meta ── Print, ToV2, ToV3 ──▶ documents
//	       ┌──────────────┬────────┴──────┬─────────────────┐
//	      Grid        ChunkKeys     codecs.Chain      dtype.Type, fill value
//	  which chunk    its key        its bytes         its elements
//
// Parsing is strict and safe on hostile documents: sizes, nesting and products
// are checked before memory is reserved, and every refusal is a [FieldError] that
// names document and member. Printing is faithful: a document that was not
// changed is printed byte for byte, and a change of one member leaves the text of
// the other members alone.
package meta
