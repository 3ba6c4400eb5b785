// Package lz4 reads and writes LZ4 blocks.
//
//	      ┌───────┬─ … ─┬──────────┬────────┬─ … ─┐
//	block │ token │ len │ literals │ offset │ len │ …
//	      └───────┴─ … ─┴──────────┴────────┴─ … ─┘
//
// A block is a list of sequences: some literals, then a match, which is a
// distance back of at most 65535 bytes and a length of 4 or more. The upper half
// of the token is the number of literals, the lower half the length of the match
// less 4; 15 says that bytes follow that are added, up to and including the first
// that is not 255. The last sequence is literals alone. The last match begins 12
// bytes before the end or sooner, and the last 5 bytes are literals.
//
// The output equals, byte for byte, the output of the C library with the same
// acceleration, so that equal elements give equal chunks with either writer.
// That fixes which positions are looked at and which match is taken, not how.
//
// Branches that the processor mispredicts cost most of the time on shuffled
// numbers, so there are few. Writing, whether a candidate matches within the
// window is one test, a match is extended backwards without a loop, and literals
// are copied 32 bytes at a time. Reading, 64 bytes of literals and 32 bytes of a
// match are copied whatever their lengths are.
package lz4
