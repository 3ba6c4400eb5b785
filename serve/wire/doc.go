// Package wire is the framing of the local protocol: how requests and replies are
// cut out of a stream, what is in them, and how descriptors of files go with them.
// It knows no databases.
//
//	 0        4    5     6       8        12       16
//	┌────────┬────┬─────┬───────┬────────┬────────┬──────┬──────┐
//	│   id   │ op │files│ flags │  meta  │  body  │ meta │ body │
//	└────────┴────┴─────┴───────┴────────┴────────┴──────┴──────┘
//	  uint32   u8   u8    uint16  uint32   uint32   little-endian
//
// The client chooses the id of a request, and its reply has the same. Requests are
// answered in any order. The meta of the few operations that are hot is binary (see
// [Get], [Set], [Found]), that of all others is a JSON object. docs/protocol.md is
// the description for those who write a client in another language.
package wire
