// Package wire is the framing of the local protocol: the format of requests and
// replies in a stream, their contents, and the file descriptors sent with them.
// It knows no databases.
//
//	 0        4    5     6       8        12       16
//	┌────────┬────┬─────┬───────┬────────┬────────┬──────┬──────┐
//	│   id   │ op │files│ flags │  meta  │  body  │ meta │ body │
//	└────────┴────┴─────┴───────┴────────┴────────┴──────┴──────┘
//	  uint32   u8   u8    uint16  uint32   uint32   little-endian
//
// The client chooses the id of a request, and its reply has the same. Requests are answered in any
// order. The meta of the few operations that are hot is binary (see [Set], [Pages]), the
// meta of all other operations is a JSON object. docs/protocol.md describes the protocol.
package wire
